"""Operators whose arguments hang together, one entry of a table each: inputs drawn at run time, torch on the CPU as judge.

  @case("aclnnX", [dtypes])                 # registers the function for the operator
  def _(t, r):                              # t: dtype, r: random.Random (torch is seeded as well)
      return {inputs by name}, {outputs by name: expected}, terms

Expected values are computed in double where torch allows it and compared after one rounding to the output's type; `terms` is
how many roundings of the largest value are allowed. An output that is a pair (expected, dtype) has a type of its own; an
in-place parameter stands in both dictionaries. Inputs and outputs take several layouts.
"""
from __future__ import annotations

import math
import random

import pytest
import torch
import torch.nn.functional as F

from aclnn_call import Failure, Library
from test_simd_families import EPS, close

lib = Library.load()
aten = torch.ops.aten
HALVES = [torch.float16, torch.bfloat16]
F32 = [torch.float32]
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
F3 = FLOATS[:3]
WIDE = [torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
INTS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
CASES: list = []


def case(name: str, dtypes: list, times: int = 3):
    def register(f):
        CASES.extend(pytest.param(name, f, t, times, id=f"{name}-{str(t).removeprefix('torch.')}") for t in dtypes)
        return f

    return register


def draw(shape, t=torch.float32, low=None, high=None):
    """Ordinary values of a type."""
    if t == torch.bool:
        return torch.randint(0, 2, shape).bool()
    if not t.is_floating_point and not t.is_complex:
        return torch.randint(0 if not t.is_signed and low is None else -9 if low is None else low, 10 if high is None else high, shape).to(t)
    if low is not None:
        return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).to(t)
    return torch.randn(shape, dtype=torch.complex128 if t.is_complex else torch.float64).to(t)


def wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x


def relaid(x: torch.Tensor, r: random.Random) -> torch.Tensor:
    how = r.randrange(3)
    if how == 0 and x.dim() >= 2:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if how == 1 and x.dim() >= 1 and x.numel():
        big = torch.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype)
        view = big[..., 1::2]
        view.copy_(x)
        return view
    return x.clone()


def agree(name: str, got: torch.Tensor, want: torch.Tensor, terms: float) -> None:
    assert got.shape == want.shape, f"{name}: {tuple(got.shape)} instead of {tuple(want.shape)}"
    if got.dtype.is_complex:
        close(torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj()), terms)
    elif got.dtype.is_floating_point:
        finite = want.double()[want.isfinite()]
        close(got, want.double(), terms, max(1.0, finite.abs().max().item()) if finite.numel() else 1.0)
    else:
        assert torch.equal(got, want.to(got.dtype)), f"{name}: {got} instead of {want}"


@pytest.mark.parametrize("name, make, dtype, times", CASES)
def test_operator(name, make, dtype, times):
    for _ in range(times):
        seed = random.SystemRandom().randrange(2 ** 31)
        print(f"seed {seed}")
        torch.manual_seed(seed)
        r = random.Random(seed)
        inputs, outputs, terms = make(dtype, r)
        call = {k: relaid(v, r) if isinstance(v, torch.Tensor) else [relaid(x, r) for x in v] if isinstance(v, list) and v and isinstance(v[0], torch.Tensor) else v
                for k, v in inputs.items()}
        written = {}
        for k, want in outputs.items():
            if k in call:
                written[k] = call[k]
                continue
            want, t = want if isinstance(want, tuple) else (want, None)
            fresh = lambda w: relaid(torch.full(w.shape, 7, dtype=t or (dtype if w.dtype.is_floating_point and not dtype.is_complex else w.dtype)), r)  # noqa: E731
            written[k] = call[k] = [fresh(w) for w in want] if isinstance(want, list) else fresh(want)
        kept = {k: v.clone() for k, v in call.items() if isinstance(v, torch.Tensor) and k not in written}
        lib(name, **call)
        for k, want in outputs.items():
            want = want[0] if isinstance(want, tuple) else want
            for g, w in zip(written[k] if isinstance(want, list) else [written[k]], want if isinstance(want, list) else [want]):
                agree(f"{name} {k}", g, w, terms)
        for k, v in kept.items():
            assert torch.equal(v, call[k]) or v.isnan().any(), f"{name}: {k} was changed"


