"""Operators whose siblings have the larger tests: the same kernels behind another signature, against torch in float64."""
from __future__ import annotations

import os
import random
import zlib

import pytest
import torch

from aclnn_call import lib
from test_simd_families import FLOATS, close, f64, layouts, some

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))


@pytest.fixture(autouse=True)
def seed(request):
    value = zlib.crc32(f"{SEED} {request.node.name}".encode())
    torch.manual_seed(value)
    random.seed(value)
    print(f"ANYNPU_SEED={SEED}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_products(dtype):
    for m, k, n in [(1, 1, 1), (3, 17, 5), (2, 0, 4), (33, 70, 40)]:
        a, b, u, v = (torch.randn(s).to(dtype) for s in ((2, m, k), (2, k, n), (k,), (k,)))
        for name, args, want in (("BatchMatMul", dict(self=a, mat2=b), f64(a) @ f64(b)), ("Mm", dict(self=a[1], mat2=b[0]), f64(a[1]) @ f64(b[0])),
                                 ("Mv", dict(self=a[0], vec=u), f64(a[0]) @ f64(u)), ("Dot", dict(self=u, tensor=v), f64(u) @ f64(v))):
            out = torch.empty(want.shape, dtype=dtype)
            lib("aclnn" + name, **args, out=out, **({} if name == "Dot" else {"cubeMathType": 0}))
            close(out, want, k + 3, 9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_batch_norm_in_parts(dtype):
    n, c, positions, momentum, eps = 4, 5, 7, 0.25, 1e-5
    x, grad = (torch.randn(n, c, positions) + 1).to(dtype), torch.randn(n, c, positions).to(dtype)
    mean, invstd, weight, bias = torch.randn(c), torch.rand(c) + 0.5, torch.randn(c), torch.randn(c)
    wide = lambda t: f64(t).view(1, c, 1)  # noqa: E731
    out = torch.empty_like(x)
    lib("aclnnBatchNormElemt", input=x, weight=weight, bias=bias, mean=mean, invstd=invstd, eps=eps, output=out)
    close(out, (f64(x) - wide(mean)) * wide(invstd) * wide(weight) + wide(bias), 16, 30)
    sums = [torch.empty(c) for _ in range(4)]
    lib("aclnnBatchNormReduceBackward", gradOut=grad, input=x, mean=mean, invstd=invstd, weight=weight, inputG=True, weightG=True, biasG=True,
        sumDy=sums[0], sumDyXmu=sums[1], gradWeight=sums[2], gradBias=sums[3])
    dy, moved = f64(grad).sum((0, 2)), (f64(grad) * (f64(x) - wide(mean))).sum((0, 2))
    for got, want in zip(sums, (dy, moved, moved * f64(invstd), dy)):
        close(got, want, 16, 60)
    dx, counter = torch.empty_like(x), torch.tensor([n * positions, 2 * n * positions], dtype=torch.int32)
    lib("aclnnBatchNormElemtBackward", gradOut=grad, input=x, mean=mean, invstd=invstd, weight=weight, sumDy=sums[0], sumDyXmu=sums[1],
        counter=counter, gradInput=dx)
    count = int(counter.sum())
    shifted = (f64(x) - wide(mean)) * wide(invstd) ** 2 * wide(sums[1]) / count
    close(dx, (f64(grad) - wide(sums[0]) / count - shifted) * wide(invstd) * wide(weight), 16, 60)


def test_statistics_of_several_ranks():
    c, momentum, eps = 5, 0.25, 1e-5
    parts = [torch.randn(k, c, dtype=torch.float64) * 2 + 1 for k in (6, 11, 9)]
    whole = torch.cat(parts)
    counts = torch.tensor([float(len(p)) for p in parts])
    means = torch.stack([p.mean(0) for p in parts]).float()
    inverse = torch.stack([(p.var(0, correction=0) + eps).rsqrt() for p in parts]).float()
    running = [torch.randn(c), torch.rand(c) + 0.5]
    before = [t.clone() for t in running]
    mean, invstd = torch.empty(c), torch.empty(c)
    lib("aclnnBatchNormGatherStatsWithCounts", input=torch.randn(2, c, 3), mean=means, invstd=inverse, runningMean=running[0],
        runningVar=running[1], momentum=momentum, eps=eps, counts=counts, meanAll=mean, invstdAll=invstd)

    def check():
        close(mean, whole.mean(0), 16, 4)
        close(invstd, (whole.var(0, correction=0) + eps).rsqrt(), 64, 4)
        close(running[0], before[0].double() * (1 - momentum) + momentum * whole.mean(0), 16, 4)
        close(running[1], before[1].double() * (1 - momentum) + momentum * whole.var(0), 64, 8)

    check()
    for now, then in zip(running, before):
        now.copy_(then)
    lib("aclnnSyncBatchNormGatherStats", totalSum=torch.stack([p.sum(0) for p in parts]).float(),
        totalSquareSum=torch.stack([(p * p).sum(0) for p in parts]).float(), sampleCount=counts.int(), mean=running[0], variance=running[1],
        momentum=momentum, eps=eps, batchMean=mean, batchInvstd=invstd)
    close(mean, whole.mean(0), 16, 4)
    # Sums of squares cancel against the square of the mean: the given sums were rounded to float32.
    close(invstd, (whole.var(0, correction=0) + eps).rsqrt(), 256, 4)
    close(running[0], before[0].double() * (1 - momentum) + momentum * whole.mean(0), 16, 4)
    close(running[1], before[1].double() * (1 - momentum) + momentum * whole.var(0), 256, 16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_index_forms(dtype):
    for shape in [(5,), (4, 6), (3, 4, 5)]:
        for x in layouts(some(shape, dtype)):
            for dim in range(-len(shape), len(shape)):
                index = torch.randint(0, shape[dim], (6,))
                source = some([6 if d == dim % len(shape) else n for d, n in enumerate(shape)], dtype)
                out = torch.empty_like(x)
                lib("aclnnIndexAddV2", self=x, dim=dim, index=index, source=source, alpha=2, mode=0, out=out)
                close(out, torch.index_add(f64(x), dim, index, f64(source), alpha=2), 8, 200)
                for name, form in (("InplaceIndexFill", index), ("InplaceIndexFillTensor", index.tolist())):
                    inplace = x.clone()
                    lib("aclnn" + name, selfRef=inplace, dim=dim, index=form, value=4)
                    assert torch.equal(inplace, torch.index_fill(x, dim, index, 4))
                many = torch.randint(0, shape[dim], shape)
                src = some(shape, dtype)
                for reduce, how in ((1, "sum"), (2, "prod"), (3, "amax"), (4, "amin"), (5, "mean")):
                    inplace = x.clone()
                    lib("aclnnInplaceScatterReduce", selfRef=inplace, dim=dim, index=many, src=src, reduce=reduce, includeSelf=True)
                    close(inplace, torch.scatter_reduce(f64(x), dim, many, f64(src), how, include_self=True), 8)
                inplace = x.clone()
                lib("aclnnInplaceScatterValue", selfRef=inplace, dim=dim, index=many, value=3, reduce=0)
                assert torch.equal(inplace, torch.scatter(x, dim, many, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_order(dtype):
    for shape in [(9,), (4, 33), (3, 1, 7)]:
        x = some(shape, dtype)
        for form in layouts(x):
            for dim in range(-len(shape), len(shape)):
                values, where = torch.empty_like(x), torch.empty(shape, dtype=torch.int64)
                lib("aclnnCummin", self=form, dim=dim, valuesOut=values, indicesOut=where)
                want, index = torch.cummin(form, dim)
                assert torch.equal(values, want) and torch.equal(where, index)
                for keep in (False, True):
                    k = random.randint(1, shape[dim])
                    want, _ = torch.kthvalue(form, k, dim, keep)
                    values, where = torch.empty_like(want), torch.empty(want.shape, dtype=torch.int64)
                    lib("aclnnKthvalue", self=form, k=k, dim=dim, keepdim=keep, valuesOut=values, indicesOut=where)
                    found = form.gather(dim, where if keep else where.unsqueeze(dim))
                    assert torch.equal(values, want) and torch.equal(found if keep else found.squeeze(dim), want)
    x = torch.randint(-5, 5, (40,)).to(dtype)
    want, inverse = torch.unique(x, True, True)
    value, back = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
    n = lib("aclnnUnique", self=x, sorted=True, returnInverse=True, valueOut=value, inverseOut=back)["valueOut"][0]
    assert torch.equal(value[:n], want) and torch.equal(back, inverse)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_repeats(dtype):
    x, counts = some((3, 4), dtype), torch.randint(0, 4, (12,))
    want = torch.repeat_interleave(x, counts)
    out = torch.empty_like(want)
    lib("aclnnRepeatInterleave", self=x, repeats=counts, outputSize=len(want), out=out)
    assert torch.equal(out, want)
    out = torch.empty(36, dtype=dtype)
    lib("aclnnRepeatInterleaveInt", self=x, repeats=3, outputSize=36, out=out)
    assert torch.equal(out, torch.repeat_interleave(x, 3))
    out = torch.empty(int(counts.sum()), dtype=torch.int64)
    lib("aclnnRepeatInterleaveTensor", repeats=counts, outputSize=len(out), out=out)
    assert torch.equal(out, torch.repeat_interleave(counts))
    for axis, counts in ((0, torch.tensor([2, 0, 3])), (1, torch.tensor([1, 4, 0, 2]))):
        base = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
        repeated = torch.repeat_interleave(base, counts, axis)
        grad = torch.randn(repeated.shape).to(dtype)
        out = torch.empty(3, 4, dtype=dtype)
        lib("aclnnRepeatInterleaveGrad", yGrad=grad, repeats=counts, axis=axis, out=out)
        close(out, torch.autograd.grad(repeated, base, f64(grad))[0], 8, 12)


def test_numbers_by_seed_tensors():
    """The forms that read seed and offset from device memory give the numbers of those that take them as arguments."""
    seed, offset = random.randrange(2**62), random.randrange(3, 2**40) * 4
    direct, by_tensor = dict(seed=seed, offset=offset), dict(seedTensor=torch.tensor([seed]), offsetTensor=torch.tensor([offset - 12]), offset=12)
    weights = torch.rand(50)
    for name, result, args, like in (
            ("InplaceNormal", "selfRef", dict(mean=1.5, std=2.0), torch.empty(1003)),
            ("InplaceRandom", "selfRef", {"from": 5, "to": 99}, torch.empty(1003)),
            ("InplaceRandomWithoutFromTo", "selfRef", {}, torch.empty(1003, dtype=torch.int64)),
            ("Multinomial", "out", dict(self=weights, numsamples=300, replacement=True), torch.empty(300, dtype=torch.int64)),
            ("DropoutGenMaskV2", "out", dict(shape=[1000], prob=0.3, probDataType=torch.float32), torch.empty(128, dtype=torch.uint8))):
        one, two = like.clone(), like.clone()
        lib("aclnn" + name, **args, **direct, **{result: one})
        lib(f"aclnn{name}Tensor", **args, **by_tensor, **{result: two})
        assert torch.equal(one, two), name
        assert len(one.unique()) > 5, name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_bilinear_gradient(dtype):
    for align in (False, True):
        size, given = [2, 3, 5, 7], [9, 6]
        grad, out = torch.randn(2, 3, *given).to(dtype), torch.empty(size, dtype=dtype)
        lib("aclnnUpsampleBilinear2dBackwardV2", gradOut=grad, outputSize=given, inputSize=size, alignCorners=align, scalesH=0.0, scalesW=0.0, out=out)
        # Weights are differences of float32 positions, in torch too.
        close(out, torch.ops.aten.upsample_bilinear2d_backward(grad.double(), given, size, align, None, None), 64, 10)
