"""Reductions, norms, indexing, shapes, sorting, losses and optimizers against torch on the CPU, through the C ABI.

Inputs are drawn at run time; the seed is printed with a failure.
"""
from __future__ import annotations

import math
import os
import random
import zlib

import pytest
import torch
import torch.nn.functional as F

from aclnn_call import Failure, lib

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
EPS = {torch.float32: 2 ** -23, torch.float16: 2 ** -10, torch.bfloat16: 2 ** -7, torch.float64: 2 ** -52}
INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def seed(request):
    value = zlib.crc32(f"{SEED} {request.node.name}".encode())
    torch.manual_seed(value)
    random.seed(value)
    print(f"ANYNPU_SEED={SEED}")


def layouts(t: torch.Tensor):
    """The same values in different memory: dense, permuted, with gaps, at an offset."""
    yield t
    if t.dim() >= 2:
        yield t.transpose(0, -1).contiguous().transpose(0, -1)
    if t.dim() >= 1 and t.numel():
        wide = torch.zeros(*t.shape[:-1], t.shape[-1] * 2 + 1, dtype=t.dtype)
        view = wide[..., 1::2]
        view.copy_(t)
        yield view


def close(got: torch.Tensor, want: torch.Tensor, terms: float = 1.0, scale: float | None = None):
    """Rounded once in got's type, after f32 arithmetic with `terms` roundings of values of size `scale`."""
    assert got.shape == want.shape, (got.shape, want.shape)
    if not got.dtype.is_floating_point:
        assert torch.equal(got, want.to(got.dtype)), (got, want)
        return
    g, w = got.double(), want.double()
    eps = EPS[got.dtype]
    inner = EPS[torch.float64 if got.dtype == torch.float64 else torch.float32]
    size = scale if scale is not None else (w[torch.isfinite(w)].abs().max().item() if torch.isfinite(w).any() else 1.0)
    allowed = eps * w.abs() + inner * terms * max(size, 1e-30) + (1e-7 if got.dtype == torch.float16 else 0)
    same = (g == w) | (g.isnan() & w.isnan())
    bad = ~(same | ((g - w).abs() <= allowed))
    assert not bad.any(), f"{int(bad.sum())} of {g.numel()} differ, worst {(g - w).abs()[bad].max()}: {g[bad][:4]} {w[bad][:4]}"


def f64(t):
    return t.double() if t.dtype.is_floating_point else t


SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 17), (4, 1, 33), (2, 130), (3, 0, 2)]


def dim_choices(n):
    yield []
    for d in range(n):
        yield [d]
    if n >= 2:
        yield [0, -1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("keep", [False, True])
def test_float_reductions(dtype, keep):
    for shape in SHAPES:
        base = torch.randn(shape).to(dtype)
        for x in layouts(base):
            n = max(1, x.numel())
            for dims in dim_choices(x.dim()):
                t = tuple(dims) if dims else tuple(range(x.dim()))
                want = f64(x).sum(t, keep)
                out = torch.empty(want.shape, dtype=dtype)
                lib("aclnnReduceSum", self=x, dims=dims, keepDims=keep, dtype=dtype, out=out)
                close(out, want, n ** 0.5, f64(x).abs().sum().item())
                if x.numel():
                    lib("aclnnMean", self=x, dim=dims, keepDim=keep, dtype=dtype, out=out)
                    close(out, f64(x).mean(t, keep), n ** 0.5, 3)
                    lib("aclnnAmax", self=x, dim=dims, keepDim=keep, out=out)
                    close(out, x.amax(t, keep) if x.dim() else x, 0)
                    lib("aclnnAmin", self=x, dim=dims, keepDim=keep, out=out)
                    close(out, x.amin(t, keep) if x.dim() else x, 0)
                    lib("aclnnLogSumExp", self=x, dim=dims, keepDim=keep, out=out)
                    close(out, torch.logsumexp(f64(x), t, keep) if x.dim() else f64(x), 8, 4)
                    for p in (0.0, 1.0, 2.0, 3.0, INF, -INF, 0.5):
                        lib("aclnnNorm", self=x, pScalar=p, dim=dims, keepdim=keep, out=out)
                        want = torch.linalg.vector_norm(f64(x), p, t, keep) if x.dim() else torch.linalg.vector_norm(f64(x), p)
                        if dtype != torch.float16 or want.abs().max() < 60000:
                            close(out, want, 16)
                    var, mean = torch.empty_like(out), torch.empty_like(out)
                    for correction in (0, 1):
                        lib("aclnnVarMean", self=x, dim=dims, correction=correction, keepdim=keep, varOut=var, meanOut=mean)
                        wv, wm = torch.var_mean(f64(x), t or None, correction=correction, keepdim=keep)
                        close(var, wv, 16, 4)
                        close(mean, wm, 16, 3)
                        lib("aclnnStd", self=x, dim=dims, correction=correction, keepdim=keep, out=out)
                        close(out, wv.sqrt(), 16, 4)


def test_integer_and_bool_reductions():
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool):
        for shape in SHAPES:
            x = torch.randint(0, 2 if dtype == torch.bool else 100, shape).to(dtype)
            for v in layouts(x):
                for dims in dim_choices(v.dim()):
                    t = tuple(dims) if dims else tuple(range(v.dim()))
                    want = v.sum(t) if v.dim() else v.sum()
                    out = torch.empty(want.shape, dtype=torch.int64)
                    lib("aclnnReduceSum", self=v, dims=dims, keepDims=False, dtype=torch.int64, out=out)
                    close(out, want)
                    flag = torch.empty(want.shape, dtype=torch.bool)
                    lib("aclnnAny", self=v, dim=dims, keepdim=False, out=flag)
                    close(flag, torch.any(v, t) if v.dim() else v.bool())
                    lib("aclnnAll", self=v, dim=dims, keepdim=False, out=flag)
                    close(flag, torch.all(v, t) if v.dim() else v.bool())
                    out = torch.empty(want.shape, dtype=torch.float32)
                    lib("aclnnReduceSum", self=v, dims=dims, keepDims=False, dtype=torch.float32, out=out)
                    close(out, v.double().sum(t) if v.dim() else v.double())


