"""Random operators through the C ABI: distributions, independence of streams, equality for equal seeds.

Statistics are compared with five to six standard errors, so that a run fails by chance less than once in a million.
"""
from __future__ import annotations

import math
import os
import random
import zlib

import pytest
import torch

from aclnn_call import Failure, lib

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
N = 200_000


@pytest.fixture(autouse=True)
def seed(request):
    value = zlib.crc32(f"{SEED} {request.node.name}".encode())
    random.seed(value)
    torch.manual_seed(value)
    print(f"ANYNPU_SEED={SEED}")


def key():
    return {"seed": random.randrange(2 ** 62), "offset": random.randrange(2 ** 40) * 4}


def moments(x, mean, std, n=None, slack=0.0):
    n = n or x.numel()
    d = x.double()
    assert abs(d.mean().item() - mean) < 6 * std / math.sqrt(n) + 1e-12 + abs(mean) * 2 ** -14 + slack  # rounding to the nearest moves no mean but at the ends
    assert abs(d.std().item() / std - 1) < 0.02


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype):
    for low, high in ((0.0, 1.0), (-3.0, 5.0), (2.0, 2.0)):
        x = torch.empty(N, dtype=dtype)
        lib("aclnnInplaceUniform", selfRef=x, **{"from": low, "to": high}, **key())
        if low == high:
            assert bool((x == low).all())
            continue
        assert x.min() >= low and x.max() < high
        if dtype in (torch.bfloat16, torch.float16):
            assert x.max() == torch.nextafter(torch.tensor(high, dtype=dtype), torch.tensor(low, dtype=dtype)), "rounding takes one in 500 to the end"
        moments(x, (low + high) / 2, (high - low) / math.sqrt(12))
        counts = torch.histc(x.double(), 16, low, high)
        assert (counts - N / 16).abs().max() < 7 * math.sqrt(N / 16) + N * 2 ** -8 * (dtype in (torch.bfloat16, torch.float16))


