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
import zlib

import pytest
import torch
import torch.nn.functional as F

import driver
from aclnn_call import lib
from test_simd_families import SEED, close

aten = torch.ops.aten
HALVES = [torch.float16, torch.bfloat16]
F32 = [torch.float32]
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
F3 = FLOATS[:3]
WIDE = [torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
INTS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
CASES: list = []


def case_of(cases: list):
    """The decorator that adds to a table of cases; other files have tables of their own."""
    def case(name: str, dtypes: list, times: int = 3):
        def register(f):
            cases.extend(pytest.param(name, f, t, times, id=f"{name}-{str(t).removeprefix('torch.')}") for t in dtypes)
            return f

        return register

    return case


case = case_of(CASES)


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


def seeded(*what) -> random.Random:
    """The run's seed makes the same case again: ANYNPU_SEED, printed with a failure."""
    seed = zlib.crc32(f"{SEED} {what}".encode())
    torch.manual_seed(seed)
    print(f"ANYNPU_SEED={SEED}")
    return random.Random(seed)


@pytest.mark.parametrize("name, make, dtype, times", CASES)
def test_operator(name, make, dtype, times):
    check(name, make, dtype, times)


def check(name, make, dtype, times):
    for number in range(times):
        r = seeded(name, dtype, number)
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


# --- matrices

MATRIX = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def batch(r):
    return [r.randint(1, 3) for _ in range(r.randint(0, 2))]


def precise(x):
    return x.to(torch.complex128) if x.dtype.is_complex else x.double()


def well(r, t):
    """Square matrices far from singular."""
    n = r.randint(1, 6)
    return (draw(batch(r) + [n, n], torch.complex128 if t.is_complex else torch.float64) + 3 * torch.eye(n)).to(t)


@case("aclnnInverse", MATRIX + HALVES[:1])
def _(t, r):
    x = well(r, t)
    return {"self": x}, {"out": (torch.linalg.inv(precise(x)), t)}, 64


@case("aclnnSlogdet", MATRIX)
def _(t, r):
    x = well(r, t)
    sign, log = torch.linalg.slogdet(precise(x))
    return {"self": x}, {"signOut": (sign, t), "logOut": (log, torch.float64 if t in (torch.float64, torch.complex128) else torch.float32)}, 64


@case("aclnnLinalgCholesky", MATRIX)
def _(t, r):
    x = precise(well(r, t))
    x, upper = (x @ x.mH).to(t), r.random() < 0.5
    return {"self": x, "upper": upper}, {"out": (torch.linalg.cholesky(precise(x), upper=upper), t)}, 64


@case("aclnnLinalgQr", MATRIX)
def _(t, r):
    x, mode = draw(batch(r) + [r.randint(1, 6), r.randint(1, 6)], t), r.choice([0, 1, 2])
    q, u = torch.linalg.qr(precise(x), ["reduced", "complete", "r"][mode])
    return {"self": x, "mode": mode}, {"Q": (q, t), "R": (u, t)}, 64


@case("aclnnTriangularSolve", MATRIX)
def _(t, r):
    a = well(r, t)
    b, upper, transpose, unit = draw([*a.shape[:-1], r.randint(1, 4)], t), r.random() < 0.5, r.random() < 0.5, r.random() < 0.5
    x, m = torch.triangular_solve(precise(b), precise(a), upper, transpose, unit)
    return ({"self": b, "A": a, "upper": upper, "transpose": transpose, "unitriangular": unit}, {"xOut": (x, t), "mOut": (m, t)}, 256)


@pytest.mark.parametrize("dtype", MATRIX)
@pytest.mark.parametrize("full", [False, True])
def test_svd(dtype, full):
    """Vectors are not unique: the product and orthogonality are judged, the values against torch."""
    real = torch.float64 if dtype in (torch.float64, torch.complex128) else torch.float32
    for m, n in [(5, 3), (3, 5), (4, 4), (1, 6), (6, 1)]:
        x = draw((2, m, n), dtype)
        if m == n:
            x[1, :, 0] = x[1, :, 1]  # rank deficient
        k = min(m, n)
        s, u, v = torch.empty(2, k, dtype=real), torch.empty(2, m, m if full else k, dtype=dtype), torch.empty(2, n, n if full else k, dtype=dtype)
        lib("aclnnSvd", input=x, fullMatrices=full, computeUV=True, sigma=s, u=u, v=v)
        close(s, torch.linalg.svdvals(precise(x)), 32, 10)
        u, v, limit = precise(u), precise(v), 1e-10 if real == torch.float64 else 1e-4
        assert (u[..., :k] * s[:, None, :].to(u.dtype) @ v[..., :k].mH - precise(x)).abs().max() < limit
        for q in (u, v):
            assert (q.mH @ q - torch.eye(q.shape[-1])).abs().max() < limit


@case("aclnnAddr", FLOATS + INTS + COMPLEX)
def _(t, r):
    a, b = draw((r.randint(1, 5),), t), draw((r.randint(1, 5),), t)
    x, beta, alpha = draw(r.choice([(a.numel(), b.numel()), (1, b.numel()), ()]), t), r.choice([0, 1, 2]), r.choice([1, 3])
    p = (lambda v: precise(v)) if t.is_floating_point or t.is_complex else (lambda v: v)
    return {"self": x, "vec1": a, "vec2": b, "betaOptional": beta, "alphaOptional": alpha}, {"out": (torch.addr(p(x), p(a), p(b), beta=beta, alpha=alpha), t)}, 16


@case("aclnnInplaceAddr", FLOATS)
def _(t, r):
    a, b = draw((r.randint(1, 5),), t), draw((r.randint(1, 5),), t)
    x = draw((a.numel(), b.numel()), t)
    return {"selfRef": x, "vec1": a, "vec2": b, "betaOptional": 1, "alphaOptional": 2}, {"selfRef": torch.addr(x.double(), a.double(), b.double(), alpha=2)}, 16


@case("aclnnTrace", FLOATS + INTS + COMPLEX)
def _(t, r):
    x = draw((r.randint(1, 6), r.randint(1, 6)), t)
    want = torch.trace(precise(x) if t.is_floating_point or t.is_complex else x)
    return {"self": x}, {"out": (want, t if t.is_floating_point or t.is_complex else torch.int64)}, 16


@case("aclnnLinalgCross", FLOATS + [torch.int32] + COMPLEX)
def _(t, r):
    x, y, dim = draw((2, 3, 4), t), draw(r.choice([(2, 3, 4), (1, 3, 4)]), t), r.choice([1, -2])
    p = precise if t.is_floating_point or t.is_complex else (lambda v: v)
    return {"self": x, "other": y, "dim": dim}, {"out": (torch.linalg.cross(p(x), p(y), dim=dim), t)}, 32


# --- images

def sampling(r, dims):
    size, places = [r.randint(1, 6) for _ in range(dims)], [r.randint(1, 5) for _ in range(dims)]
    return [2, 3] + size, [2] + places + [dims], r.randrange(3 if dims == 2 else 2), r.randrange(3), r.random() < 0.5


def samplers(dims):
    @case(f"aclnnGridSampler{dims}D", [torch.float32, torch.float64], times=12)
    def _(t, r):
        xs, gs, mode, pad, corners = sampling(r, dims)
        # off the places where a sample falls between two cells, on which side is a matter of rounding
        x, g = draw(xs, t), draw(gs, t, -1.6, 1.6)
        want = getattr(aten, f"grid_sampler_{dims}d")(x.double(), g.double(), mode, pad, corners)
        return {"input": x, "grid": g, "interpolationMode": mode, "paddingMode": pad, "alignCorners": corners}, {"out": want}, 256

    @case(f"aclnnGridSampler{dims}DBackward", [torch.float32, torch.float64], times=12)
    def _(t, r):
        xs, gs, mode, pad, corners = sampling(r, dims)
        x, g = draw(xs, t), draw(gs, t, -1.6, 1.6)
        dy = draw(xs[:2] + gs[1:-1], t)
        dx, dg = getattr(aten, f"grid_sampler_{dims}d_backward")(dy.double(), x.double(), g.double(), mode, pad, corners, [True, True])
        return ({"gradOutput": dy, "input": x, "grid": g, "interpolationMode": mode, "paddingMode": pad, "alignCorners": corners, "outputMask": [True, True]},
                {"inputGrad": dx, "gridGrad": dg}, 1024)


samplers(2)
samplers(3)


@case("aclnnAffineGrid", FLOATS)
def _(t, r):
    dims, corners = r.choice([2, 3]), r.random() < 0.5
    size = [2, 3] + [r.randint(1, 6) for _ in range(dims)]
    theta = draw((2, dims, dims + 1), t)
    return {"theta": theta, "size": size, "alignCorners": corners}, {"out": F.affine_grid(theta.double(), size, corners)}, 64


def columns(r):
    return [[r.randint(1, 3) for _ in range(2)], [r.randint(1, 2) for _ in range(2)], [r.randint(0, 2) for _ in range(2)], [r.randint(1, 3) for _ in range(2)]]


@case("aclnnIm2col", FLOATS)
def _(t, r):
    x, (k, d, p, s) = draw(([2] if r.random() < 0.5 else []) + [3, r.randint(6, 9), r.randint(6, 9)], t), columns(r)
    return {"self": x, "kernelSize": k, "dilation": d, "padding": p, "stride": s}, {"out": aten.im2col(x.double(), k, d, p, s)}, 0


@case("aclnnIm2colBackward", FLOATS)
def _(t, r):
    size, (k, d, p, s) = [r.randint(6, 9), r.randint(6, 9)], columns(r)
    dy = draw(aten.im2col(torch.zeros(2, 3, *size), k, d, p, s).shape, t)
    return {"gradOutput": dy, "inputSize": size, "kernelSize": k, "dilation": d, "padding": p, "stride": s}, {"out": aten.col2im(dy.double(), size, k, d, p, s)}, 64


# --- losses and distances

def ctc(r, t):
    steps, n, classes, blank = r.randint(4, 9), r.randint(1, 3), 5, r.choice([0, 2])
    inputs = [r.randint(3, steps) for _ in range(n)]
    labels = [r.randint(0, min(3, i)) for i in inputs]
    probs = torch.log_softmax(draw((steps, n, classes), torch.float64), -1).to(t)
    targets = torch.tensor([[r.choice([c for c in range(classes) if c != blank]) for _ in range(3)] for _ in range(n)])
    if r.random() < 0.5:
        targets = torch.cat([row[:k] for row, k in zip(targets, labels)])
    return probs, targets, inputs, labels, blank


@case("aclnnCtcLoss", WIDE, times=8)
def _(t, r):
    p, y, i, k, blank = ctc(r, t)
    loss, alpha = aten._ctc_loss(p.double(), y, i, k, blank, False)
    reached = torch.full((len(i), p.shape[0], 2 * max(k) + 1), -math.inf, dtype=torch.float64)
    for b, (steps, labels) in enumerate(zip(i, k)):  # beyond a sequence's end torch leaves memory as it was
        reached[b, :steps, : 2 * labels + 1] = alpha[b, :steps, : 2 * labels + 1]
    return ({"logProbs": p, "targets": y, "inputLengths": i, "targetlengths": k, "blank": blank, "zeroInfinity": False},
            {"negLogLikelihoodOut": loss, "logAlphaOut": reached}, 64)


@case("aclnnCtcLossBackward", WIDE, times=8)
def _(t, r):
    p, y, i, k, blank = ctc(r, t)
    loss, alpha = torch.empty(len(i), dtype=t), torch.empty(len(i), p.shape[0], 2 * max(k) + 1, dtype=t)
    lib("aclnnCtcLoss", logProbs=p, targets=y, inputLengths=i, targetlengths=k, blank=blank, zeroInfinity=True, negLogLikelihoodOut=loss, logAlphaOut=alpha)
    dy = draw((len(i),), t)
    want_loss, want_alpha = aten._ctc_loss(p.double(), y, i, k, blank, True)
    want = aten._ctc_loss_backward(dy.double(), p.double(), y, i, k, want_loss, want_alpha, blank, True)
    return ({"gradOut": dy, "logProbs": p, "targets": y, "inputLengths": i, "targetLengths": k, "negLogLikelihood": loss, "logAlpha": alpha, "blank": blank,
             "zeroInfinity": True}, {"out": want}, 256)


POWERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf]