@pytest.mark.parametrize("dtype", FLOATS + [torch.int64, torch.bool, torch.uint8])
def test_extremes_along_a_dim(dtype):
    for shape in [(1,), (7,), (3, 5), (2, 3, 17), (4, 1, 33), (70, 700)]:
        base = torch.randint(-4, 4, shape).to(dtype) if dtype != torch.bool else torch.rand(shape) < 0.3
        if dtype.is_floating_point:
            base.view(-1)[random.randrange(base.numel())] = NAN
        for x in layouts(base):
            for dim in range(-x.dim(), x.dim()):
                for keep in (False, True):
                    for name, judge in (("aclnnMaxDim", torch.max), ("aclnnMinDim", torch.min)):
                        want, at = judge(x, dim, keep)
                        out, where = torch.empty_like(want), torch.empty_like(at)
                        lib(name, self=x, dim=dim, keepdim=keep, out=out, indices=where)
                        close(out, want, 0)
                        assert torch.equal(where, at), (x, dim)
                    if dtype == torch.bool:
                        continue
                    for name, judge in (("aclnnArgMax", torch.argmax), ("aclnnArgMin", torch.argmin)):
                        want = judge(x, dim, keep)
                        out = torch.empty_like(want)
                        lib(name, self=x, dim=dim, keepdim=keep, out=out)
                        assert torch.equal(out, want)
        one = torch.empty((), dtype=dtype)
        lib("aclnnMax", self=base, out=one)
        close(one, base.max(), 0)
        lib("aclnnMin", self=base, out=one)
        close(one, base.min(), 0)