@pytest.mark.parametrize("low, high", [(-0.01, 0.0), (-1e-3, 0.0), (-2.0, -1.0), (-0.5, -0.25), (-3.0, -2.5), (0.25, 0.3), (-6e-5, 6e-5), (1e-3, 2e-3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_near_its_ends(dtype, low, high):
    """The numbers below any end are as they would be without it, but for the last one."""
    low, high = (torch.tensor(end, dtype=dtype).item() for end in (low, high))
    x = torch.empty(N, dtype=dtype)
    lib("aclnnInplaceUniform", selfRef=x, **{"from": low, "to": high}, **key())
    last = torch.nextafter(torch.tensor(high, dtype=dtype), torch.tensor(low, dtype=dtype))
    assert x.min() >= low and x.max() <= last
    ulp = torch.finfo(dtype).eps * max(abs(low), abs(high))  # a range of few numbers has what their rounding moves
    moments(x, (low + high) / 2, (high - low) / math.sqrt(12), slack=ulp / 8 if dtype in (torch.bfloat16, torch.float16) else 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype):
    x = torch.empty(N, dtype=dtype)
    lib("aclnnInplaceNormal", selfRef=x, mean=1.5, std=2.0, **key())
    moments(x, 1.5, 2.0)
    z = (x.double() - 1.5) / 2
    # The standard errors of these means are sqrt(15 / N) and sqrt(96 / N).
    assert abs((z ** 3).mean().item()) < 6 * math.sqrt(15 / N) and abs((z ** 4).mean().item() - 3) < 6 * math.sqrt(96 / N) + 2 ** -7
    for limit, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert abs((z.abs() < limit).double().mean().item() - share) < 0.01
    # Neighbours come from one Box-Muller pair and must not be related.
    assert abs((z[::2] * z[1::2]).mean().item()) < 0.02
    out = torch.empty(N, dtype=dtype)
    mean, std = torch.linspace(-4, 4, N).to(dtype), torch.rand(N).to(dtype) + 0.5
    lib("aclnnNormalTensorTensor", mean=mean, std=std, out=out, **key())
    moments((out.double() - mean.double()) / std.double(), 0, 1)
    lib("aclnnNormalFloatTensor", mean=2.0, std=std, out=out, **key())
    moments((out.double() - 2) / std.double(), 0, 1)
    lib("aclnnNormalTensorFloat", mean=mean, std=0.5, out=out, **key())
    moments((out.double() - mean.double()) / 0.5, 0, 1)
    lib("aclnnNormalFloatFloat", mean=-1.0, std=3.0, out=out, **key())
    moments(out, -1, 3)


def test_integers():
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float32):
        x = torch.empty(N, dtype=dtype)
        lib("aclnnInplaceRandom", selfRef=x, **{"from": 5, "to": 21}, **key())
        counts = torch.bincount(x.long(), minlength=21)
        assert int(counts[:5].sum()) == 0 and counts.numel() == 21
        assert (counts[5:].double() - N / 16).abs().max() < 7 * math.sqrt(N / 16)
        lib("aclnnInplaceRandomWithoutFromTo", selfRef=x, **key())
        top = 2 ** 24 if dtype == torch.float32 else torch.iinfo(dtype).max
        assert x.min() >= 0 and abs(x.double().mean().item() / (top / 2) - 1) < 0.02
    flags = torch.empty(N, dtype=torch.bool)
    lib("aclnnInplaceRandomWithoutFromTo", selfRef=flags, **key())
    assert abs(flags.double().mean().item() - 0.5) < 0.01


def test_bernoulli():
    for p in (0.0, 0.3, 1.0):
        x = torch.empty(N)
        lib("aclnnInplaceBernoulli", selfRef=x, prob=p, **key())
        assert set(x.unique().tolist()) <= {0.0, 1.0} and abs(x.mean().item() - p) < 6 * math.sqrt(p * (1 - p) / N) + 1e-9
    p = torch.linspace(0, 1, 11).repeat_interleave(20_000)
    x = torch.empty_like(p)
    lib("aclnnInplaceBernoulliTensor", selfRef=x, prob=p, **key())
    assert (x.view(11, -1).mean(1) - p.view(11, -1).mean(1)).abs().max() < 0.025


def test_exponential():
    for rate in (1.0, 0.25):
        x = torch.empty(N)
        lib("aclnnSimThreadExponential", selfRef=x, count=N, **{"lambda": rate}, **key())
        assert x.min() > 0
        moments(x, 1 / rate, 1 / rate)
        assert abs((x > math.log(2) / rate).double().mean().item() - 0.5) < 0.01


def test_permutations():
    for n in (0, 1, 5, 10_000):
        out = torch.empty(n, dtype=torch.int64)
        lib("aclnnRandperm", n=n, out=out, **key())
        assert torch.equal(out.sort()[0], torch.arange(n))
    first = torch.zeros(6)
    for offset in range(3000):
        out = torch.empty(6, dtype=torch.int32)
        lib("aclnnRandperm", n=6, out=out, seed=7, offset=offset)
        first[out[0]] += 1
    assert (first - 500).abs().max() < 6.5 * math.sqrt(500)


def test_multinomial():
    p = torch.tensor([[0.1, 0.0, 0.6, 0.3], [2.0, 2.0, 0.0, 4.0]])
    out = torch.empty(2, 50_000, dtype=torch.int64)
    lib("aclnnMultinomial", self=p, numsamples=50_000, replacement=True, out=out, **key())
    for row in range(2):
        share = torch.bincount(out[row], minlength=4) / 50_000
        assert (share - p[row] / p[row].sum()).abs().max() < 0.015 and share[1 - row if row == 0 else 2] == 0
    out = torch.empty(4000, 3, dtype=torch.int64)
    lib("aclnnMultinomial", self=torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(4000, 4), numsamples=3, replacement=False, out=out, **key())
    assert all(len(set(r)) == 3 for r in out.tolist())
    share = torch.bincount(out[:, 0], minlength=4) / 4000
    assert (share - torch.tensor([0.1, 0.2, 0.3, 0.4])).abs().max() < 0.05
    for bad in ([0.5, -0.1], [0.0, 0.0], [float("nan"), 1.0]):
        with pytest.raises(Failure, match="aclnnMultinomial"):
            lib("aclnnMultinomial", self=torch.tensor(bad), numsamples=1, replacement=True, out=torch.empty(1, dtype=torch.int64), **key())


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_dropout(p):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.randn(333, 301).to(dtype)
        mask = torch.empty((x.numel() + 127) // 128 * 16, dtype=torch.uint8)
        lib("aclnnDropoutGenMaskV2", shape=list(x.shape), prob=p, probDataType=dtype, out=mask, **key())
        bits = torch.tensor([[b >> i & 1 for i in range(8)] for b in range(256)])[mask.long()].view(-1)[:x.numel()].view(x.shape).bool()
        assert abs(bits.double().mean().item() - (1 - p)) < 0.01
        out = torch.empty_like(x)
        lib("aclnnDropoutDoMask", self=x, mask=mask, prob=p, out=out)
        want = torch.where(bits, x.float() / (1 - p) if p < 1 else torch.zeros(()), torch.zeros(())).to(dtype)
        assert (out.float() - want.float()).abs().max() <= 2 ** -8 * want.float().abs().max()
        assert bool((out[~bits] == 0).all())
        again, mask2 = torch.empty_like(x), torch.empty_like(mask)
        lib("aclnnDropoutV3", input=x, p=p, out=again, maskOut=mask2, **key())
        assert abs((again == 0).double().mean().item() - p) < 0.01
        # The gradient takes what the kept elements were multiplied by; 0 says that nothing was kept.
        grad = torch.randn(301, 333).t().to(dtype)
        back = torch.empty_like(grad)
        lib("aclnnDropoutV3Grad", gradY=grad, mask=mask, scale=1 / (1 - p) if p < 1 else 0.0, gradX=back)
        want = torch.where(bits, grad.double() / (1 - p) if p < 1 else torch.zeros((), dtype=torch.double), torch.zeros((), dtype=torch.double))
        info = torch.finfo(dtype)  # the factor and the product are rounded to float32, then the result to its type
        assert ((back.double() - want).abs() <= (info.eps / 2 + 2**-23) * want.abs() + info.smallest_normal * info.eps).all()
    with pytest.raises(Failure, match="aclnnDropoutV3Grad.*mask"):
        lib("aclnnDropoutV3Grad", gradY=x, mask=mask[:8], scale=1.0, gradX=out)


def test_the_seed_and_the_offset_name_the_numbers():
    k = key()
    a, b, c = torch.empty(100_003), torch.empty(100_003), torch.empty(100_003)
    lib("aclnnInplaceUniform", selfRef=a, **{"from": 0.0, "to": 1.0}, **k)
    lib("aclnnInplaceUniform", selfRef=b, **{"from": 0.0, "to": 1.0}, **k)
    assert torch.equal(a, b)
    lib("aclnnInplaceUniform", selfRef=b, **{"from": 0.0, "to": 1.0}, seed=k["seed"], offset=k["offset"] + 4)
    lib("aclnnInplaceUniform", selfRef=c, **{"from": 0.0, "to": 1.0}, seed=k["seed"] + 1, offset=k["offset"])
    for other in (b, c):
        assert not torch.equal(a, other)
        assert abs(torch.corrcoef(torch.stack([a, other]))[0, 1].item()) < 0.02
        for lag in range(1, 9):  # the streams are not shifted copies of each other
            assert (a[lag:] == other[:-lag]).double().mean().item() < 0.001
    # The form that reads seed and offset from device memory gives the same numbers.
    lib("aclnnInplaceUniformTensor", selfRef=b, **{"from": 0.0, "to": 1.0}, seedTensor=torch.tensor([k["seed"]]),
        offsetTensor=torch.tensor([k["offset"] - 12]), offset=12)
    assert torch.equal(a, b)
    # A strided tensor gets the numbers of a dense one.
    wide = torch.zeros(100_003, 2)
    lib("aclnnInplaceUniform", selfRef=wide[:, 1], **{"from": 0.0, "to": 1.0}, **k)
    assert torch.equal(wide[:, 1], a)
