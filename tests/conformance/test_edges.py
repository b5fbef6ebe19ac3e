"""What breaking the ground floor has found wrong or refused: edges of values and of shapes, against torch's CPU.

Values and shapes are drawn at run time; ANYNPU_SEED repeats a run.
"""
from __future__ import annotations

import os
import random

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import pytest  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

driver = pytest.importorskip("driver")
from test_products import call, near  # noqa: E402

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
print(f"test_edges: ANYNPU_SEED={SEED}")
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32]


@pytest.fixture
def rng(request) -> random.Random:
    return random.Random(f"{SEED} {request.node.name}")


def draw_integers(rng: random.Random, dtype: torch.dtype, size: int) -> torch.Tensor:
    info = torch.iinfo(dtype)
    near_ends = [info.min, info.max, 0, 1, info.max - 1]
    return torch.tensor([rng.choice([rng.randint(info.min, info.max), rng.choice(near_ends)]) for _ in range(size)], dtype=dtype)


def numbers(rng: random.Random, x: torch.Tensor) -> list[int]:
    """Inside and outside of the type, and such as are an element of x once they are kept in its type."""
    bits = 8 * x.element_size()
    around = [rng.randint(-(2 ** (bits + 1)), 2 ** (bits + 1)) for _ in range(4)]
    return [-1, -3, *around, int(x[0]) + 2**bits, int(x[-1]) - 2**bits]


COMPARISONS = {"EqScalar": torch.eq, "NeScalar": torch.ne, "LtScalar": torch.lt, "LeScalar": torch.le, "GtScalar": torch.gt, "GeScalar": torch.ge}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_numbers_are_compared_as_the_type_keeps_them(name, dtype, rng):
    x = draw_integers(rng, dtype, 37)
    for number in numbers(rng, x):
        got = call(f"aclnn{name}", self=x, other=number, out=torch.empty(37, dtype=torch.bool))["out"]
        assert torch.equal(got, COMPARISONS[name](x, number)), number


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_are_looked_for_as_the_type_keeps_them(dtype, rng):
    """Where the number is what is looked for; a number looked for among elements is taken as it is."""
    x = draw_integers(rng, dtype, 37)
    for number in numbers(rng, x):
        for invert in (False, True):
            got = call("aclnnIsInTensorScalar", element=x, testElement=number, assumeUnique=False, invert=invert,
                       out=torch.empty(37, dtype=torch.bool))["out"]
            assert torch.equal(got, torch.isin(x, number, invert=invert)), number
            got = call("aclnnIsInScalarTensor", element=number, testElements=x, assumeUnique=False, invert=invert,
                       out=torch.empty((), dtype=torch.bool))["out"]
            assert torch.equal(got, torch.isin(number, x, invert=invert)), number


def test_numbers_that_no_float_tells_apart_are_looked_for(rng):
    base = 2**60 + 2 * rng.randrange(2**40)
    x = torch.tensor([base, base + 1, base + 3])
    for number in (base, base + 1, base + 2, base + 3):
        got = call("aclnnIsInTensorScalar", element=x, testElement=number, assumeUnique=False, invert=False,
                   out=torch.empty(3, dtype=torch.bool))["out"]
        assert torch.equal(got, torch.isin(x, number)), number


DIVISIONS = {"FloorDivides": torch.floor_divide, "RemainderTensorScalar": torch.remainder, "FmodScalar": torch.fmod}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", DIVISIONS)
def test_integers_are_divided_by_what_the_type_keeps(name, dtype, rng):
    x = draw_integers(rng, dtype, 37)
    x[x == torch.iinfo(dtype).min] += 1  # the least by -1 is no number of the type
    for number in numbers(rng, x):
        if number % 2 ** (8 * x.element_size()) == 0:
            continue  # division by zero
        got = call(f"aclnn{name}", self=x, other=number, out=torch.empty(37, dtype=dtype))["out"]
        assert torch.equal(got, DIVISIONS[name](x, number)), number


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bounds_are_kept_or_refused_as_torch_does(dtype, rng):
    x = draw_integers(rng, dtype, 37)
    for number in numbers(rng, x):
        for bounds in ({"min": number}, {"max": number}):
            run = lambda: call("aclnnClamp", self=x, clipValueMin=bounds.get("min"), clipValueMax=bounds.get("max"), out=torch.empty_like(x))["out"]  # noqa: B023, E731
            try:
                want = torch.clamp(x, **bounds)
            except RuntimeError as refused:
                assert "overflow" in str(refused)
                with pytest.raises(driver.CallFailed, match=str(number)):
                    run()
                continue
            assert torch.equal(run(), want), bounds