@pytest.mark.parametrize("dtype", FLOATS + [torch.int32, torch.int64])
def test_running_sums(dtype):
    for shape in [(), (7,), (3, 5), (2, 130, 3), (0, 4)]:
        base = (torch.randn(shape) * 3).to(dtype)
        for x in layouts(base):
            for dim in range(-max(1, x.dim()), max(1, x.dim())):
                out = torch.empty(x.shape, dtype=dtype)
                lib("aclnnCumsum", self=x, dim=dim, dtype=dtype, out=out)
                close(out, torch.cumsum(f64(x), dim), 4, 3.0 * max(1, x.numel()))
                lib("aclnnCumprod", input=x, dim=dim, dtype=dtype, out=out)
                want = torch.cumprod(f64(x), dim)
                ok = want.abs() < 6e4
                close(torch.where(ok, out, 0), torch.where(ok, want, 0).to(dtype), 4, 6e4)
                if x.numel() and x.dim():
                    v, i = torch.cummax(x, dim)
                    values, where = torch.empty(x.shape, dtype=dtype), torch.empty(x.shape, dtype=torch.int64)
                    lib("aclnnCummax", self=x, dim=dim, valuesOut=values, indicesOut=where)
                    assert torch.equal(values, v) and torch.equal(where, i)


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype):
    for shape in [(), (5,), (3, 17), (2, 33, 19), (2, 3, 4, 5), (3, 3000), (2, 0)]:
        base, grad = torch.randn(shape).mul(3).to(dtype), torch.randn(shape).to(dtype)
        for x in layouts(base):
            for dim in range(-max(1, x.dim()), max(1, x.dim())):
                out, dx = torch.empty(x.shape, dtype=dtype), torch.empty(x.shape, dtype=dtype)
                lib("aclnnSoftmax", self=x, dim=dim, out=out)
                close(out, torch.softmax(f64(x), dim), 8, 1)
                lib("aclnnSoftmaxBackward", gradOutput=grad, output=out, dim=dim, out=dx)
                close(dx, torch.ops.aten._softmax_backward_data(f64(grad), f64(out), dim, torch.float64), 64, 3)
                lib("aclnnLogSoftmax", self=x, dim=dim, out=out)
                close(out, torch.log_softmax(f64(x), dim), 8, 20)
                lib("aclnnLogSoftmaxBackward", gradOutput=grad, output=out, dim=dim, out=dx)
                close(dx, torch.ops.aten._log_softmax_backward_data(f64(grad), f64(out), dim, torch.float64), 64,
                      3 + grad.abs().sum().item() ** 0.5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_and_rms_norm(dtype, affine):
    for shape, normal in [((4, 8), (8,)), ((2, 3, 65), (65,)), ((2, 3, 5), (3, 5)), ((7, 3000), (3000,))]:
        base, grad = (torch.randn(shape) * 2 + 1).to(dtype), torch.randn(shape).to(dtype)
        w = torch.randn(normal).to(dtype) if affine else None
        b = torch.randn(normal).to(dtype) if affine else None
        stat_shape = shape[:len(shape) - len(normal)] + (1,) * len(normal)
        stat = torch.float64 if dtype == torch.float64 else torch.float32
        for x in layouts(base):
            out, mean, rstd = torch.empty(shape, dtype=dtype), torch.empty(stat_shape, dtype=stat), torch.empty(stat_shape, dtype=stat)
            args = (f64(x), normal, None if w is None else f64(w), None if b is None else f64(b), 1e-5)
            want, wm, wr = torch.native_layer_norm(*args)
            for name in ("aclnnLayerNorm", "aclnnFastLayerNorm"):
                lib(name, input=x, normalizedShape=normal, weightOptional=w, biasOptional=b, eps=1e-5, out=out, meanOutOptional=mean,
                    rstdOutOptional=rstd)
                close(out, want, 32, 8)
                close(mean, wm.view(stat_shape), 16, 4)
                close(rstd, wr.view(stat_shape), 16, 4)
            dx = torch.empty(shape, dtype=dtype)
            dw = torch.empty(normal, dtype=dtype) if affine else None
            db = torch.empty(normal, dtype=dtype) if affine else None
            lib("aclnnLayerNormBackward", gradOut=grad, input=x, normalizedShape=normal, mean=mean, rstd=rstd, weightOptional=w, biasOptional=b,
                outputMask=[True, affine, affine], gradInputOut=dx, gradWeightOut=dw, gradBiasOut=db)
            wants = torch.ops.aten.native_layer_norm_backward(f64(grad), f64(x), normal, f64(mean), f64(rstd), args[2], args[3],
                                                              [True, affine, affine])
            close(dx, wants[0], 64, 8)
            if affine:
                rows = x.numel() / wants[1].numel()
                close(dw, wants[1], 16, 8 * rows)
                close(db, wants[2], 16, 8 * rows)
            if not affine:
                continue
            g = f64(w)
            d = tuple(range(-len(normal), 0))
            r = torch.rsqrt(f64(x).square().mean(d, True) + 1e-6)
            lib("aclnnRmsNorm", x=x, gamma=w, epsilon=1e-6, yOut=out, rstdOut=rstd)
            close(out, f64(x) * r * g, 16, 8)
            close(rstd, r, 16)
            h = f64(x) * f64(rstd)
            gw = f64(grad) * g
            lib("aclnnRmsNormGrad", dy=grad, x=x, rstd=rstd, gamma=w, dxOut=dx, dgammaOut=dw)
            close(dx, f64(rstd) * (gw - h * (gw * h).mean(d, True)), 64, 8)
            close(dw, (f64(grad) * h).sum(tuple(range(len(shape) - len(normal)))), 16, 8 * rows)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(dtype, training, affine):
    for shape in [(8, 5), (4, 3, 7), (2, 6, 5, 4), (3, 70, 9, 9)]:
        x, grad = (torch.randn(shape) + 0.5).to(dtype), torch.randn(shape).to(dtype)
        forms = [x]
        if len(shape) == 4:
            forms.append(x.contiguous(memory_format=torch.channels_last))
        c = shape[1]
        stat = torch.float64 if dtype == torch.float64 else torch.float32
        w, b = (torch.randn(c, dtype=stat), torch.randn(c, dtype=stat)) if affine else (None, None)
        for v in forms:
            rm, rv = torch.randn(c, dtype=stat), torch.rand(c, dtype=stat) + 0.5
            wrm, wrv = rm.double(), rv.double()
            out = torch.empty_like(v)
            sm, si = torch.zeros(c, dtype=stat), torch.zeros(c, dtype=stat)
            want, wsm, wsi = torch.native_batch_norm(f64(v), None if w is None else w.double(), None if b is None else b.double(), wrm, wrv,
                                                     training, 0.1, 1e-5)
            lib("aclnnBatchNorm", input=v, weight=w, bias=b, runningMean=rm, runningVar=rv, training=training, momentum=0.1, eps=1e-5, output=out,
                saveMean=sm, saveInvstd=si)
            close(out, want, 64, 8)
            if training:
                close(sm, wsm, 16, 2)
                close(si, wsi, 16, 2)
            close(rm, wrm, 16, 2)
            close(rv, wrv, 16, 2)
            dx, dw, db = torch.empty_like(v), torch.empty(c, dtype=stat), torch.empty(c, dtype=stat)
            g = grad if v.is_contiguous() else grad.contiguous(memory_format=torch.channels_last)
            lib("aclnnBatchNormBackward", gradOut=g, input=v, weight=w, runningMean=rm, runningVar=rv, saveMean=sm, saveInvstd=si, training=training,
                eps=1e-5, outputMask=[True, affine, affine], gradInput=dx, gradWeight=dw, gradBias=db)
            wants = torch.ops.aten.native_batch_norm_backward(f64(g), f64(v), None if w is None else w.double(), rm.double(), rv.double(),
                                                              sm.double(), si.double(), training, 1e-5, [True, affine, affine])
            close(dx, wants[0], 64, 8)
            if affine:
                close(dw, wants[1], 16, 4 * v.numel() / c)
                close(db, wants[2], 16, 4 * v.numel() / c)
            mean, inv = torch.empty(c, dtype=stat), torch.empty(c, dtype=stat)
            lib("aclnnBatchNormStats", input=v, eps=1e-5, mean=mean, invstd=inv)
            flat = f64(v).transpose(0, 1).flatten(1)
            close(mean, flat.mean(1), 16, 2)
            close(inv, (flat.var(1, correction=0) + 1e-5).rsqrt(), 16, 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_group_norm(dtype):
    for n, c, hw, groups in [(2, 6, (5,), 3), (3, 8, (4, 5), 8), (1, 4, (70, 70), 1)]:
        x, grad = (torch.randn(n, c, *hw) + 1).to(dtype), torch.randn(n, c, *hw).to(dtype)
        w, b = torch.randn(c).to(dtype), torch.randn(c).to(dtype)
        s = math.prod(hw)
        out, mean, rstd = torch.empty_like(x), torch.empty(n, groups, dtype=dtype), torch.empty(n, groups, dtype=dtype)
        lib("aclnnGroupNorm", self=x, gamma=w, beta=b, N=n, C=c, HxW=s, group=groups, eps=1e-5, out=out, meanOut=mean, rstdOut=rstd)
        want, wm, wr = torch.native_group_norm(f64(x), f64(w), f64(b), n, c, s, groups, 1e-5)
        close(out, want, 64, 8)
        close(mean, wm, 16, 2)
        close(rstd, wr, 16, 2)
        dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
        lib("aclnnGroupNormBackward", gradOut=grad, input=x, mean=mean, rstd=rstd, gamma=w, N=n, C=c, HxW=s, group=groups,
            outputMask=[True, True, True], gradInput=dx, gradGammaOut=dw, gradBetaOut=db)
        wants = torch.ops.aten.native_group_norm_backward(f64(grad), f64(x), f64(mean), f64(rstd), f64(w), n, c, s, groups, [True] * 3)
        close(dx, wants[0], 64, 16)
        close(dw, wants[1], 16, 8 * n * s)
        close(db, wants[2], 16, 8 * n * s)


ANY = [torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.bool, torch.float64]


def some(shape, dtype):
    return torch.randint(0, 2, shape).bool() if dtype == torch.bool else (torch.randn(shape) * 9).to(dtype)


@pytest.mark.parametrize("dtype", ANY)
def test_reading_by_index(dtype):
    table = some((11, 6), dtype)
    for form in layouts(table):
        for shape in [(), (4,), (2, 3), (0,)]:
            idx = torch.randint(0, 11, shape)
            for index in (idx, idx.int()):
                out = torch.empty(*shape, 6, dtype=dtype)
                lib("aclnnEmbedding", weight=form, indices=index, out=out)
                assert torch.equal(out, F.embedding(idx, form))
    for shape in [(5,), (4, 6), (3, 4, 5)]:
        base = some(shape, dtype)
        for x in layouts(base):
            for dim in range(-len(shape), len(shape)):
                i = torch.randint(0, shape[dim], (7,))
                want = torch.index_select(x, dim, i)
                out = torch.empty_like(want)
                lib("aclnnIndexSelect", self=x, dim=dim, index=i, out=out)
                assert torch.equal(out, want)
                gshape = [random.randint(1, n) for n in shape]
                gshape[dim] = 9
                g = torch.randint(0, shape[dim], gshape)
                out = torch.empty(gshape, dtype=dtype)
                lib("aclnnGather", self=x, dim=dim, index=g, out=out)
                assert torch.equal(out, torch.gather(x, dim, g))
    x = some((4, 5, 6), dtype)
    a, b = torch.tensor([0, -1, 2]), torch.tensor([[1], [3]])
    none = torch.empty(0, dtype=torch.int64)
    for indices in ([a], [none, a], [a, none, a], [b, a], [none, b, a], [a, b, b], [b, none, a]):
        real = [None if i.numel() == 0 else i for i in indices]
        want = torch.ops.aten.index(x, real)
        for form in layouts(x):
            out = torch.empty_like(want)
            lib("aclnnIndex", self=form, indices=indices, out=out)
            assert torch.equal(out, want)
    i = torch.randint(0, 120, (3, 4))
    out = torch.empty(3, 4, dtype=dtype)
    lib("aclnnTake", self=x.transpose(0, 2), index=i, out=out)
    assert torch.equal(out, torch.take(x.transpose(0, 2), i))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.float64])
