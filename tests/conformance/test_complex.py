"""Complex numbers where other files draw real ones: products, norms, powers, sums and writes by index; and masks among indices.

Cases are written as in test_more_operators.py.
"""
from __future__ import annotations

import pytest
import torch

import test_more_operators as more
from aclnn_call import Failure, lib
from test_more_operators import COMPLEX, FLOATS, case_of, draw, seeded

CASES: list = []
case = case_of(CASES)


@pytest.mark.parametrize("name, make, dtype, times", CASES)
def test_operator(name, make, dtype, times):
    more.check(name, make, dtype, times)


def exact(x):
    return x.to(torch.complex128) if x.dtype.is_complex else x.double()


def terms(inner: int) -> float:
    return 8 + 4 * inner  # a product of complex numbers is four real ones; sums of `inner` of them round once each


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["aclnnMm", "aclnnMatmul", "aclnnBatchMatMul", "aclnnMv", "aclnnDot", "aclnnAddmm", "aclnnBaddbmm", "aclnnAddmv", "aclnnAddbmm"])
def test_products(name, dtype):
    for number in range(3):
        r = seeded(name, dtype, number)
        m, k, n, b = r.randint(1, 70), r.randint(1, 40), r.randint(1, 70), r.randint(1, 4)
        alpha, beta = complex(r.choice([1, 0.5]), r.choice([0, -1.5])), complex(r.choice([0, 1, 2]), r.choice([0, 0.25]))
        relaid = lambda *shape: more.relaid(draw(shape, dtype), r)  # noqa: E731
        if name in ("aclnnMm", "aclnnMatmul"):
            a, c = relaid(m, k), relaid(k, n)
            want, inputs = exact(a) @ exact(c), {"self": a, "mat2": c, "cubeMathType": 0}
        elif name == "aclnnBatchMatMul":
            a, c = relaid(b, m, k), relaid(b, k, n)
            want, inputs = exact(a) @ exact(c), {"self": a, "mat2": c, "cubeMathType": 0}
        elif name == "aclnnMv":
            a, c = relaid(m, k), relaid(k)
            want, inputs = exact(a) @ exact(c), {"self": a, "vec": c, "cubeMathType": 0}
        elif name == "aclnnDot":
            a, c = relaid(k), relaid(k)
            want, inputs = (exact(a) * exact(c)).sum(), {"self": a, "tensor": c}
        elif name == "aclnnAddmm":
            s, a, c = relaid(n), relaid(m, k), relaid(k, n)
            want = beta * exact(s) + alpha * (exact(a) @ exact(c))
            inputs = {"self": s, "mat1": a, "mat2": c, "alpha": alpha, "beta": beta, "cubeMathType": 0}
        elif name == "aclnnAddmv":
            s, a, c = relaid(m), relaid(m, k), relaid(k)
            want = beta * exact(s) + alpha * (exact(a) @ exact(c))
            inputs = {"self": s, "mat": a, "vec": c, "alpha": alpha, "beta": beta, "cubeMathType": 0}
        else:
            s, a, c = relaid(m, n), relaid(b, m, k), relaid(b, k, n)
            product = exact(a) @ exact(c)
            want = beta * exact(s) + alpha * (product if name == "aclnnBaddbmm" else product.sum(0))
            inputs = {"self": s, "batch1": a, "batch2": c, "alpha": alpha, "beta": beta, "cubeMathType": 0}
        out = more.relaid(torch.full(want.shape, 3, dtype=dtype), r)
        lib(name, **inputs, out=out)
        more.agree(name, out, want, terms(k * (b if name == "aclnnAddbmm" else 1)))


def test_mixed_complex_products_are_refused():
    with pytest.raises(Failure, match="such a product is not computed"):
        lib("aclnnMm", self=draw((2, 3), torch.complex64), mat2=draw((3, 2)), out=torch.zeros(2, 2, dtype=torch.complex64), cubeMathType=0)


def shape(r):
    return [r.randint(1, 6) for _ in range(r.randint(1, 3))]


@case("aclnnScatterAdd", COMPLEX)
def _(t, r):
    s = shape(r)
    dim = r.randrange(len(s))
    index = torch.randint(0, s[dim], s)
    x, src = draw(s, t), draw(s, t)
    return {"self": x, "dim": dim, "index": index, "src": src}, {"out": (exact(x).scatter_add(dim, index, exact(src)), t)}, 8