@case("aclnnCdist", WIDE, times=8)
def _(t, r):
    b, n, p = r.choice([[], [2], [2, 1]]), r.randint(1, 5), r.choice(POWERS)
    x, y = draw(b + [r.randint(1, 5), n], t), draw([1] * len(b[:1]) + b[1:] + [r.randint(1, 5), n], t)
    return {"x1": x, "x2": y, "p": p, "compute_mode": 0}, {"out": torch.cdist(x.double(), y.double(), p, "donot_use_mm_for_euclid_dist")}, 64


@case("aclnnCdistBackward", WIDE, times=8)
def _(t, r):
    x, y, p = draw((2, 4, 3), t), draw((2, 5, 3), t), r.choice(POWERS)
    d = torch.cdist(x.double(), y.double(), p, "donot_use_mm_for_euclid_dist").to(t)
    dy = draw(d.shape, t)
    judge = torch.cdist(x.double(), y.double(), p, "donot_use_mm_for_euclid_dist")
    if math.isinf(p):  # which difference is the largest has to be the same number
        d = torch.cdist(x, y, p)
        judge = d.double()
    return {"grad": dy, "x1": x, "x2": y, "cdist": d, "p": p}, {"out": aten._cdist_backward(dy.double(), x.double(), y.double(), p, judge)}, 512