def test_writing_by_index(dtype):
    for shape in [(5,), (4, 6), (3, 4, 5)]:
        base = some(shape, dtype)
        for x in layouts(base):
            for dim in range(-len(shape), len(shape)):
                gshape = [random.randint(1, n) for n in shape]
                gshape[dim] = min(3, shape[dim])
                unique = torch.stack([torch.randperm(shape[dim])[:gshape[dim]] for _ in range(math.prod(gshape) // gshape[dim])])
                index = unique.view([n for d, n in enumerate(gshape) if d != dim % len(gshape)] + [gshape[dim]]).movedim(-1, dim).contiguous()
                src = some(gshape, dtype)
                out = torch.empty_like(x)
                for reduce, how in ((0, None), (1, "add"), (2, "multiply")):
                    lib("aclnnScatter", self=x, dim=dim, index=index, src=src, reduce=reduce, out=out)
                    want = torch.scatter(x, dim, index, src) if how is None else torch.scatter(x, dim, index, src, reduce=how)
                    close(out, want, 2)
                    inplace = x.clone()
                    lib("aclnnInplaceScatter", selfRef=inplace, dim=dim, index=index, src=src, reduce=reduce)
                    close(inplace, want, 2)
                    lib("aclnnScatterValue", self=x, dim=dim, index=index, value=3, reduce=reduce, out=out)
                    want = torch.scatter(x, dim, index, 3) if how is None else torch.scatter(x, dim, index, 3, reduce=how)
                    close(out, want, 2)
                many = torch.randint(0, shape[dim], gshape)
                lib("aclnnScatterAdd", self=x, dim=dim, index=many, src=src, out=out)
                close(out, torch.scatter_add(f64(x), dim, many, f64(src)), 8, 60)
                for reduce, how in ((1, "sum"), (2, "prod"), (3, "amax"), (4, "amin"), (5, "mean")):
                    for include in (True, False):
                        lib("aclnnScatterReduce", self=x, dim=dim, index=many, src=src, reduce=reduce, includeSelf=include, out=out)
                        close(out, torch.scatter_reduce(f64(x), dim, many, f64(src), how, include_self=include), 8)
                i = torch.randint(0, shape[dim], (6,))
                sshape = list(shape)
                sshape[dim] = 6
                source = some(sshape, dtype)
                lib("aclnnIndexAdd", self=x, dim=dim, index=i, source=source, alpha=2, out=out)
                close(out, torch.index_add(f64(x), dim, i, f64(source), alpha=2), 8, 200)
                lib("aclnnIndexFill", self=x, dim=dim, index=i, value=4, out=out)
                close(out, torch.index_fill(x, dim, i, 4), 0)
                lib("aclnnIndexFillTensor", self=x, dim=dim, index=i.tolist(), value=4, out=out)
                close(out, torch.index_fill(x, dim, i, 4), 0)
    x = some((4, 5, 6), dtype)
    a, b = torch.tensor([0, -1, 2]), torch.tensor([[1], [3]])
    none = torch.empty(0, dtype=torch.int64)
    for indices in ([a], [none, a], [a, none, a], [b, a], [none, b, a], [a, b, b]):
        real = [None if i.numel() == 0 else i for i in indices]
        shape = torch.ops.aten.index(x, real).shape
        for values in (some(shape, dtype), some((1,), dtype), some(shape[-1:], dtype)):
            for accumulate in (False, True):
                for form in layouts(x):
                    got = form.clone(memory_format=torch.preserve_format)
                    lib("aclnnIndexPutImpl", selfRef=got, indices=indices, values=values, accumulate=accumulate, unsafe=False)
                    close(got, torch.ops.aten.index_put(f64(x), real, f64(values), accumulate), 8, 60)


def test_embedding_backward():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for padding in (-1, 3):
            for by_freq in (False, True):
                grad, idx = torch.randn(40, 30, 17).to(dtype), torch.randint(0, 13, (40, 30))
                out = torch.empty(13, 17, dtype=dtype)
                lib("aclnnEmbeddingDenseBackward", grad=grad, indices=idx, numWeights=13, paddingIdx=padding & (2 ** 64 - 1),
                    scaleGradByFreq=by_freq, out=out)
                close(out, torch.ops.aten.embedding_dense_backward(grad.double(), idx, 13, padding, by_freq), 16, 60)


@pytest.mark.parametrize("name, args, dim, size", [
    ("aclnnEmbedding", dict(weight=torch.randn(4, 3), indices=torch.tensor([1, 9]), out=torch.empty(2, 3)), 0, 4),
    ("aclnnGather", dict(self=torch.randn(4, 3), dim=1, index=torch.tensor([[0, -1]]), out=torch.empty(1, 2)), 1, 3),
    ("aclnnIndexSelect", dict(self=torch.randn(4, 3), dim=0, index=torch.tensor([4]), out=torch.empty(1, 3)), 0, 4),
    ("aclnnIndex", dict(self=torch.randn(4, 3), indices=[torch.tensor([-5])], out=torch.empty(1, 3)), 0, 4),
    ("aclnnScatterAdd", dict(self=torch.randn(4), dim=0, index=torch.tensor([7]), src=torch.randn(1), out=torch.empty(4)), 0, 4),
    ("aclnnNLLLoss", dict(self=torch.randn(2, 3), target=torch.tensor([0, 3]), reduction=1, ignoreIndex=-100, out=torch.empty(()),
                          totalWeightOut=torch.empty(())), 1, 3),
])
def test_bad_indices_are_named(name, args, dim, size):
    with pytest.raises(Failure) as failure:
        lib(name, **args)
    assert failure.value.phase != 1  # it runs, and a card reports when it is waited for
    assert name in failure.value.text and f"dim {dim}" in failure.value.text and f"size {size}" in failure.value.text


@pytest.mark.parametrize("dtype", ANY)
def test_selection(dtype):
    for shape in [(), (7,), (3, 5), (40, 700), (0, 3)]:
        x = some(shape, dtype)
        for form in layouts(x):
            for rate in (0.0, 0.3, 1.0):
                mask = torch.rand(shape) < rate
                out = torch.empty(x.numel(), dtype=dtype)
                got = lib("aclnnMaskedSelect", self=form, mask=mask, out=out)["out"]
                want = torch.masked_select(form, mask)
                assert got == tuple(want.shape) and torch.equal(out[:got[0]], want)
                source = some((x.numel() + 2,), dtype)
                inplace = form.clone(memory_format=torch.preserve_format)
                lib("aclnnInplaceMaskedScatter", selfRef=inplace, mask=mask, source=source)
                assert torch.equal(inplace, form.masked_scatter(mask, source))
            out = torch.empty(x.numel(), x.dim(), dtype=torch.int64)
            got = lib("aclnnNonzero", self=form, out=out)["out"]
            want = torch.nonzero(form)
            assert got == tuple(want.shape) and torch.equal(out.view(-1)[:want.numel()].view(want.shape), want)
            out = torch.empty(x.dim(), x.numel(), dtype=torch.int64)
            got = lib("aclnnNonzeroV2", self=form, out=out)["out"]
            assert got == tuple(want.t().shape) and torch.equal(out.view(-1)[:want.numel()].view(want.t().shape), want.t())


@pytest.mark.parametrize("dtype", ANY)
def test_equal(dtype):
    flag = torch.empty(1, dtype=torch.bool)
    for shape in SHAPES:
        x = some(shape, dtype)
        for form in layouts(x):
            lib("aclnnEqual", self=form, other=x, out=flag)
            assert bool(flag)
            lib("aclnnEqual", self=form, other=x[None], out=flag)
            assert not bool(flag), "another shape"
            if x.numel():
                other = x.clone()
                other.view(-1)[random.randrange(x.numel())] = 0 if bool(x.ne(0).all()) else 1
                lib("aclnnEqual", self=form, other=other, out=flag)
                assert bool(flag) == torch.equal(x, other)
    nan = torch.tensor([1.0, NAN])
    lib("aclnnEqual", self=nan, other=nan, out=flag)
    assert not bool(flag)


def test_unique():
    for dtype in (torch.float32, torch.int64, torch.int32, torch.bool):
        for shape in [(30,), (5, 8), (0,)]:
            x = torch.randint(0, 2 if dtype == torch.bool else 6, shape).to(dtype)
            want, inverse, counts = torch.unique(x, True, True, True)
            value, inv, count = torch.empty(x.numel(), dtype=dtype), torch.empty(shape, dtype=torch.int64), torch.empty(x.numel(), dtype=torch.int64)
            got = lib("aclnnUnique2", self=x, sorted=True, returnInverse=True, returnCounts=True, valueOut=value, inverseOut=inv, countsOut=count)
            n = got["valueOut"][0]
            assert torch.equal(value[:n], want) and torch.equal(inv, inverse) and torch.equal(count[:n], counts)
            want, inverse, counts = torch.unique_consecutive(x, True, True)
            got = lib("aclnnUniqueConsecutive", self=x, returnInverse=True, returnCounts=True, dim=1000, valueOut=value, inverseOut=inv,
                      countsOut=count)
            n = got["valueOut"][0]
            assert torch.equal(value[:n], want) and torch.equal(inv, inverse) and torch.equal(count[:n], counts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_sorting(dtype):
    for shape in [(), (1,), (9,), (4, 70), (3, 5, 6)]:
        base = some(shape, dtype)
        if dtype.is_floating_point and base.numel() > 2:
            base.view(-1)[0], base.view(-1)[-1] = NAN, -INF
        for x in layouts(base):
            for dim in range(-max(1, x.dim()), max(1, x.dim())):
                for descending in (False, True):
                    want, at = torch.sort(x, dim=dim, descending=descending, stable=True)
                    values, where = torch.empty_like(want), torch.empty_like(at)
                    lib("aclnnSort", self=x, stable=True, dim=dim, descending=descending, valuesOut=values, indicesOut=where)
                    close(values, want, 0)
                    assert torch.equal(where, at)
                n = x.shape[dim] if x.dim() else 1
                for k in {1, max(1, n // 2), n}:
                    if dtype == torch.bool:
                        continue
                    for largest in (True, False):
                        want, _ = torch.topk(x, k, dim, largest, True)
                        values, where = torch.empty_like(want), torch.empty(want.shape, dtype=torch.int64)
                        for name, v, i, more in (("aclnnTopk", "valuesOut", "indicesOut", {}), ("aclnnTopkV2", "values", "indices", {"sortPolicy": 1})):
                            lib(name, self=x, k=k, dim=dim, largest=largest, sorted=True, **{v: values, i: where}, **more)
                            close(values, want, 0)
                            close(torch.gather(x, dim, where) if x.dim() else x, want, 0)


def test_searching():
    edges = torch.tensor([0.0, 1.0, 1.0, 2.5, 7.0])
    x = torch.cat([torch.randn(20) * 5, edges, torch.tensor([NAN])])
    for right in (False, True):
        out = torch.empty(x.shape, dtype=torch.int64)
        lib("aclnnBucketize", self=x, boundaries=edges, outInt32=False, right=right, out=out)
        assert torch.equal(out, torch.bucketize(x, edges, right=right))
        rows, values = torch.randn(4, 9).sort(1)[0], torch.randn(4, 6)
        out = torch.empty(4, 6, dtype=torch.int32)
        lib("aclnnSearchSorted", sortedSequence=rows, self=values, outInt32=True, right=right, out=out)
        assert torch.equal(out, torch.searchsorted(rows, values, out_int32=True, right=right))
        one = torch.empty((), dtype=torch.int64)
        lib("aclnnSearchSorteds", sortedSequence=edges, self=1.0, outInt32=False, right=right, out=one)
        assert torch.equal(one, torch.searchsorted(edges, 1.0, right=right))


@pytest.mark.parametrize("dtype", ANY + [torch.complex64])
def test_shapes(dtype):
    def draw(shape):
        return torch.randn(shape, dtype=dtype) if dtype.is_complex else some(shape, dtype)
    a, b = draw((3, 4, 5)), draw((3, 2, 5))
    for x in layouts(a):
        for y in layouts(b):
            out = torch.empty(3, 6, 5, dtype=dtype)
            lib("aclnnCat", tensors=[x, y], dim=-2, out=out)
            assert torch.equal(out, torch.cat([x, y], -2))
        for dim in range(-4, 4):
            want = torch.stack([x, a], dim)
            out = torch.empty_like(want)
            lib("aclnnStack", tensors=[x, a], dim=dim, out=out)
            assert torch.equal(out, want)
        outs = [torch.empty(3, n, 5, dtype=dtype) for n in (1, 3)]
        lib("aclnnSplitWithSize", self=x, splitSize=[1, 3], dim=1, out=outs)
        assert all(torch.equal(o, w) for o, w in zip(outs, torch.split(x, [1, 3], 1)))
        for repeats in ([1, 1, 1], [2, 1, 3], [2, 3, 1, 1], [0, 1, 1]):
            want = x.repeat(repeats)
            out = torch.empty_like(want)
            lib("aclnnRepeat", self=x, repeats=repeats, out=out)
            assert torch.equal(out, want)
        for dims in ([0], [-1], [0, 2], []):
            out = torch.empty(3, 4, 5, dtype=dtype)
            lib("aclnnFlip", self=x, dims=dims, out=out)
            assert torch.equal(out, torch.flip(x, dims))
        for shifts, dims in (([3], []), ([1], [0]), ([-2, 7], [1, 2])):
            out = torch.empty(3, 4, 5, dtype=dtype)
            lib("aclnnRoll", x=x, shifts=shifts, dims=dims, out=out)
            assert torch.equal(out, torch.roll(x, shifts, dims or None))
        for k in (0, 1, -2, 9):
            for name, judge in (("Tril", torch.tril), ("Triu", torch.triu)):
                out = torch.empty(3, 4, 5, dtype=dtype)
                lib("aclnn" + name, self=x, diagonal=k, out=out)
                assert torch.equal(out, judge(x, k))
                inplace = x.clone(memory_format=torch.preserve_format)
                lib("aclnnInplace" + name, selfRef=inplace, diagonal=k)
                assert torch.equal(inplace, judge(x, k))
        for dim in range(-3, 3):
            want = torch.repeat_interleave(x, 3, dim)
            out = torch.empty(want.shape, dtype=dtype)
            lib("aclnnRepeatInterleaveIntWithDim", self=x, repeats=3, dim=dim, outputSize=want.shape[dim], out=out)
            assert torch.equal(out, want)
            counts = torch.randint(0, 4, (x.shape[dim],))
            want = torch.repeat_interleave(x, counts, dim)
            out = torch.empty(want.shape, dtype=dtype)
            lib("aclnnRepeatInterleaveWithDim", self=x, repeats=counts, dim=dim, outputSize=want.shape[dim], out=out)
            assert torch.equal(out, want)
        if not dtype.is_complex:
            for pad in ([1, 2], [0, 1, 2, 0], [-1, 2, 1, -1, 0, 3]):
                want = torch.constant_pad_nd(x, pad, 1)
                out = torch.empty(want.shape, dtype=dtype)
                lib("aclnnConstantPadNd", self=x, pad=pad, value=1, out=out)
                assert torch.equal(out, want)
    mixed = torch.empty(2, 6)
    left, right = torch.arange(6).view(2, 3), torch.randn(2, 3)
    lib("aclnnCat", tensors=[left, right], dim=1, out=mixed)
    assert torch.equal(mixed, torch.cat([left, right], 1))
    classes = torch.randint(0, 5, (3, 4))
    hot = torch.empty(3, 4, 5, dtype=torch.int64)
    lib("aclnnOneHot", self=classes, numClasses=5, onValue=torch.tensor([1]), offValue=torch.tensor([0]), axis=-1, out=hot)
    assert torch.equal(hot, F.one_hot(classes, 5))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_elementwise_losses(dtype, reduction):
    A = torch.ops.aten
    x, y = torch.randn(3, 1500).to(dtype), torch.randn(3, 1500).to(dtype)
    p, t = torch.rand(3, 1500).to(dtype), torch.rand(3, 1500).to(dtype)
    w, pw = torch.rand(1500).to(dtype), (torch.rand(1500) + 0.5).to(dtype)
    n = x.numel() if reduction == 2 else 1

    def check(name, want, out_name="out", terms=32, **args):
        out = torch.empty(want.shape, dtype=dtype)
        lib(name, reduction=reduction, **args, **{out_name: out})
        close(out, want, terms, 8 * n)

    d = [v.double() for v in (x, y, p, t, w, pw)]
    check("aclnnMseLoss", A.mse_loss(d[0], d[1], reduction), self=x, target=y)
    check("aclnnL1Loss", F.l1_loss(d[0], d[1], reduction=["none", "mean", "sum"][reduction]), self=x, target=y)
    check("aclnnSmoothL1Loss", A.smooth_l1_loss(d[0], d[1], reduction, 0.5), "result", self=x, target=y, beta=0.5)
    for weight in (None, w):
        check("aclnnBinaryCrossEntropy", A.binary_cross_entropy(d[2], d[3], None if weight is None else d[4], reduction), self=p, target=t,
              weight=weight)
        for pos in (None, pw):
            check("aclnnBinaryCrossEntropyWithLogits",
                  A.binary_cross_entropy_with_logits(d[0], d[3], None if weight is None else d[4], None if pos is None else d[5], reduction),
                  self=x, target=t, weightOptional=weight, posWeightOptional=pos)
    for log in (False, True):
        check("aclnnKlDiv", A.kl_div(d[0], d[1] if log else d[3], reduction, log_target=log), self=x, target=y if log else t, logTarget=log)
    g = torch.randn(x.shape if reduction == 0 else ()).to(dtype)
    G = g.double()
    n = 1
    share = x.numel() if reduction == 1 else 1
    check("aclnnMseLossBackward", A.mse_loss_backward(G, d[0], d[1], reduction), gradOutput=g, self=x, target=y)
    check("aclnnL1LossBackward", torch.sign(d[0] - d[1]) * G / share, "gradInput", gradOutput=g, self=x, target=y)
    check("aclnnSmoothL1LossBackward", A.smooth_l1_loss_backward(G, d[0], d[1], reduction, 0.5), "gradInput", gradOut=g, self=x, target=y, beta=0.5)
    q = p.clamp(0.05, 0.95)
    check("aclnnBinaryCrossEntropyBackward", A.binary_cross_entropy_backward(G, q.double(), d[3], d[4], reduction), terms=400, gradOutput=g, self=q,
          target=t, weightOptional=w)
    e = d[0].clone().requires_grad_()
    A.binary_cross_entropy_with_logits(e, d[3], d[4], d[5], reduction).backward(G)
    check("aclnnBinaryCrossEntropyWithLogitsBackward", e.grad, gradOutput=g, self=x, target=t, weightOptional=w, posWeightOptional=pw)
    for log in (False, True):
        target = y if log else t.clamp(min=0.01)
        e, r = d[0].clone().requires_grad_(), target.double().requires_grad_()
        A.kl_div(e, r, reduction, log_target=log).backward(G)
        check("aclnnKlDivBackward", e.grad, gradOutput=g, self=x, target=target, logTarget=log)
        check("aclnnKlDivTargetBackward", r.grad, "gradTarget", gradOutput=g, self=x, target=target, logTarget=log)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_nll(dtype, reduction):
    A = torch.ops.aten
    for shape in [(5,), (40, 7), (2, 5, 3, 4)]:
        classes = shape[0] if len(shape) == 1 else shape[1]
        tshape = [n for i, n in enumerate(shape) if i != (0 if len(shape) == 1 else 1)]
        x = torch.log_softmax(torch.randn(shape), 0 if len(shape) == 1 else 1).to(dtype)
        w = (torch.rand(classes) + 0.1).to(dtype)
        for ignore in (-100, 1):
            t = torch.randint(0, classes, tshape)
            for weight in (w, None):
                two = "2d" if len(shape) == 4 else ""
                forward, backward = getattr(A, f"nll_loss{two}_forward"), getattr(A, f"nll_loss{two}_backward")
                wd = None if weight is None else weight.double()
                want, total = forward(x.double(), t, wd, reduction, ignore)
                out, tw = torch.empty(want.shape, dtype=dtype), torch.empty((), dtype=dtype)
                lib("aclnnNLLLoss" + two, self=x, target=t, weight=weight, reduction=reduction, ignoreIndex=ignore, out=out, totalWeightOut=tw)
                close(out, want, 16, 4 * x.numel())
                if reduction == 1:
                    close(tw, total, 4)
                g = torch.randn(want.shape).to(dtype)
                wide = tw if reduction == 1 else torch.zeros((), dtype=dtype)
                dx = torch.empty(shape, dtype=dtype)
                lib("aclnnNLLLoss" + two + "Backward", gradOutput=g, self=x, target=t, weight=weight, reduction=reduction, ignoreIndex=ignore,
                    totalWeight=wide, out=dx)
                close(dx, backward(g.double(), x.double(), t, wd, reduction, ignore, wide.double()), 8, 4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("amsgrad", [True, False])
@pytest.mark.parametrize("maximize", [True, False])
def test_optimizers(dtype, amsgrad, maximize):
    shape = (3, 1700)
    for decoupled in (True, False):
        w = torch.randn(shape).to(dtype)
        m, v, top = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
        p = w.double().requires_grad_()
        kind = torch.optim.AdamW if decoupled else torch.optim.Adam
        judge = kind([p], lr=1e-2, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1, amsgrad=amsgrad, maximize=maximize, foreach=False)
        for step in range(3):
            g = torch.randn(shape).to(dtype)
            p.grad = g.double()
            judge.step()
            # A half state rounds every step: the judge goes on from what was stored.
            if decoupled:
                lib("aclnnApplyAdamWV2", varRef=w, mRef=m, vRef=v, maxGradNormOptionalRef=top if amsgrad else None, grad=g,
                    step=torch.tensor([float(step)]), lr=1e-2, beta1=0.9, beta2=0.99, weightDecay=0.1, eps=1e-6, amsgrad=amsgrad,
                    maximize=maximize)
            else:
                lib("aclnnFusedAdam", params=[w], grads=[g], expAvgs=[m], expAvgSqs=[v], maxExpAvgSqs=[top] if amsgrad else None,
                    stateSteps=[torch.tensor(float(step + 1))], lr=1e-2, beta1=0.9, beta2=0.99, weightDecay=0.1, eps=1e-6, amsgrad=amsgrad,
                    maximize=maximize)
            close(w, p.detach(), 64, 4)
            with torch.no_grad():
                p.copy_(w)
                state = judge.state[p]
                state["exp_avg"].copy_(m)
                state["exp_avg_sq"].copy_(v)
                if amsgrad:
                    state["max_exp_avg_sq"].copy_(top)
    for nesterov in (False, True):
        w, buf = torch.randn(shape).to(dtype), torch.full(shape, 9.0, dtype=dtype)
        p = w.double().requires_grad_()
        judge = torch.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0 if nesterov else 0.5, weight_decay=0.01, nesterov=nesterov, maximize=maximize)
        for step in range(3):
            g = torch.randn(shape).to(dtype)
            p.grad = g.double()
            judge.step()
            lib("aclnnFusedSgd", paramsRef=[w], gradsRef=[g], momentumBufferListOptionalRef=[buf], weightDecay=0.01, momentum=0.9, lr=0.1,
                dampening=0.0 if nesterov else 0.5, nesterov=nesterov, maximize=maximize, isFirstStep=step == 0)
            close(w, p.detach(), 64, 4)
            with torch.no_grad():
                p.copy_(w)
                judge.state[p]["momentum_buffer"].copy_(buf)