@case("aclnnScatter", COMPLEX)
def _(t, r):
    s = shape(r)
    dim = r.randrange(len(s))
    index = torch.stack([torch.randperm(s[dim]) for _ in range(max(1, torch.Size(s).numel() // s[dim]))]).view([n for d, n in enumerate(s) if d != dim] + [s[dim]]).movedim(-1, dim)
    x, src = draw(s, t), draw(s, t)
    return {"self": x, "dim": dim, "index": index, "src": src, "reduce": 0}, {"out": x.scatter(dim, index, src)}, 0


@case("aclnnInplaceIndexFill", COMPLEX)
def _(t, r):
    s = shape(r)
    dim = r.randrange(len(s))
    index = torch.randint(-s[dim], s[dim], (r.randint(1, 3),))
    x = draw(s, t)
    value = complex(1.5, -2)
    return {"selfRef": x, "dim": dim, "index": index, "value": value}, {"selfRef": x.clone().index_fill_(dim, index, value)}, 0


@case("aclnnIndexAdd", COMPLEX)
def _(t, r):
    s = shape(r)
    dim = r.randrange(len(s))
    index = torch.randint(0, s[dim], (r.randint(1, 5),))
    x, src = draw(s, t), draw([len(index) if d == dim else n for d, n in enumerate(s)], t)
    return {"self": x, "dim": dim, "index": index, "source": src, "alpha": 0.5}, {"out": (exact(x).index_add(dim, index, exact(src), alpha=0.5), t)}, 8


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("accumulate", [False, True])
def test_put_by_index(dtype, accumulate):
    r = seeded("index_put", dtype, accumulate)
    x = draw((4, 5, 6), dtype)
    at = [torch.randint(-4, 4, (3,)), torch.randperm(5)[:3]]
    values = draw((3, 6), dtype)
    want = exact(x).index_put(at, exact(values), accumulate) if accumulate or len(set(zip((at[0] % 4).tolist(), at[1].tolist()))) == 3 else None
    got = more.relaid(x, r)
    lib("aclnnIndexPutImpl", selfRef=got, indices=at, values=values, accumulate=accumulate, unsafe=False)
    if want is not None:
        more.agree("selfRef", got, want, 8)


@pytest.mark.parametrize("dtype", [*FLOATS[:3], torch.int64, torch.bool, torch.complex64])
def test_masks_among_indices(dtype):
    for number in range(4):
        r = seeded("masks", dtype, number)
        x = draw((4, 5, 6), dtype)
        second = torch.randint(0, 2, (5, 6)).bool()
        second[r.randrange(5), r.randrange(6)] = True
        first = torch.randint(0, 2, (4,)).bool()
        first[r.randrange(4)] = True
        whole = torch.randint(0, 2, (4, 5, 6)).bool()
        whole[0, 0, r.randrange(6)] = True
        full = torch.zeros(0, dtype=torch.int64)  # stands for a full slice
        for given, as_torch in (([first], (first,)), ([whole], (whole,)), ([full, second], (slice(None), second)),
                                ([first.to(torch.uint8), full, torch.zeros(1, dtype=torch.int64)], (first, slice(None), torch.zeros(1, dtype=torch.int64)))):
            want = x[as_torch]
            out = torch.zeros_like(want)
            lib("aclnnIndex", self=more.relaid(x, r), indices=given, out=out)
            assert torch.equal(out, want)
            values, got, wanted = draw(want.shape, dtype), x.clone(), x.clone()
            wanted[as_torch] = values
            lib("aclnnIndexPutImpl", selfRef=got, indices=given, values=values, accumulate=False, unsafe=False)
            assert torch.equal(got, wanted)


def test_masks_of_other_sizes_are_refused():
    with pytest.raises(Failure, match="the mask indices.0. has shape .3.*self .4, 5."):
        lib("aclnnIndex", self=draw((4, 5)), indices=[torch.ones(3, dtype=torch.bool)], out=torch.zeros(3, 5))
    with pytest.raises(Failure, match="the selection has .2, 5."):
        lib("aclnnIndex", self=draw((4, 5)), indices=[torch.tensor([True, False, True, False])], out=torch.zeros(3, 5))


def test_a_mask_that_is_false_everywhere_selects_nothing_beside_another_index():
    x = draw((4, 5), torch.float32)
    got = x.clone()
    lib("aclnnIndexPutImpl", selfRef=got, indices=[torch.zeros(4, dtype=torch.bool), torch.zeros(1, dtype=torch.int64)], values=draw((1,), torch.float32),
        accumulate=False, unsafe=False)
    assert torch.equal(got, x)


WIDE = {  # name -> arguments but self and out, the right value
    "aclnnReduceSum": lambda x, dim: ({"dims": [dim], "keepDims": False, "dtype": x.dtype}, exact(x).sum(dim)),
    "aclnnMean": lambda x, dim: ({"dim": [dim], "keepDim": True, "dtype": x.dtype}, exact(x).mean(dim, keepdim=True)),
    "aclnnProdDim": lambda x, dim: ({"dim": dim, "keepDim": False, "dtype": x.dtype}, exact(x).prod(dim)),
    "aclnnCumsum": lambda x, dim: ({"dim": dim, "dtype": x.dtype}, exact(x).cumsum(dim)),
}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", WIDE)
def test_eight_dimensions(name, dtype):
    """With its parts as a dimension a complex tensor of the most dimensions has one more than operators accept."""
    r = seeded(name, dtype)
    x = draw([r.randint(1, 2) for _ in range(7)] + [3], dtype)
    words, want = WIDE[name](x, r.randrange(8))
    out = torch.zeros(want.shape, dtype=dtype)
    lib(name, self=more.relaid(x, r), out=out, **words)
    more.agree("out", out, want, 16)


@pytest.mark.parametrize("to", [torch.float32, torch.bfloat16, torch.int64])
def test_eight_dimensions_become_real(to):
    r = seeded("eight dimensions", to)
    x = draw([2] * 7 + [3], torch.complex64)
    dim = r.randrange(8)
    out = torch.zeros(x.shape, dtype=to)
    lib("aclnnCumsum", self=more.relaid(x, r), dim=dim, dtype=to, out=out)
    more.agree("out", out, x.real.to(to).cumsum(dim) if to == torch.int64 else x.real.to(to).double().cumsum(dim), 16)
