"""Kernels of the float families against torch CPU, one thread each, in one process and in turn.

  TORCH_DEVICE_BACKEND_AUTOLOAD=0 python bench/micro/kernels/against_torch.py [name…]

Calls go through the C ABI of the host library (target opapi_host; device memory is host memory, phase two runs at once), so each
time includes both phases. Bytes are those of inputs read once and outputs written once.
"""
from __future__ import annotations

import os
import time

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import torch  # noqa: E402

from aclnn_call import Library  # noqa: E402

lib = Library.load()
torch.set_num_threads(1)
A = torch.ops.aten


def size(*tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def cases():
    for dtype in (torch.float32, torch.bfloat16):
        short = "f32" if dtype == torch.float32 else "bf16"
        x = torch.randn(4096, 768).to(dtype)
        g, y = torch.randn_like(x), torch.empty_like(x)
        w, b = torch.randn(768).to(dtype), torch.randn(768).to(dtype)
        m, r = torch.empty(4096, 1), torch.empty(4096, 1)
        yield (f"layer_norm 4096x768 {short}", size(x, y),
               lambda: lib("aclnnLayerNorm", input=x, normalizedShape=[768], weightOptional=w, biasOptional=b, eps=1e-5, out=y, meanOutOptional=m,
                           rstdOutOptional=r),
               lambda: torch.native_layer_norm(x, [768], w, b, 1e-5))
        _, tm, tr = torch.native_layer_norm(x, [768], w, b, 1e-5)
        dw, db = torch.empty_like(w), torch.empty_like(b)
        yield (f"layer_norm backward {short}", size(x, g, y),
               lambda: lib("aclnnLayerNormBackward", gradOut=g, input=x, normalizedShape=[768], mean=m, rstd=r, weightOptional=w, biasOptional=b,
                           outputMask=[True] * 3, gradInputOut=y, gradWeightOut=dw, gradBiasOut=db),
               lambda: A.native_layer_norm_backward(g, x, [768], tm, tr, w, b, [True] * 3))
        s = torch.randn(4096, 1024).to(dtype)
        sy = torch.empty_like(s)
        yield f"softmax 4096x1024 {short}", size(s, sy), lambda: lib("aclnnSoftmax", self=s, dim=-1, out=sy), lambda: torch.softmax(s, -1)
        sg = torch.randn_like(s)
        p = torch.softmax(s, -1)
        yield (f"softmax backward {short}", size(s, sy, sg), lambda: lib("aclnnSoftmaxBackward", gradOutput=sg, output=p, dim=-1, out=sy),
               lambda: A._softmax_backward_data(sg, p, -1, dtype))
        v = torch.randn(512, 32000).to(dtype)
        vy = torch.empty_like(v)
        yield f"log_softmax 512x32000 {short}", size(v, vy), lambda: lib("aclnnLogSoftmax", self=v, dim=-1, out=vy), lambda: torch.log_softmax(v, -1)
        big = torch.randn(4096, 4096).to(dtype)
        one, row = torch.empty((), dtype=dtype), torch.empty(4096, dtype=dtype)
        yield f"sum of all 4096x4096 {short}", size(big), lambda: lib("aclnnReduceSum", self=big, dims=[], keepDims=False, dtype=dtype, out=one), big.sum
        yield (f"sum over rows {short}", size(big), lambda: lib("aclnnReduceSum", self=big, dims=[0], keepDims=False, dtype=dtype, out=row),
               lambda: big.sum(0))
        yield (f"sum over columns {short}", size(big), lambda: lib("aclnnReduceSum", self=big, dims=[1], keepDims=False, dtype=dtype, out=row),
               lambda: big.sum(1))
        yield f"max of all {short}", size(big), lambda: lib("aclnnMax", self=big, out=one), big.max
        where = torch.empty(4096, dtype=torch.int64)
        yield (f"argmax over columns {short}", size(big), lambda: lib("aclnnArgMax", self=big, dim=1, keepdim=False, out=where),
               lambda: big.argmax(1))
        table, idx = torch.randn(50257, 768).to(dtype), torch.randint(0, 50257, (8, 1024))
        e = torch.empty(8, 1024, 768, dtype=dtype)
        yield (f"embedding 8192 of 50257x768 {short}", 2 * size(e), lambda: lib("aclnnEmbedding", weight=table, indices=idx, out=e),
               lambda: torch.nn.functional.embedding(idx, table))
        dt = torch.empty_like(table)
        yield (f"embedding backward {short}", size(e, dt),
               lambda: lib("aclnnEmbeddingDenseBackward", grad=e, indices=idx, numWeights=50257, paddingIdx=2 ** 64 - 1, scaleGradByFreq=False, out=dt),
               lambda: A.embedding_dense_backward(e, idx, 50257, -1, False))
        n = torch.randn(16, 64, 56, 56).to(dtype)
        ny, ng = torch.empty_like(n), torch.randn_like(n)
        c = [torch.rand(64) + 0.5 for _ in range(6)]
        yield (f"batch_norm 16x64x56x56 {short}", size(n, ny),
               lambda: lib("aclnnBatchNorm", input=n, weight=c[0], bias=c[1], runningMean=c[2], runningVar=c[3], training=True, momentum=0.1, eps=1e-5,
                           output=ny, saveMean=c[4], saveInvstd=c[5]),
               lambda: torch.native_batch_norm(n, c[0], c[1], c[2], c[3], True, 0.1, 1e-5))
        yield (f"batch_norm backward {short}", size(n, ny, ng),
               lambda: lib("aclnnBatchNormBackward", gradOut=ng, input=n, weight=c[0], runningMean=c[2], runningVar=c[3], saveMean=c[4], saveInvstd=c[5],
                           training=True, eps=1e-5, outputMask=[True] * 3, gradInput=ny, gradWeight=torch.empty(64), gradBias=torch.empty(64)),
               lambda: A.native_batch_norm_backward(ng, n, c[0], c[2], c[3], c[4], c[5], True, 1e-5, [True] * 3))
        u = torch.empty(4 << 20, dtype=dtype)
        yield (f"uniform 4Mi {short}", size(u), lambda: lib("aclnnInplaceUniform", selfRef=u, **{"from": 0.0, "to": 1.0}, seed=1, offset=0),
               lambda: u.uniform_())
        yield f"normal 4Mi {short}", size(u), lambda: lib("aclnnInplaceNormal", selfRef=u, mean=0.0, std=1.0, seed=1, offset=0), lambda: u.normal_()
    t = torch.randint(0, 32000, (512,))
    logp = torch.log_softmax(torch.randn(512, 32000), -1)
    out, total, grad = torch.empty(()), torch.empty(()), torch.ones(())
    yield ("nll_loss 512x32000 f32", size(t), lambda: lib("aclnnNLLLoss", self=logp, target=t, reduction=1, ignoreIndex=-100, out=out, totalWeightOut=total),
           lambda: A.nll_loss_forward(logp, t, None, 1, -100))
    dl = torch.empty_like(logp)
    tw = torch.tensor(512.0)
    yield ("nll_loss backward f32", size(dl),
           lambda: lib("aclnnNLLLossBackward", gradOutput=grad, self=logp, target=t, reduction=1, ignoreIndex=-100, totalWeight=tw, out=dl),
           lambda: A.nll_loss_backward(grad, logp, t, None, 1, -100, tw))
    w, g, m, v = (torch.rand(4 << 20) for _ in range(4))
    step = torch.tensor([3.0])
    yield ("adamw 4Mi f32", size(w, g, m, v) + size(w, m, v),
           lambda: lib("aclnnApplyAdamWV2", varRef=w, mRef=m, vRef=v, grad=g, step=step, lr=1e-3, beta1=0.9, beta2=0.999, weightDecay=0.01, eps=1e-8,
                       amsgrad=False, maximize=False),
           lambda: torch._fused_adamw_([w], [g], [m], [v], [], [step.view(())], lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8,
                                       amsgrad=False, maximize=False))
    k = torch.randn(64, 16384)
    kv, ki = torch.empty_like(k), torch.empty(k.shape, dtype=torch.int64)
    yield ("sort 64x16384 f32", size(k, kv, ki), lambda: lib("aclnnSort", self=k, stable=True, dim=1, descending=False, valuesOut=kv, indicesOut=ki),
           lambda: torch.sort(k, dim=1, stable=True))
    tv, ti = torch.empty(64, 50), torch.empty(64, 50, dtype=torch.int64)
    yield ("topk 50 of 64x16384 f32", size(k), lambda: lib("aclnnTopk", self=k, k=50, dim=1, largest=True, sorted=True, valuesOut=tv, indicesOut=ti),
           lambda: torch.topk(k, 50, 1))
    big = torch.randn(4096, 1024)
    cs = torch.empty_like(big)
    yield "cumsum 4096x1024 f32", size(big, cs), lambda: lib("aclnnCumsum", self=big, dim=1, dtype=torch.float32, out=cs), lambda: torch.cumsum(big, 1)
    cat = torch.empty(8192, 1024)
    yield "cat 2x4096x1024 f32", 2 * size(cat), lambda: lib("aclnnCat", tensors=[big, cs], dim=0, out=cat), lambda: torch.cat([big, cs], 0)
    ms = torch.empty(big.numel())
    mask = big > 0
    yield ("masked_select 4Mi f32", size(big, mask) + size(big) // 2, lambda: lib("aclnnMaskedSelect", self=big, mask=mask, out=ms),
           lambda: torch.masked_select(big, mask))


def best(f, seconds: float) -> float:
    f()
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        f()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least


def main() -> None:
    wanted = sys.argv[1:]
    print(f"{'kernel':36} {'ours ms':>9} {'torch ms':>9} {'GB/s':>7} {'ratio':>6}")
    for name, bytes_moved, ours, theirs in cases():
        if wanted and not any(w in name for w in wanted):
            continue
        a, b = best(ours, 0.15), best(theirs, 0.15)
        print(f"{name:36} {a * 1e3:9.2f} {b * 1e3:9.2f} {bytes_moved / a / 1e9:7.1f} {b / a:6.2f}", flush=True)


if __name__ == "__main__":
    main()