@case("aclnnPdist", WIDE)
def _(t, r):
    x, p = draw((r.randint(1, 6), 4), t), r.choice(POWERS)
    return {"self": x, "p": p}, {"out": torch.pdist(x.double(), p)}, 64


@case("aclnnSoftMarginLoss", FLOATS)
def _(t, r):
    x, y, k = draw((3, 5), t), draw((3, 5), torch.float64).sign().to(t), r.randrange(3)
    return {"self": x, "target": y, "reduction": k}, {"out": aten.soft_margin_loss(x.double(), y.double(), k)}, 32


@case("aclnnSoftMarginLossBackward", FLOATS)
def _(t, r):
    x, y, k = draw((3, 5), t), draw((3, 5), torch.float64).sign().to(t), r.randrange(3)
    dy = draw((3, 5) if k == 0 else (), t)
    return {"gradOutput": dy, "self": x, "target": y, "reduction": k}, {"out": aten.soft_margin_loss_backward(dy.double(), x.double(), y.double(), k)}, 32


@case("aclnnMultilabelMarginLoss", FLOATS)
def _(t, r):
    shape, k = r.choice([(3, 5), (5,)]), r.randrange(3)
    x = draw(shape, t)
    y = torch.stack([torch.cat([torch.randperm(5)[:n], torch.full((5 - n,), -1)]) for n in [r.randint(0, 4) for _ in range(3)]])[: 3 if len(shape) == 2 else 1].view(shape)
    loss, named = aten.multilabel_margin_loss_forward(x.double(), y, k)
    return {"self": x, "target": y, "reduction": k}, {"out": loss, "isTarget": (named, t)}, 32


# --- rows held below a norm, bags

@case("aclnnRenorm", FLOATS)
def _(t, r):
    x, p, dim = draw((3, 4, 2), t), r.choice([1.0, 2.0, 3.0]), r.choice([0, 1, -1])
    return {"self": x, "p": p, "dim": dim, "maxNorm": 2.0}, {"out": torch.renorm(x.double(), p, dim, 2.0)}, 32


@case("aclnnInplaceRenorm", FLOATS)
def _(t, r):
    x = draw((3, 4, 2), t)
    return {"selfRef": x, "p": 2.0, "dim": 1, "maxNorm": 1.5}, {"selfRef": torch.renorm(x.double(), 2.0, 1, 1.5)}, 32


@case("aclnnEmbeddingRenorm", FLOATS)
def _(t, r):
    x, i = draw((6, 4), t), torch.randint(0, 6, (2, 3))
    return {"selfRef": x, "indices": i, "maxNorm": 1.5, "normType": 2.0}, {"selfRef": torch.embedding_renorm_(x.double(), i.view(-1), 1.5, 2.0)}, 32


@case("aclnnEmbeddingBag", F3, times=8)
def _(t, r):
    weight, i, mode, pad, last = draw((7, 4), t), torch.randint(0, 7, (8,)), r.randrange(3), r.choice([-1, 3]), r.random() < 0.5
    offsets = torch.tensor([0] + sorted(r.randint(0, 8) for _ in range(2)) + ([8] if last else []))
    scale = draw((8,), t) if mode == 0 and r.random() < 0.5 else None
    y, bag, size, _ = aten._embedding_bag(weight.double(), i, offsets, False, mode, False, None if scale is None else scale.double(), last, pad)
    bags = y.shape[0]
    want_bag = torch.bucketize(torch.arange(8), offsets[:bags], right=True) - 1
    sizes = torch.tensor([int(((want_bag == b) & (i != pad)).sum()) for b in range(bags)])
    origins = torch.zeros(bags, 4, dtype=torch.int64)
    for b in range(bags if mode == 2 else 0):
        members = i[(want_bag == b) & (i != pad)]
        if members.numel():
            origins[b] = members[weight[members].double().argmax(0)]
    return ({"weight": weight, "indices": i, "offsets": offsets, "scaleGradByFreq": False, "mode": mode, "sparse": False, "perSampleWeights": scale,
             "includeLastOffset": last, "paddingIdx": pad},
            {"output": y, "offset2bag": (want_bag, torch.int64), "bagSize": (sizes, torch.int64), "maxIndices": (origins, torch.int64)}, 32)


# --- rare elementwise operators

@case("aclnnAngleV2", WIDE + [torch.int32] + COMPLEX)
def _(t, r):
    x = draw((3, 5), t)
    return {"x": x}, {"out": (torch.angle(precise(x) if t.is_complex or t.is_floating_point else x).double(), torch.float64 if t in (torch.float64, torch.complex128) else torch.float32)}, 8


@case("aclnnPolar", WIDE)
def _(t, r):
    x, a = draw((3, 5), t), draw((5,), t)
    return {"input": x, "angle": a}, {"out": (torch.polar(x.double(), a.double().expand(3, 5).contiguous()), torch.complex128 if t == torch.float64 else torch.complex64)}, 8