# --- padding

def padding(name, dims, reflect):
    kind = "reflection" if reflect else "replication"

    def shape(r):
        return [r.randint(1, 3) for _ in range(r.randint(1, 2))] + [r.randint(3, 9) for _ in range(dims)]

    @case(f"aclnn{name}{dims}d", FLOATS + INTS + COMPLEX)
    def _(t, r):
        x = draw(shape(r), t)
        p = [r.randint(0 if not reflect else -1, 2) for _ in range(2 * dims)]
        want = getattr(aten, f"{kind}_pad{dims}d")(x.to(torch.float64) if not t.is_complex else x, p)
        return {"self": x, "padding": p}, {"out": (want, t)}, 0

    @case(f"aclnn{name}{dims}dBackward", FLOATS)
    def _(t, r):
        x = draw(shape(r), t)
        p = [r.randint(0, 2) for _ in range(2 * dims)]
        dy = draw(getattr(aten, f"{kind}_pad{dims}d")(x.double(), p).shape, t)
        want = getattr(aten, f"{kind}_pad{dims}d_backward")(dy.double(), x.double(), p)
        return {"gradOutput": dy, "self": x, "padding": p}, {"gradInput": want}, 16


for d in (1, 2, 3):
    padding("ReflectionPad", d, True)
    padding("ReplicationPad", d, False)


# --- resizing

def resizing(name, forward, dims, x="self", corners=False, scales=(), dtypes=FLOATS, backward=None, dy="gradOut", dx="gradInput"):
    smooth = name.endswith("AA")

    def sizes(r):
        big = [r.randint(1, 2), r.randint(1, 3)] + [r.randint(1, 11) for _ in range(dims)]
        # torch's antialiased form gives one row for all where the output has a single column
        small = [max(2 if smooth else 1, r.choice([n, 2 * n, r.randint(1, 14)])) for n in big[2:]]
        return big, small

    def extra(r, big, small):
        """Arguments behind the size, for torch and for us."""
        align = r.random() < 0.5
        given = [r.choice([0.0, s / b]) for s, b in zip(small, big[2:])]
        a = ([align] if corners else []) + [g or None for g in given[:len(scales)]]
        return a, ({"alignCorners": align} if corners else {}) | dict(zip(scales, given))

    @case(f"aclnn{name}", dtypes, times=5)
    def _(t, r):
        big, small = sizes(r)
        a, ours = extra(r, big, small)
        image = draw(big, t)
        return {x: image, "outputSize": small} | ours, {"out": getattr(aten, forward)(image.float() if t != torch.float64 else image, small, *a)}, 64

    if backward:
        @case(f"aclnn{backward}", FLOATS, times=5)
        def _(t, r):
            big, small = sizes(r)
            a, ours = extra(r, big, small)
            grad = draw(big[:2] + small, t)
            want = getattr(aten, forward + "_backward")(grad.float() if t != torch.float64 else grad, small, big, *a)
            return {dy: grad, "outputSize": small, "inputSize": big} | ours, {dx: want}, 64


resizing("UpsampleNearest1d", "upsample_nearest1d", 1)
resizing("UpsampleNearest1dV2", "upsample_nearest1d", 1, scales=("scaleL",))
resizing("UpsampleNearestExact1d", "_upsample_nearest_exact1d", 1, scales=("scales",), backward="UpsampleNearestExact1dBackward", dy="gradOutput", dx="out")
resizing("UpsampleLinear1d", "upsample_linear1d", 1, corners=True, scales=("scale",))
THREE = ("scalesD", "scalesH", "scalesW")
resizing("UpsampleNearest3d", "upsample_nearest3d", 3, scales=THREE, backward="UpsampleNearest3dBackward")
resizing("UpsampleNearestExact3d", "_upsample_nearest_exact3d", 3, scales=THREE, backward="UpsampleNearestExact3dBackward")
resizing("UpsampleTrilinear3d", "upsample_trilinear3d", 3, corners=True, scales=THREE, backward="UpsampleTrilinear3dBackward")
resizing("UpsampleBicubic2d", "upsample_bicubic2d", 2, corners=True, scales=THREE[1:], backward="UpsampleBicubic2dBackward")
resizing("UpsampleBicubic2dAA", "_upsample_bicubic2d_aa", 2, x="x", corners=True, scales=THREE[1:], backward="UpsampleBicubic2dAAGrad", dy="gradOutput", dx="out")
resizing("UpsampleBilinear2dAA", "_upsample_bilinear2d_aa", 2, x="input", corners=True, scales=THREE[1:], backward="UpsampleBilinear2dAABackward", dy="gradOutput", dx="out")