@pytest.mark.parametrize("number", range(12))
def test_pooling_windows_larger_than_the_image(number, rng):
    """With ceil_mode a window may be larger than image and padding, as long as it begins in the image."""
    while True:
        size, kernel, stride = ([rng.randint(1, 9), rng.randint(1, 9)] for _ in range(3))
        padding = [rng.randint(0, k // 2) for k in kernel]
        if any(s + 2 * p < k for s, p, k in zip(size, padding, kernel)) and all(
                s + 2 * p - k + t - 1 >= 0 for s, p, k, t in zip(size, padding, kernel, stride)):
            break
    x = torch.randn(rng.randint(1, 2), rng.randint(1, 3), *size, generator=torch.Generator().manual_seed(rng.randrange(1 << 31)))
    include, divisor = rng.random() < 0.5, rng.choice([0, 3])
    judge = lambda t: F.avg_pool2d(t, kernel, stride, padding, True, include, divisor or None)  # noqa: E731
    want = judge(x.double())
    got = call("aclnnAvgPool2d", self=x, kernelSize=kernel, strides=stride, paddings=padding, ceilMode=True, countIncludePad=include,
               divisorOverride=divisor, cubeMathType=0, out=torch.empty(want.shape))["out"]
    near(got, want, judge(x.double().abs()), 81)


@pytest.mark.parametrize("number", range(8))
def test_transposed_convolutions_that_give_nothing(number, rng):
    """A size of zero passes, of batches as of images; torch lets it pass but for some single images."""
    batch, cin, cout, k, rows = rng.choice([0, 2]), rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 2), rng.randint(2, 5)
    x, w = torch.randn(batch, cin, rows, 1), torch.randn(cin, cout, k, 2)
    numbers = dict(stride=[rng.randint(1, 2), 1], padding=[0, 1], dilation=[1, 1], transposed=True, outputPadding=[0, 0], groups=1)
    want = torch.ops.aten.convolution(x, w, None, *numbers.values())
    assert want.numel() == 0
    got = call("aclnnConvolution", input=x, weight=w, bias=None, output=torch.empty(want.shape), cubeMathType=0, **numbers)["output"]
    assert got.shape == want.shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("batch, rows", [(0, 5), (2, 0)])
def test_attentions_gradient_of_no_rows(batch, rows, dtype, rng):
    """torch_npu passes null for the statistics of nothing. Keys that nobody asks for have a gradient of zero."""
    q, k = torch.randn(batch, 2, rows, 16).to(dtype), torch.randn(batch, 2, 7, 16).to(dtype)
    got = call("aclnnFlashAttentionScoreGrad", query=q, keyIn=k, value=k, dy=q, pseShiftOptional=None, dropMaskOptional=None,
               paddingMaskOptional=None, attenMaskOptional=None, softmaxMaxOptional=None, softmaxSumOptional=None, softmaxInOptional=None,
               attentionInOptional=q, prefixOptional=None, scaleValue=0.25, keepProb=1.0, preTokens=65536, nextTokens=65536, headNum=2,
               inputLayout="BNSD", innerPrecise=0, sparseMode=0, dqOut=torch.ones_like(q), dkOut=torch.ones_like(k), dvOut=torch.ones_like(k),
               dpseOut=None)
    for name, like in (("dqOut", q), ("dkOut", k), ("dvOut", k)):
        assert torch.equal(got[name], torch.zeros_like(like)), name


def test_infinite_float64_become_its_largest(rng):
    """torch's default limits arrive as float32 numbers."""
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), rng.gauss(0, 1e300)], dtype=torch.float64)
    largest = float(torch.tensor(torch.finfo(torch.float64).max).float())
    got = call("aclnnNanToNum", self=x, nan=0.0, posinf=largest, neginf=-largest, out=torch.empty_like(x))["out"]
    assert torch.equal(got, torch.nan_to_num(x))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float32, torch.float64])
def test_the_median_of_nothing(dtype):
    x = torch.empty(0, dtype=dtype)
    for name, out, judge in (("aclnnMedian", "valuesOut", torch.median), ("aclnnNanMedian", "out", torch.nanmedian)):
        got = call(name, self=x, **{out: torch.empty((), dtype=dtype)})[out]
        assert torch.equal(got.nan_to_num(7), judge(x).nan_to_num(7)), name