@case("aclnnMaskedScale", FLOATS)
def _(t, r):
    x, m = draw((3, 5), t), draw((3, 5), torch.uint8, 0, 2)
    return {"self": x, "mask": m, "scale": 1.25}, {"out": x.double() * m * 1.25}, 4


@case("aclnnFakeQuantPerTensorAffineCachemask", F32)
def _(t, r):
    x, scale, zero = draw((4, 6), t), torch.tensor(0.25), torch.tensor(r.randint(-3, 3), dtype=torch.int32)
    y, mask = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, zero, torch.tensor(1), -4, 7)
    return {"self": x, "scale": scale, "zeroPoint": zero, "fakeQuantEnabled": 1.0, "quantMin": -4, "quantMax": 7}, {"out": y, "mask": mask}, 4


@case("aclnnFakeQuantPerChannelAffineCachemask", F32)
def _(t, r):
    x, scale, zero = draw((4, 6, 2), t), torch.rand(6) + 0.1, torch.randint(-3, 4, (6,), dtype=torch.int32)
    y, mask = aten.fake_quantize_per_channel_affine_cachemask(x, scale, zero, 1, -8, 7)
    return {"self": x, "scale": scale, "zeroPoint": zero, "axis": 1, "quantMin": -8, "quantMax": 7}, {"out": y, "mask": mask}, 4


@case("aclnnScaledMaskedSoftmax", F3)
def _(t, r):
    x, mask = draw((2, 3, 4, 5), t), torch.rand(r.choice([(2, 1, 4, 5), (1, 1, 4, 5)])) < 0.4
    return {"x": x, "mask": mask, "scale": 0.5, "fixedTriuMask": False}, {"y": torch.softmax((x.double() * 0.5).masked_fill(mask, -10000.0), -1)}, 16


@case("aclnnScaledMaskedSoftmaxBackward", F3)
def _(t, r):
    y, dy, mask = torch.softmax(draw((2, 3, 4, 5), torch.float64), -1).to(t), draw((2, 3, 4, 5), t), torch.rand(2, 1, 4, 5) < 0.4
    p, g = y.double(), dy.double()
    return {"gradOutput": dy, "y": y, "mask": mask, "scale": 0.5, "fixTriuMask": False}, {"out": ((g - (g * p).sum(-1, True)) * p * 0.5).masked_fill(mask, 0)}, 32


@case("aclnnTransformBiasRescaleQkv", F3)
def _(t, r):
    x, bias = draw((2, 3, 24), t), draw((24,), t)
    q, k, v = (x.double() + bias.double()).view(2, 3, 3, 2, 4).permute(2, 0, 3, 1, 4)
    return {"qkv": x, "qkvBias": bias, "numHeads": 2}, {"qOut": q / 2, "kOut": k, "vOut": v}, 16


@pytest.mark.parametrize("dtype", FLOATS)
def test_rrelu(dtype):
    """Random: slopes lie in their range and are what was applied; the same seed gives the same slopes."""
    x = draw((64, 9), dtype)
    def drawn():
        call = driver.Call(lib.operators["aclnnRReluWithNoise"])
        values = {"self": x, "noise": torch.zeros_like(x), "lower": 0.125, "upper": 0.5, "training": True, "seed": 5, "offset": 4, "out": torch.zeros_like(x)}
        try:
            for param in call.op["params"]:
                call.add(param, values[param["name"]])
            call.run()
            return call.placed["noise"].fetch(), call.placed["out"].fetch()
        finally:
            call.close()

    (noise, out), (again, _) = drawn(), drawn()  # the table has noise as an input, which it is not
    below = x <= 0
    assert torch.equal(noise, again) and bool((noise[~below] == 1).all())
    assert noise[below].min() >= 0.125 and noise[below].max() <= 0.5 and noise[below].float().std() > 0.05
    close(out, torch.where(below, x.double() * noise.double(), x.double()), 4)
    lib("aclnnInplaceRReluWithNoise", self=x, noise=torch.zeros_like(x), lower=0.125, upper=0.5, training=False, seed=5, offset=4)
    assert bool((x[~below] > 0).all())


# --- recurrent networks

def network(kind, t, r):
    layers, both, first, bias = r.randint(1, 3), r.random() < 0.5, r.random() < 0.5, r.random() < 0.7
    steps, n, features, hidden = r.randint(1, 5), r.randint(1, 4), r.randint(1, 6), r.randint(1, 5)
    net = getattr(torch.nn, kind)(features, hidden, layers, bias=bias, batch_first=first, bidirectional=both).double()
    params = [p.detach().to(t) for p in net._flat_weights]
    net._flat_weights_names and [p.data.copy_(q.double()) for p, q in zip(net._flat_weights, params)]
    x = draw((n, steps, features) if first else (steps, n, features), t)
    d = 2 if both else 1
    return net, params, x, (layers, both, first, bias, steps, n, hidden, d)


