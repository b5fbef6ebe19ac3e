"""What torch's operator database (anynpu check ops) once found wrong or refused, through the C ABI.

Values are drawn at run time; ANYNPU_SEED repeats a run.
"""
from __future__ import annotations

import os
import random

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import pytest  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

driver = pytest.importorskip("driver")
from test_products import call  # noqa: E402

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
print(f"test_database_findings: ANYNPU_SEED={SEED}")
FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture
def g(request) -> torch.Generator:
    return torch.Generator().manual_seed(random.Random(f"{SEED} {request.node.name}").randrange(1 << 31))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("places", [1, 2])
def test_a_mask_that_is_false_everywhere_puts_nothing(places, accumulate, g):
    """Clients expand a mask to coordinates: all of them are empty then, as an undefined index is."""
    self = torch.randn(4, 4, generator=g)
    values = torch.randn(4 if places == 1 else 1, generator=g)
    empty = [torch.empty(0, dtype=torch.int64) for _ in range(places)]
    got = call("aclnnIndexPutImpl", selfRef=self, indices=empty, values=values, accumulate=accumulate, unsafe=False)
    assert torch.equal(got["selfRef"], self)


@pytest.mark.parametrize("shape, target", [([1], []), ([1, 1], []), ([1, 1, 3], [2, 3]), ([1, 2, 1], [2, 3])])
def test_copies_drop_leading_sizes_of_one(shape, target, g):
    src = torch.randn(shape, generator=g)
    got = call("aclnnInplaceCopy", selfRef=torch.zeros(target), src=src)["selfRef"]
    assert torch.equal(got, src.reshape(shape[-len(target):] if target else []).expand(target))


def test_copies_refuse_leading_sizes_that_are_not_one():
    with pytest.raises(driver.CallFailed, match=r"src has shape \[2, 3\].*selfRef, \[3\]"):
        call("aclnnInplaceCopy", selfRef=torch.zeros(3), src=torch.zeros(2, 3))


@pytest.mark.parametrize("to", [torch.int8, torch.uint8, torch.int16])
def test_complex_becomes_a_small_integer_by_its_real_part(to, g):
    parts = torch.randint(0, 100, (2, 7), generator=g).float()
    src = torch.complex(parts[0], parts[1])
    got = call("aclnnInplaceCopy", selfRef=torch.zeros(7, dtype=to), src=src)["selfRef"]
    assert torch.equal(got, parts[0].to(to))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weight_shape", [[], [1, 1], [1, 1, 1], [3], [1, 3, 1]])
def test_prelu_takes_weights_expanded_to_the_rank_of_self(weight_shape, dtype, g):
    x = torch.randn(2, 3, 4, generator=g).to(dtype)
    weight = torch.rand(weight_shape, generator=g).to(dtype)
    got = call("aclnnPrelu", self=x, weight=weight, out=torch.empty_like(x))["out"]
    along = weight.reshape(1, -1, 1).double()
    want = torch.where(x > 0, x.double(), x.double() * along).to(dtype)
    assert torch.equal(got, want)
    grad = torch.randn(2, 3, 4, generator=g).to(dtype)
    got = call("aclnnPreluBackward", gradOutput=grad, self=x, weight=weight, gradInput=torch.empty_like(x),
               gradWeight=torch.empty_like(weight))
    each = torch.where(x > 0, 0.0, grad.double() * x.double())
    want = (each.sum() if weight.numel() == 1 else each.sum(dim=(0, 2))).reshape(weight_shape)
    bound = 2 * torch.finfo(dtype).eps * want.abs() + 24 * 2.0**-23 * each.abs().sum()
    assert bool(((got["gradWeight"].double() - want).abs() <= bound).all())


UNARY = {"Exp": torch.exp, "Log": torch.log, "Log2": torch.log2, "Log10": torch.log10, "Sin": torch.sin, "Cos": torch.cos,
         "Tan": torch.tan, "Sinh": torch.sinh, "Sqrt": torch.sqrt, "Rsqrt": torch.rsqrt, "Sigmoid": torch.sigmoid, "Sign": torch.sgn}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_complex_numbers(name, g):
    x = torch.complex(torch.randn(33, generator=g), torch.randn(33, generator=g))
    params = [p["name"] for p in driver_params(f"aclnn{name}")]
    got = call(f"aclnn{name}", **{params[0]: x, params[1]: torch.empty_like(x)})[params[1]]
    want = UNARY[name](x.to(torch.complex128))
    assert bool(((got - want).abs() <= 2.0**-22 * want.abs()).all())


def driver_params(name: str) -> list:
    return next(op for op in driver.operators() if op["name"] == name)["params"]


def test_the_size_of_complex_numbers_is_real(g):
    x = torch.complex(torch.randn(5, 6, generator=g), torch.randn(5, 6, generator=g))
    got = call("aclnnAbs", self=x, out=torch.empty(5, 6))["out"]
    want = x.to(torch.complex128).abs()
    assert bool(((got - want).abs() <= 2.0**-23 * want).all())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_padding(dtype, g):
    x = torch.complex(torch.randn(3, 4, generator=g), torch.randn(3, 4, generator=g)).to(dtype)
    pad = [1, 2, 0, 1]
    want = F.pad(x, pad, value=1.5)
    got = call("aclnnConstantPadNd", self=x, pad=pad, value=1.5, out=torch.empty_like(want))["out"]
    assert torch.equal(got, want)


def test_nan_to_num_of_booleans_is_what_they_are(g):
    x = torch.rand(9, generator=g) < 0.5
    got = call("aclnnNanToNum", self=x, nan=0.0, posinf=1.0, neginf=0.0, out=torch.empty_like(x))["out"]
    assert torch.equal(got, x)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64])
def test_the_size_of_a_real_number_is_exact(dtype, g):
    """The definition of aclnnAbs allows roundings, which only complex numbers need."""
    x = (torch.randn(7, 33, generator=g, dtype=torch.float64) * 100).to(dtype)
    if dtype.is_floating_point:
        x[0, :4] = torch.tensor([-0.0, float("-inf"), float("inf"), float("nan")], dtype=dtype)
    got = call("aclnnAbs", self=x, out=torch.empty_like(x))["out"]
    assert torch.equal(got.nan_to_num(nan=-1.0), x.abs().nan_to_num(nan=-1.0))
    assert not dtype.is_floating_point or not bool(got[0, 0].signbit())