@case("aclnnUpsampleNearest1dBackward", FLOATS)
def _(t, r):
    big, small = [2, 3, r.randint(1, 9)], [r.randint(1, 12)]
    dy = draw(big[:2] + small, t)
    return ({"gradOut": dy, "outputSize": small, "inputSize": big, "scales": 0.0},
            {"out": aten.upsample_nearest1d_backward(dy.double(), small, big, None)}, 32)


@case("aclnnUpsampleLinear1dBackward", FLOATS)
def _(t, r):
    big, small, corners = [2, 3, r.randint(1, 9)], [r.randint(1, 12)], r.random() < 0.5
    dy = draw(big[:2] + small, t)
    return ({"gradOut": dy, "outputSize": small, "inputSize": big, "alignCorners": corners, "scales": 0.0},
            {"out": aten.upsample_linear1d_backward(dy.double(), small, big, corners, None)}, 64)


# --- pooling in three dimensions

def window(r):
    k = [r.randint(1, 3) for _ in range(3)]
    return k, [r.randint(1, 3) for _ in range(3)], [r.randint(0, n // 2) for n in k], r.random() < 0.5


def volume(r, t):
    return draw([r.randint(1, 2) for _ in range(r.randint(1, 2))] + [r.randint(3, 8) for _ in range(3)], t)


@case("aclnnAvgPool3d", FLOATS)
def _(t, r):
    x, (k, s, p, ceil), count, div = volume(r, t), window(r), r.random() < 0.5, r.choice([0, 0, 5])
    return ({"self": x, "kernelSize": k, "stride": s, "padding": p, "ceilMode": ceil, "countIncludePad": count, "divisorOverride": div},
            {"out": aten.avg_pool3d(x.double(), k, s, p, ceil, count, div or None)}, 64)


@case("aclnnAvgPool3dBackward", FLOATS)
def _(t, r):
    x, (k, s, p, ceil), count, div = volume(r, t), window(r), r.random() < 0.5, r.choice([0, 0, 5])
    dy = draw(aten.avg_pool3d(x.double(), k, s, p, ceil, count, div or None).shape, t)
    return ({"gradOutput": dy, "self": x, "kernelSize": k, "stride": s, "padding": p, "ceilMode": ceil, "countIncludePad": count, "divisorOverride": div},
            {"output": aten.avg_pool3d_backward(dy.double(), x.double(), k, s, p, ceil, count, div or None)}, 64)


@case("aclnnAdaptiveAvgPool3d", FLOATS)
def _(t, r):
    x, size = volume(r, t), [r.randint(1, 9) for _ in range(3)]
    return {"self": x, "outputSize": size}, {"out": aten._adaptive_avg_pool3d(x.double(), size)}, 64


@case("aclnnAdaptiveAvgPool3dBackward", FLOATS)
def _(t, r):
    x, size = volume(r, t), [r.randint(1, 9) for _ in range(3)]
    dy = draw(list(x.shape[:-3]) + size, t)
    return {"gradOutput": dy, "self": x}, {"out": aten._adaptive_avg_pool3d_backward(dy.double(), x.double())}, 64


@case("aclnnAdaptiveMaxPool3d", FLOATS)
def _(t, r):
    x, size = volume(r, t), [r.randint(1, 9) for _ in range(3)]
    y, i = aten.adaptive_max_pool3d(x.double(), size)
    return {"self": x, "outputSize": size}, {"outputOut": y, "indicesOut": (i, torch.int32)}, 0


@case("aclnnAdaptiveMaxPool3dBackward", FLOATS)
def _(t, r):
    x, size = volume(r, t), [r.randint(1, 9) for _ in range(3)]
    y, i = aten.adaptive_max_pool3d(x.double(), size)
    dy = draw(y.shape, t)
    return {"gradOutput": dy, "self": x, "indices": i.int()}, {"gradInput": aten.adaptive_max_pool3d_backward(dy.double(), x.double(), i)}, 32


@case("aclnnMaxPool3dWithArgmax", FLOATS)
def _(t, r):
    x, (k, s, p, ceil), d = volume(r, t), window(r), [1, 1, 1]
    y, i = aten.max_pool3d_with_indices(x.double(), k, s, p, d, ceil)
    return {"self": x, "kernelSize": k, "stride": s, "padding": p, "dilation": d, "ceilMode": ceil}, {"out": y, "indices": (i, torch.int32)}, 0


@case("aclnnMaxPool3dWithArgmaxBackward", FLOATS)
def _(t, r):
    x, (k, s, p, ceil), d = volume(r, t), window(r), [1, 1, 1]
    y, i = aten.max_pool3d_with_indices(x.double(), k, s, p, d, ceil)
    dy = draw(y.shape, t)
    return ({"gradOutput": dy, "self": x, "indices": i.int(), "kernelSize": k, "stride": s, "padding": p, "dilation": d, "ceilMode": ceil},
            {"gradInput": aten.max_pool3d_with_indices_backward(dy.double(), x.double(), k, s, p, d, ceil, i)}, 32)


def unpool(t, r, dims):
    small = [2, 3] + [2] * dims
    size = [5] * dims
    index = torch.stack([torch.randperm(5 ** dims)[: 2 ** dims] for _ in range(6)]).view(small)
    x = draw(small, t)
    return x, index, size


@case("aclnnMaxUnpool2d", FLOATS + [torch.int32])
def _(t, r):
    x, i, size = unpool(t, r, 2)
    return {"self": x, "indices": i, "outputSize": size}, {"out": (aten.max_unpool2d(x.double(), i, size), t)}, 0


@case("aclnnMaxUnpool3d", FLOATS + [torch.int32])
def _(t, r):
    x, i, size = unpool(t, r, 3)
    return {"self": x, "indices": i, "outputSize": size, "stride": [2, 2, 2], "padding": [0, 0, 0]}, {"outRef": (aten.max_unpool3d(x.double(), i, size, [2, 2, 2], [0, 0, 0]), t)}, 0


# --- rare reads and writes by index

SHAPES = [(), (5,), (4, 3), (2, 5, 3), (3, 1, 4, 2)]


def indexed(t, r):
    x = draw(r.choice(SHAPES), t)
    dim = r.randrange(max(x.dim(), 1))
    n = x.shape[dim] if x.dim() else 1
    index = torch.randperm(n)[: r.randint(1, n)]
    shape = list(x.shape)
    if x.dim():
        shape[dim] = index.numel()
    return x, dim - (x.dim() if r.random() < 0.5 and x.dim() else 0), index, draw(shape, t)


@case("aclnnInplaceIndexCopy", FLOATS + INTS + COMPLEX)
def _(t, r):
    x, dim, index, source = indexed(t, r)
    return {"selfRef": x, "dim": dim, "index": index, "source": source}, {"selfRef": torch.index_copy(x, dim, index, source)}, 0


@case("aclnnIndexCopy", FLOATS + INTS)
def _(t, r):
    x, dim, index, source = indexed(t, r)
    return {"selfRef": x, "dim": dim, "index": index, "source": source}, {"selfRef": x.clone(), "outRef": torch.index_copy(x, dim, index, source)}, 0


@case("aclnnInplacePut", FLOATS + INTS)
def _(t, r):
    x, add = draw(r.choice(SHAPES[1:]), t), r.random() < 0.5
    index = torch.randint(-x.numel(), x.numel(), (4, 2)) if add else torch.randperm(x.numel())[:2]
    source = draw(index.shape, t)
    want = wide(x).put(index, wide(source), add)
    return {"selfRef": x, "index": index, "source": source, "accumulate": add}, {"selfRef": want}, 32


@case("aclnnInplaceFillDiagonal", FLOATS + INTS + COMPLEX)
def _(t, r):
    x, wrap = draw(r.choice([(3, 3), (9, 2), (2, 5), (7, 3), (3, 3, 3)]), t), r.random() < 0.5
    return {"selfRef": x, "fillValue": 3, "wrap": wrap}, {"selfRef": x.clone().fill_diagonal_(3, wrap)}, 0


@case("aclnnIsInTensorScalar", FLOATS + INTS)
def _(t, r):
    x, invert = draw(r.choice(SHAPES), t).round(), r.random() < 0.5
    return {"element": x, "testElement": 1, "assumeUnique": False, "invert": invert}, {"out": torch.isin(x.double(), 1, invert=invert)}, 0


@case("aclnnIsInScalarTensor", FLOATS + INTS)
def _(t, r):
    x, invert = draw(r.choice(SHAPES[1:]), t).round(), r.random() < 0.5
    return {"element": 1, "testElements": x, "assumeUnique": False, "invert": invert}, {"out": torch.isin(torch.tensor(1.0), x.double(), invert=invert)}, 0


@case("aclnnHistc", [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8])
def _(t, r):
    x, bins, (low, high) = draw(r.choice(SHAPES), t), r.randint(1, 9), r.choice([(0, 0), (-2, 3), (1, 1)])
    judge = x if t.is_floating_point else x.float()
    return {"self": x, "bins": bins, "min": low, "max": high}, {"out": (torch.histc(judge, bins, low, high), t)}, 0


@case("aclnnBincount", INTS)
def _(t, r):
    x, least, weighted = draw((r.randint(0, 9),), t, 0, 9), r.choice([0, 4, 12]), r.random() < 0.5
    w = draw(x.shape, torch.float64) if weighted else None
    want = torch.bincount(x, w, least)
    return {"self": x, "weights": w, "minlength": least}, {"out": (want, want.dtype)}, 16


def medians(name, f, dim):
    @case(name, FLOATS + INTS, times=5)
    def _(t, r):
        x = draw(r.choice(SHAPES), t)
        if t.is_floating_point and x.numel() and r.random() < 0.5:
            x.view(-1)[r.randrange(x.numel())] = math.nan
        if not dim:
            return {"self": x}, {"out" if "Nan" in name else "valuesOut": (wide(f(x)), t)}, 0
        d, keep = r.randrange(max(1, x.dim())), r.random() < 0.5
        x = x if t != torch.uint8 else draw(x.shape, t)
        flat = torch.argsort(torch.randn(x.shape), dim=d) if x.dim() else torch.zeros(())
        x = flat.to(t)  # no two equal, so that one index is right
        v, i = f(x, d, keep)
        return {"self": x, "dim": d, "keepDim": keep}, {"valuesOut": (wide(v), t), "indicesOut": (i, torch.int64)}, 0


medians("aclnnMedian", torch.median, False)
medians("aclnnNanMedian", torch.nanmedian, False)
medians("aclnnMedianDim", torch.median, True)
medians("aclnnNanMedianDim", torch.nanmedian, True)


@case("aclnnUnfoldGrad", FLOATS)
def _(t, r):
    shape = list(r.choice(SHAPES[1:]))
    dim = r.randrange(len(shape))
    size, step = r.randint(1, shape[dim]), r.randint(1, 3)
    dy = draw(torch.zeros(shape).unfold(dim, size, step).shape, t)
    return ({"gradOut": dy, "inputSizes": shape, "dim": dim, "size": size, "step": step},
            {"gradIn": aten.unfold_backward(dy.double(), shape, dim, size, step)}, 32)


@case("aclnnChannelShuffle", FLOATS + INTS)
def _(t, r):
    groups = r.choice([1, 2, 3])
    x = draw((2, 6, 3) + ((4,) if r.random() < 0.5 else ()), t)
    return {"self": x, "groups": groups}, {"out": (torch.channel_shuffle(wide(x), groups), t)}, 0