def blank(count, shape, t):
    return [torch.zeros(shape, dtype=t) for _ in range(count)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent(kind, dtype):
    for number in range(4):
        r = seeded(kind, dtype, number)
        net, params, x, (layers, both, first, bias, steps, n, hidden, d) = network(kind, dtype, r)
        cells = layers * d
        state = [draw((cells, n, hidden), dtype) for _ in range(2)]
        judge_x = x.double().requires_grad_()
        judge_state = [s.double().requires_grad_() for s in state]
        y, last = net(judge_x, tuple(judge_state) if kind == "LSTM" else judge_state[0])
        lasts = list(last) if kind == "LSTM" else [last]
        out, got = torch.empty(y.shape, dtype=dtype), [torch.empty(s.shape, dtype=dtype) for s in lasts]
        common = {"hasBias": bias, "numLayers": layers, "batchFirst": first}
        kept = [blank(cells, (steps, n, hidden), dtype) for _ in range(7 if kind == "LSTM" else 5)]
        if kind == "LSTM":
            names = ["iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut"]
            lib("aclnnLSTM", input=x, params=params, hx=state, dropout=0.0, train=True, bidirectional=both, output=out, hy=got[0], cy=got[1],
                **common, **dict(zip(names, kept)))
        else:
            names = ["rOut", "zOut", "nOut", "hnOut", "hOut"]
            lib("aclnnGRU", input=x, params=params, hx=state[0], dropout=0.0, train=True, bidirection=both, output=out, hy=got[0], **common,
                **dict(zip(names, kept)))
        half = 64 if dtype == torch.float16 else 1
        close(out, y.detach(), 256 * half, 1)
        for g, w in zip(got, lasts):
            close(g, w.detach(), 256 * half, 4)
        dy, dlast = draw(y.shape, dtype), [draw(s.shape, dtype) for s in lasts]
        if dtype == torch.float16:
            continue  # gates are kept in halves: the gradient of kept halves is not that of the double network
        wanted = torch.autograd.grad([y, *lasts], [judge_x, *judge_state[:len(lasts)], *net._flat_weights], [dy.double(), *[g.double() for g in dlast]])
        dx, dstate, dparams = torch.empty_like(x), [torch.empty_like(s) for s in state], [torch.zeros_like(p) for p in params]
        if kind == "LSTM":
            lib("aclnnLstmBackward", input=x, hx=state, params=params, dy=dy, dh=dlast[0], dc=dlast[1], dropout=0.0, train=True, bidirectional=both,
                outputMask=[True] * 4, dxOut=dx, dhPrevOut=dstate[0], dcPrevOut=dstate[1], dparamsOut=dparams, **common,
                **dict(zip(["i", "g", "f", "o", "h", "c", "tanhc"], kept)))
        else:
            lib("aclnnGRUBackward", input=x, params=params, hx=state[0], dy=dy, dh=dlast[0], bidirection=both, dxOut=dx, dhPrevOut=dstate[0],
                dparamsOut=dparams, **common, **dict(zip(["r", "z", "n", "hn", "h"], kept)))
        for g, w in zip([dx, *dstate[:len(lasts)], *dparams], wanted):
            close(g, w, 4096, max(1.0, w.abs().max().item()))


@case("aclnnThnnFusedLstmCell", F3)
def _(t, r):
    n, h = r.randint(1, 4), r.randint(1, 5)
    x, y, c, bx, bh = draw((n, 4 * h), t), draw((n, 4 * h), t), draw((n, h), t), draw((4 * h,), t), draw((4 * h,), t)
    bias = r.random() < 0.5
    i, f, g, o = (x.double() + y.double() + ((bx.double() + bh.double()) if bias else 0)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * c.double() + i * g
    return ({"inputGates": x, "hiddenGates": y, "cx": c, "inputBiasOptional": bx if bias else None, "hiddenBiasOptional": bh if bias else None},
            {"hyOut": o * cy.tanh(), "cyOut": cy, "storageOut": torch.cat([i, f, g, o], 1)}, 64)


@case("aclnnThnnFusedLstmCellBackward", F32)
def _(t, r):
    n, h = r.randint(1, 4), r.randint(1, 5)
    gates, c = draw((n, 4 * h), torch.float64).requires_grad_(), draw((n, h), t)
    cx = c.double().requires_grad_()
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    dhy, dcy = draw((n, h), t), draw((n, h), t)
    dgates, dcx = torch.autograd.grad([o * cy.tanh(), cy], [gates, cx], [dhy.double(), dcy.double()])
    return ({"gradHyOptional": dhy, "gradCOptional": dcy, "cx": c, "cy": cy.detach().to(t), "storage": torch.cat([i, f, g, o], 1).detach().to(t), "hasBias": True},
            {"gradGatesOut": dgates, "gradCxOut": dcx, "gradBiasOut": dgates.sum(0)}, 64)


# --- language models

def turned(x, mode):
    if mode == 0:
        a, b = x.chunk(2, -1)
        return torch.cat([-b, a], -1)
    return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)


def rotary(t, r):
    x, shape = draw((2, 3, 4, 6), t), r.choice([(2, 3, 1, 6), (1, 3, 1, 6), (1, 1, 4, 6)])
    return x, draw(shape, t), draw(shape, t)


@case("aclnnRotaryPositionEmbedding", F3)
def _(t, r):
    (x, c, s), mode = rotary(t, r), r.randrange(2)
    return {"x": x, "cos": c, "sin": s, "mode": mode}, {"out": x.double() * c.double() + turned(x.double(), mode) * s.double()}, 8


@case("aclnnRotaryPositionEmbeddingV2", F3)
def _(t, r):
    (x, c, s), mode = rotary(t, r), r.randrange(2)
    return {"x": x, "cos": c, "sin": s, "mode": mode}, {"out": x.double() * c.double() + turned(x.double(), mode) * s.double()}, 8


@case("aclnnRotaryPositionEmbeddingGrad", F3)
def _(t, r):
    (x, c, s), mode, dy = rotary(t, r), r.randrange(2), draw((2, 3, 4, 6), t)
    args = [v.double().requires_grad_() for v in (x, c, s)]
    y = args[0] * args[1] + turned(args[0], mode) * args[2]
    dx, dc, ds = torch.autograd.grad(y, args, dy.double())
    return {"dy": dy, "cos": c, "sin": s, "xOptional": x, "mode": mode}, {"dxOut": dx, "dcosOut": dc, "dsinOut": ds}, 64


@case("aclnnApplyRotaryPosEmb", F3)
def _(t, r):
    q, k, c, s = draw((2, 3, 4, 6), t), draw((2, 3, 1, 6), t), draw((2, 3, 1, 6), t), draw((2, 3, 1, 6), t)
    f = lambda x: x.double() * c.double() + turned(x.double(), 0) * s.double()  # noqa: E731
    return {"queryRef": q, "keyRef": k, "cos": c, "sin": s, "layout": 1}, {"queryRef": f(q), "keyRef": f(k)}, 8


@case("aclnnApplyRotaryPosEmbV2", F3)
def _(t, r):
    q, k, c, s, mode = draw((2, 3, 4, 6), t), draw((2, 3, 1, 6), t), draw((2, 3, 1, 6), t), draw((2, 3, 1, 6), t), r.randrange(2)
    f = lambda x: x.double() * c.double() + turned(x.double(), mode) * s.double()  # noqa: E731
    return ({"queryRef": q, "keyRef": k, "cos": c, "sin": s, "layout": 1, "rotaryMode": ["half", "interleave"][mode]}, {"queryRef": f(q), "keyRef": f(k)}, 8)


@case("aclnnSwiGlu", F3)
def _(t, r):
    x, dim = draw((4, 6, 8), t), r.choice([0, 1, -1])
    a, b = x.double().chunk(2, dim)
    return {"x": x, "dim": dim}, {"out": F.silu(a) * b}, 16


@case("aclnnSwiGluGrad", F3)
def _(t, r):
    x, dim = draw((4, 6, 8), t), r.choice([0, 1, -1])
    w = x.double().requires_grad_()
    a, b = w.chunk(2, dim)
    dy = draw(a.shape, t)
    return {"yGrad": dy, "x": x, "dim": dim}, {"out": torch.autograd.grad(F.silu(a) * b, w, dy.double())[0]}, 32


def geglu(x, dim, tanh, left):
    a, b = x.chunk(2, dim)
    active, other = (a, b) if left else (b, a)
    g = F.gelu(active, approximate="tanh" if tanh else "none")
    return g * other, g


@case("aclnnGeGluV3", F3)
def _(t, r):
    x, dim, tanh, left = draw((4, 6), t), r.choice([0, -1]), r.randrange(2), r.random() < 0.5
    y, g = geglu(x.double(), dim, tanh, left)
    return {"self": x, "dim": dim, "approximate": tanh, "activateLeft": left}, {"out": y, "outGelu": g}, 16


@case("aclnnGeGluV3Backward", F3)
def _(t, r):
    x, dim, tanh, left = draw((4, 6), t), r.choice([0, -1]), r.randrange(2), r.random() < 0.5
    w = x.double().requires_grad_()
    y, g = geglu(w, dim, tanh, left)
    dy = draw(y.shape, t)
    want = torch.autograd.grad(y, w, dy.double(), retain_graph=True)[0]
    kept = g.detach().to(t)  # the gradient of the other half is that of what was kept
    a, b = want.chunk(2, dim)
    plain = dy.double() * kept.double()
    want = torch.cat([a, plain] if left else [plain, b], dim)
    return {"gradOutput": dy, "self": x, "gelu": kept, "dim": dim, "approximate": tanh, "activateLeft": left}, {"gradInput": want}, 32


@case("aclnnAddRmsNorm", F3)
def _(t, r):
    a, b, g = draw((3, 4, 8), t), draw((3, 4, 8), t), draw((8,), t)
    x = a.double() + b.double()
    rstd = (x.pow(2).mean(-1, True) + 1e-5).rsqrt()
    return {"x1": a, "x2": b, "gamma": g, "epsilon": 1e-5}, {"yOut": x * rstd * g.double(), "rstdOut": (rstd, torch.float32), "xOut": x}, 16


@case("aclnnInplaceAddRmsNorm", F3)
def _(t, r):
    a, b, g = draw((3, 8), t), draw((3, 8), t), draw((8,), t)
    x = a.double() + b.double()
    rstd = (x.pow(2).mean(-1, True) + 1e-5).rsqrt()
    return {"x1Ref": a, "x2Ref": b, "gamma": g, "epsilon": 1e-5}, {"x1Ref": x * rstd * g.double(), "x2Ref": x, "rstdOut": (rstd, torch.float32)}, 16


@case("aclnnForeachRoundOffNumberV2", FLOATS)
def _(t, r):
    mode = r.choice([1, 2, 3, 5, 7])
    f = {1: torch.round, 2: torch.floor, 3: torch.ceil, 5: torch.trunc, 7: torch.frac}[mode]
    x = [draw(s, t, -4, 4) for s in ((3, 5), (), (7,))]
    return {"x": x, "roundMode": mode}, {"out": ([f(v.double()) for v in x], t)}, 0


@case("aclnnForeachRoundOffNumber", F3)
def _(t, r):
    x = [draw(s, t, -4, 4) for s in ((3, 5), (7,))]
    return {"x": x, "roundMode": torch.tensor([2.0])}, {"out": ([torch.floor(v.double()) for v in x], t)}, 0


# --- attention of inference

def heads(q, k, v, scale, hidden):
    g = q.shape[1] // k.shape[1]
    k, v = k.double().repeat_interleave(g, 1), v.double().repeat_interleave(g, 1)
    scores = (q.double() @ k.mT * scale).masked_fill(hidden, -math.inf)
    top = scores.amax(-1, True)
    e = (scores - top).exp()
    return e @ v / e.sum(-1, True), top + e.sum(-1, True).log()


def cache(t, r):
    b, kv, g, s, d = 2, r.randint(1, 2), r.randint(1, 2), r.randint(2, 7), 8
    return draw((b, kv * g, r.choice([1, 3]), d), t), draw((b, kv, s, d), t), draw((b, kv, s, d), t), [r.randint(1, s) for _ in range(b)]


def inference(name, lists, old, one=False):
    @case(name, F3)
    def _(t, r):
        q, k, v, lengths = cache(t, r)
        if one:
            q = q[:, :, :1]
        hidden = torch.stack([torch.arange(k.shape[2]) >= n for n in lengths])[:, None, None, :]
        y, lse = heads(q, k, v, 0.25, hidden)
        args = {"query": q, "key": [k] if lists else k, "value": [v] if lists else v, "numHeads": q.shape[1], "scaleValue": 0.25, "numKeyValueHeads": k.shape[1],
                "inputLayout": "BNSD", "innerPrecise": 0}
        if not one:
            args |= {"preTokens": 2147483647, "nextTokens": 2147483647, "sparseMode": 0}
        if one:
            return args | {"actualSeqLengths": lengths, "blockSize": 0}, {"attentionOut": y}, 64
        if old:
            return args | {"actualSeqLengths": [q.shape[2]], "actualSeqLengthsKv": lengths}, {"attentionOut": y}, 64
        return (args | {"actualSeqLengthsKvOptional": lengths, "blockSize": 0, "antiquantMode": 0, "softmaxLseFlag": True, "keyAntiquantMode": 0, "valueAntiquantMode": 0},
                {"attentionOut": y, "softmaxLse": (lse, torch.float32)}, 64)


inference("aclnnFusedInferAttentionScoreV2", True, False)
inference("aclnnFusedInferAttentionScoreV3", True, False)
inference("aclnnPromptFlashAttentionV3", False, True)
inference("aclnnIncreFlashAttentionV4", True, True, one=True)


@case("aclnnConvTbc", F3)
def _(t, r):
    x, w, b, pad = draw((r.randint(3, 6), 2, 3), t), draw((r.randint(1, 3), 3, 4), t), draw((4,), t), r.randint(0, 2)
    return {"self": x, "weight": w, "bias": b, "pad": pad, "cubeMathType": 0}, {"output": torch.conv_tbc(x.double(), w.double(), b.double(), pad)}, 64


@case("aclnnConvTbcBackward", F3)
def _(t, r):
    x, w, b, pad = draw((r.randint(3, 6), 2, 3), t), draw((r.randint(1, 3), 3, 4), t), draw((4,), t), r.randint(0, 2)
    dy = draw(torch.conv_tbc(x.double(), w.double(), b.double(), pad).shape, t)
    dx, dw, db = aten.conv_tbc_backward(dy.double(), x.double(), w.double(), b.double(), pad)
    return {"self": dy, "input": x, "weight": w, "bias": b, "pad": pad, "cubeMathType": 0}, {"gradInput": dx, "gradWeight": dw, "gradBias": db}, 64


@case("aclnnGroupedMatmul", F3)
def _(t, r):
    x = [draw((r.randint(1, 4), 5), t) for _ in range(3)]
    w, b = [draw((5, 6), t) for _ in range(3)], [draw((6,), t) for _ in range(3)]
    return {"x": x, "weight": w, "biasOptional": b, "splitItem": 0}, {"y": ([a.double() @ c.double() + d.double() for a, c, d in zip(x, w, b)], t)}, 64


def grouped(t, r):
    rows, kind = [r.randint(0, 4) for _ in range(3)], r.randrange(2)
    x, w = draw((sum(rows) + 1, 5), t), draw((3, 5, 6), t)
    groups = torch.tensor(rows if kind else [sum(rows[:i + 1]) for i in range(3)])
    want = torch.cat([a.double() @ c.double() for a, c in zip(x[:sum(rows)].split(rows), w)])
    if sum(rows) == 0:
        x = x[:0]
    else:
        x = x[:sum(rows)]
    return ({"x": [x], "weight": [w], "groupListOptional": groups, "splitItem": 3, "groupType": 0, "groupListType": kind, "actType": 0},
            {"out": ([want], t)}, 64)


case("aclnnGroupedMatmulV4", F3)(grouped)
case("aclnnGroupedMatmulV5", F3)(grouped)


# --- slices, chunks, coordinates

@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64, torch.bool])
def test_unique_dim(dtype):
    for shape, dim in [((6, 2), 0), ((2, 7), 1), ((2, 5, 2), -2), ((8,), 0)]:
        x = draw(shape, torch.int32, 0, 2).to(dtype)
        n = x.shape[dim]
        values, inverse, counts = torch.zeros(x.numel(), dtype=dtype), torch.zeros(n, dtype=torch.int64), torch.zeros(n, dtype=torch.int64)
        room = values.view(shape)
        shapes = lib("aclnnUniqueDim", self=relaid(x, random.Random(n)), sorted=True, returnInverse=True, dim=dim, valueOut=room, inverseOut=inverse, countsOut=counts)
        want = torch.unique(x, True, True, True, dim)
        k = want[0].numel()
        assert shapes["valueOut"] == tuple(want[0].shape) and shapes["countsOut"] == tuple(want[2].shape)
        assert torch.equal(values[:k].view(want[0].shape), want[0]) and torch.equal(inverse, want[1])
        assert torch.equal(counts[: want[2].numel()], want[2])


@case("aclnnChunkCat", F3)
def _(t, r):
    dim, chunks = r.randrange(2), r.randint(1, 4)
    lead = [3] if dim else []
    x = [draw(lead + [r.randint(1, 6), r.randint(1, 3)], t) for _ in range(3)]
    return {"tensors": x, "dim": dim, "numChunks": chunks}, {"out": torch._chunk_cat([v.double() for v in x], dim, chunks)}, 0


@case("aclnnScatterNdUpdate", FLOATS + [torch.int32])
def _(t, r):
    x, depth = draw((3, 4, 2), t), r.randint(1, 3)
    index = torch.stack([torch.randperm(24)[:4] // s % n for s, n in ((8, 3), (2, 4), (1, 2))][:depth], -1)
    index = index.unique(dim=0)  # the last of several to one place is nobody's promise
    updates = draw((index.shape[0],) + x.shape[depth:], t)
    want = x.clone()
    want[tuple(index.unbind(-1))] = updates
    return {"varRef": x, "indices": index, "updates": updates}, {"varRef": want}, 0


@case("aclnnQuantize", F32)
def _(t, r):
    x, channel = draw((4, 6), t, -4, 4), r.random() < 0.5
    scale, zero = (torch.rand(6) + 0.1, torch.randint(-3, 4, (6,))) if channel else (torch.tensor([0.25]), torch.tensor([3]))
    want = (torch.quantize_per_channel(x, scale, zero, 1, torch.qint8) if channel else torch.quantize_per_tensor(x, 0.25, 3, torch.qint8)).int_repr()
    return {"x": x, "scales": scale, "zeroPoints": zero.to(torch.int32), "dtype": torch.int8, "axis": 1}, {"out": (want, torch.int8)}, 0


def test_random_with_seed_tensors():
    """The same numbers as the forms that take plain seeds."""
    seed, offset = torch.tensor([7]), torch.tensor([4])
    a, b = torch.empty(300), torch.empty(300)
    lib("aclnnStatelessExponentialTensor", self=a, seedTensor=seed, offsetTensor=offset, offset=2, lambd=1.5)
    lib("aclnnSimThreadExponential", selfRef=b, count=300, **{"lambda": 1.5}, seed=7, offset=6)
    assert torch.equal(a, b) and 0.4 < a.mean() < 1.0
    x, y, z = torch.randn(256), torch.empty(256), torch.empty(256)
    m, n = torch.empty(32, dtype=torch.uint8), torch.empty(32, dtype=torch.uint8)
    lib("aclnnDropoutV3Tensor", input=x, p=0.25, seedTensor=seed, offsetTensor=offset, offset=2, out=y, maskOut=m)
    lib("aclnnDropoutV3", input=x, p=0.25, seed=7, offset=6, out=z, maskOut=n)
    assert torch.equal(y, z) and torch.equal(m, n) and 150 < int((y != 0).sum()) < 230


# --- short-time Fourier transform, regions of images, repeated slices

@case("aclStft", [torch.float32, torch.float64])
def _(t, r):
    n = r.choice([4, 8, 15, 20])
    win, hop = r.randint(1, n), r.randint(1, n)
    x = draw([r.randint(1, 3)] * r.randint(0, 1) + [r.randint(n, 60)], t)
    window, normalized, onesided = r.choice([None, draw((win,), t)]), r.random() < 0.5, r.random() < 0.5
    given = (torch.ones(win, dtype=t) if window is None else window).double()
    want = torch.stft(x.double(), n, hop, win, given, False, "reflect", normalized, onesided, True)
    want = want.to(torch.complex64 if t == torch.float32 else torch.complex128)
    return ({"self": x, "windowOptional": window, "nFft": n, "hopLength": hop, "winLength": win, "normalized": normalized, "onesided": onesided, "returnComplex": True},
            {"out": (want, want.dtype)}, 20 * n)


def region_weights(height, width, roi, bins_y, bins_x, samples, scale):
    """[bins_y, bins_x, height, width]: how much each pixel counts in each bin."""
    out = torch.zeros(bins_y, bins_x, height, width, dtype=torch.float64)
    x1, y1, x2, y2 = (roi[1:] * torch.tensor(scale)).tolist()
    h, w = max(y2 - y1, 1.0) / bins_y, max(x2 - x1, 1.0) / bins_x
    for by in range(bins_y):
        for bx in range(bins_x):
            for iy in range(samples):
                for ix in range(samples):
                    y, x = y1 + by * h + (iy + 0.5) * h / samples, x1 + bx * w + (ix + 0.5) * w / samples
                    if y < -1 or y > height or x < -1 or x > width:
                        continue
                    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
                    y0, x0 = int(y), int(x)
                    ya, xa = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
                    for py, wy in ((y0, 1 - (y - y0)), (ya, y - y0)):
                        for px, wx in ((x0, 1 - (x - x0)), (xa, x - x0)):
                            out[by, bx, py, px] += wy * wx / samples**2
    return out


def regions(r):
    n, c, height, width = r.randint(1, 2), r.randint(1, 3), r.randint(3, 8), r.randint(3, 8)
    by, bx, samples, scale = r.randint(1, 3), r.randint(1, 3), r.randint(1, 3), 0.5
    corners = torch.rand(r.randint(1, 3), 4) * 10 - 1
    corners[:, 2:] += corners[:, :2].clamp(min=0)
    rois = torch.cat([torch.randint(0, n, (len(corners), 1)).float(), corners], 1)
    weights = torch.stack([region_weights(height, width, roi, by, bx, samples, scale) for roi in rois])
    return n, c, height, width, by, bx, samples, scale, rois, weights


@case("aclnnROIAlign", F32)
def _(t, r):
    n, c, height, width, by, bx, samples, scale, rois, weights = regions(r)
    x = draw((n, c, height, width), t)
    want = torch.einsum("rabhw,rchw->rcab", weights, x.double()[rois[:, 0].long()])
    return ({"self": x, "rois": rois, "spatial_scale_value": scale, "pooled_height": by, "pooled_width": bx, "sample_num": samples, "roi_end_mode": 0},
            {"result": (want, t)}, 512)


@pytest.mark.parametrize("corner", [1e30, 3e38, float("inf"), float("nan")])
def test_regions_as_large_as_numbers(corner):
    """Points outside of the image count nothing, however many there are: the call ends."""
    rois = torch.tensor([[0, -corner, -corner, corner, corner], [0, 1, 1, corner, 4]])
    out = torch.full((2, 1, 2, 2), 7.0)
    lib("aclnnROIAlign", self=torch.ones(1, 1, 4, 4), rois=rois, spatial_scale_value=1.0, pooled_height=2, pooled_width=2, sample_num=0, roi_end_mode=0, result=out)
    assert not torch.isfinite(torch.tensor(corner)) or bool((out.abs() <= 1).all()), out


@case("aclnnROIAlignBackward", F32)
def _(t, r):
    n, c, height, width, by, bx, samples, scale, rois, weights = regions(r)
    grad = draw((len(rois), c, by, bx), t)
    each = torch.einsum("rabhw,rcab->rchw", weights, grad.double())
    want = torch.zeros(n, c, height, width, dtype=torch.float64).index_add(0, rois[:, 0].long(), each)
    return ({"self": grad, "rois": rois, "xdiff_shape": [n, c, height, width], "pooled_width": bx, "pooled_height": by, "spatial_scale_value": scale,
             "sample_num": samples, "roi_end_mode_value": 0}, {"result": (want, t)}, 512)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_slices_that_follow_one_another(dtype):
    for number in range(6):
        r = seeded("unique consecutive slices", dtype, number)
        x = torch.randint(0, 2, [r.randint(1, 7), r.randint(1, 3), r.randint(1, 3)]).to(dtype)
        dim = r.randint(-3, 2)
        want = torch.unique_consecutive(x, True, True, dim)
        n = x.shape[dim]
        values, inverse, counts = torch.zeros(x.shape, dtype=dtype), torch.zeros(n, dtype=torch.int64), torch.zeros(n, dtype=torch.int64)
        shapes = lib("aclnnUniqueConsecutive", self=relaid(x, r), returnInverse=True, returnCounts=True, dim=dim, valueOut=values, inverseOut=inverse, countsOut=counts)
        assert shapes["valueOut"] == tuple(want[0].shape) and shapes["countsOut"] == tuple(want[2].shape)
        assert torch.equal(values.flatten()[: want[0].numel()].view(want[0].shape), want[0])
        assert torch.equal(inverse, want[1]) and torch.equal(counts[: len(want[2])], want[2])
