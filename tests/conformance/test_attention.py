"""Fused attention and its gradient through the C ABI, with attention in float64 and torch's autograd as judge."""
from __future__ import annotations

import os
import random

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import pytest  # noqa: E402
import torch  # noqa: E402

driver = pytest.importorskip("driver")
from test_products import OPERATORS, call, generator, layout  # noqa: E402

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
print(f"test_attention: ANYNPU_SEED={SEED}")
CASES = range(int(os.environ.get("ANYNPU_CASES", "25")))
BIG = 2147483647


@pytest.fixture(params=CASES)
def rng(request) -> random.Random:
    return random.Random(f"{SEED} {request.node.name}")


def to_layout(t: torch.Tensor, name: str) -> torch.Tensor:
    """[b, n, s, d] as another layout."""
    b, n, s, d = t.shape
    return {"BNSD": lambda: t, "BSND": lambda: t.permute(0, 2, 1, 3), "BSH": lambda: t.permute(0, 2, 1, 3).reshape(b, s, n * d),
            "SBH": lambda: t.permute(2, 0, 1, 3).reshape(s, b, n * d)}[name]().contiguous()


def from_layout(t: torch.Tensor, name: str, heads: int) -> torch.Tensor:
    split = lambda x: x.reshape(*x.shape[:2], heads, x.shape[2] // heads)  # noqa: E731
    return {"BNSD": lambda: t, "BSND": lambda: t.permute(0, 2, 1, 3), "BSH": lambda: split(t).permute(0, 2, 1, 3),
            "SBH": lambda: split(t).permute(1, 2, 0, 3)}[name]()


def attention(q, k, v, hidden, bias, scale, kept):
    """Float64; hidden is a bool mask, kept the weights' factors (0 or 1 / keep)."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = scale * (q @ k.mT + bias)
    scores = scores.masked_fill(hidden, float("-inf"))
    largest = scores.amax(-1, keepdim=True)
    weights = (scores - largest.nan_to_num(neginf=0.0)).exp()
    total = weights.sum(-1, keepdim=True)
    weights = torch.where(total > 0, weights / total.clamp_min(1e-300), torch.zeros(()).double())
    return (weights * kept) @ v, largest, total


def gradients(q, k, v, hidden, bias, scale, kept, dy, out):
    """Gradients of q, k and v in float64 for the output that the caller passes, rounded as it is: its row sums with dy are what the
    softmax's derivative takes off, so a half's rounding of the output is part of the right answer. And how large the terms are that
    make them up: they may cancel. With one visible column nothing is left of them but their rounding."""
    b, heads, kv = q.shape[0], q.shape[1], k.shape[1]
    wide_k, wide_v = k.repeat_interleave(heads // kv, 1), v.repeat_interleave(heads // kv, 1)
    scores = (scale * (q @ wide_k.mT + bias)).masked_fill(hidden, float("-inf"))
    weights = (scores - scores.amax(-1, keepdim=True)).softmax(-1).nan_to_num(0.0)  # NaN: a row without any visible column
    off = (dy @ wide_v.mT) * kept - (dy * out).sum(-1, keepdim=True)
    inner = weights * off * scale
    together = lambda t: t.unflatten(1, (kv, heads // kv)).sum(2)  # noqa: E731
    # A score that is off by its terms' rounding changes its weight by that part; the row's total follows all of them.
    terms = scale * (q.abs() @ wide_k.abs().mT + abs(bias))
    shift = 1 + terms + (weights * terms).sum(-1, keepdim=True)
    inner_terms = weights * scale * (off.abs() * shift + (dy.abs() @ wide_v.abs().mT) * kept + (dy * out).abs().sum(-1, keepdim=True))
    return ((inner @ wide_k, together(inner.mT @ q), together((weights * kept).mT @ dy)),
            (inner_terms @ wide_k.abs(), together(inner_terms.mT @ q.abs()), together((weights * kept * shift).mT @ dy.abs())))


def close(got: torch.Tensor, want: torch.Tensor, terms: torch.Tensor | None = None) -> None:
    # Rounding of the result, and f32 sums of `terms`; else of terms about as large as the largest result or, where they cancel, about 1.
    eps = torch.finfo(got.dtype).eps
    if terms is not None:
        bound = want.abs().clamp_min(torch.finfo(got.dtype).smallest_normal) * eps + 8 * torch.finfo(torch.float32).eps * terms
    else:
        bound = want.abs() * eps + (2e-5 * want.abs().max().clamp_min(1) if want.numel() else 0)
    off = (got.double() - want).abs()
    assert bool((off <= bound).all()), f"{got.dtype}: off by {off.max()} where {want.abs().max()} is the largest, {(off / bound).max()} times the bound"


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_attention(version, rng):
    g = generator(rng)
    dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16])
    b, group, kv = rng.choice([1, 2]), rng.choice([1, 1, 3]), rng.choice([1, 2])
    sq = rng.choice([1, 5, 64, 130])
    sk = rng.choice([sq, sq, 1, 33, 200]) if rng.random() < 0.9 else 1100
    d, dv = rng.choice([8, 16, 33, 64]), 0
    name = rng.choice(["BNSD", "BSND", "BSH", "SBH"])
    dv = d if name in ("BSH", "SBH") else rng.choice([d, 24])
    n = group * kv
    make = lambda *s: torch.randn(s, generator=g).to(dtype)  # noqa: E731
    q, k, v = make(b, n, sq, d), make(b, kv, sk, d), make(b, kv, sk, dv)
    scale = rng.choice([d**-0.5, 0.3])
    rows, cols = torch.arange(sq)[:, None], torch.arange(sk)[None]
    mode = rng.choice([0, 0, 1, 2, 3, 4])
    mask, hidden, before, after = None, torch.zeros(sq, sk, dtype=torch.bool), BIG, BIG
    if mode in (0, 1) and (mode == 1 or rng.random() < 0.6):
        mask = torch.rand(rng.choice([(sq, sk), (1, 1, sq, sk), (b, 1, sq, sk), (b, n, sq, sk)]), generator=g) < 0.4
        hidden = mask
        if mode == 0 and rng.random() < 0.3:
            before, after = rng.randrange(1, 9), rng.randrange(9)
            hidden = hidden | (cols > rows + after) | (cols < rows - before)
    if mode in (2, 3, 4):
        mask = torch.ones(2048, 2048).triu(1).bool()
        shift = 0 if mode == 2 else sk - sq
        hidden = cols > rows + shift
    if mode == 4:
        before, after = rng.randrange(1, 40), rng.randrange(20)
        hidden = (cols > rows + shift + after) | (cols < rows + shift - before)
    bias = make(*rng.choice([(b, n, sq, sk), (1, n, sq, sk)])) if rng.random() < 0.2 else None
    keep, drop, kept = 1.0, None, torch.ones(()).double()
    if rng.random() < 0.3:
        keep = 0.75
        bits = torch.rand(b * n * sq * sk, generator=g) < keep
        padded = torch.cat([bits, torch.zeros(-len(bits) % 8, dtype=torch.bool)]).view(-1, 8).long()
        drop = (padded * (2 ** torch.arange(8))).sum(1).to(torch.uint8)
        kept = bits.view(b, n, sq, sk).double() / keep

    inputs = [t.double().requires_grad_() for t in (q, k, v)]
    want, largest, total = attention(*inputs, hidden, 0 if bias is None else bias.double(), scale, kept)
    lay = lambda t: layout(rng, to_layout(t, name))  # noqa: E731
    stat = lambda: torch.zeros(b, n, sq, 8)  # noqa: E731
    common = dict(dropMaskOptional=drop, paddingMaskOptional=None, attenMaskOptional=mask, prefixOptional=None, qStartIdxOptional=None,
                  kvStartIdxOptional=None, sinkOptional=None, sinkInOptional=None, pseType=1, scaleValue=scale, keepProb=keep,
                  preTokens=before, nextTokens=after, headNum=n, inputLayout=name, innerPrecise=0, sparseMode=mode)
    args = dict(query=lay(q), value=lay(v))
    got = call(f"aclnnFlashAttentionScore{version}", key=lay(k), **args, realShiftOptional=bias, softmaxMaxOut=stat(), softmaxSumOut=stat(),
               softmaxOutOut=torch.zeros(0), attentionOutOut=lay(torch.zeros_like(want).to(dtype)), **common)
    out = got["attentionOutOut"]
    close(from_layout(out, name, n), want.detach())
    visible = (total > 0).expand(b, n, sq, 8)
    close(torch.where(visible, got["softmaxMaxOut"], 0.0), torch.where(visible, largest.detach(), 0.0))
    close(got["softmaxSumOut"], total.detach().expand(b, n, sq, 8))
    if bias is not None and version == "V2":
        return
    dy = make(*want.shape)
    given = from_layout(out, name, n).double()
    grads, terms = gradients(*(t.detach() for t in inputs), hidden, 0 if bias is None else bias.double(), scale, kept, dy.double(), given)
    back = call(f"aclnnFlashAttentionScoreGrad{version}", keyIn=lay(k), **args, dy=lay(dy), pseShiftOptional=bias,
                softmaxMaxOptional=got["softmaxMaxOut"], softmaxSumOptional=got["softmaxSumOut"], softmaxInOptional=None,
                attentionInOptional=out, dqOut=lay(q), dkOut=lay(k), dvOut=lay(v), dpseOut=None, dsinkOut=None, **common)
    for result, grad, size, heads in zip(("dqOut", "dkOut", "dvOut"), grads, terms, (n, kv, kv)):
        close(from_layout(back[result], name, heads), grad, size)
    # The judge's formula is the derivative where the output has not been rounded.
    exact, _ = gradients(*(t.detach() for t in inputs), hidden, 0 if bias is None else bias.double(), scale, kept, dy.double(), want.detach())
    for mine, theirs in zip(exact, torch.autograd.grad((want * dy.double()).sum(), inputs)):
        assert torch.allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("version", ["", "V4", "V5"])
def test_packed_sequences(rng, version):
    g = generator(rng)
    dtype = torch.float32
    n, kv, d = 4, 2, 16
    lengths = [(rng.choice([1, 7, 140]), rng.choice([1, 9, 65])) for _ in range(rng.choice([1, 3]))]
    causal = rng.random() < 0.5
    parts = [[torch.randn(s, h, d, generator=g).double().requires_grad_() for s, h in ((a, n), (c, kv), (c, kv))] for a, c in lengths]
    wants, hiddens = [], []
    for q, k, v in parts:
        heads = [t.permute(1, 0, 2)[None] for t in (q, k, v)]
        rows, cols = torch.arange(len(q))[:, None], torch.arange(len(k))[None]
        hidden = cols > rows + len(k) - len(q) if causal else torch.zeros(len(q), len(k), dtype=torch.bool)
        out, largest, total = attention(*heads, hidden, 0, 0.25, torch.ones(()).double())
        wants.append(out[0].permute(1, 0, 2))
        hiddens.append(hidden)
    tokens = lambda i: torch.cat([p[i].detach() for p in parts]).to(dtype)  # noqa: E731
    q, k, v, want = tokens(0), tokens(1), tokens(2), torch.cat(wants)
    ends = lambda i: [sum(x[i] for x in lengths[: j + 1]) for j in range(len(lengths))]  # noqa: E731
    common = dict(dropMaskOptional=None, paddingMaskOptional=None, attenMaskOptional=torch.ones(2048, 2048).triu(1).bool() if causal else None,
                  prefixOptional=None, actualSeqQLenOptional=ends(0), actualSeqKvLenOptional=ends(1), scaleValue=0.25, keepProb=1.0,
                  preTokens=BIG, nextTokens=BIG, headNum=n, inputLayout="TND", innerPrecise=0, sparseMode=3 if causal else 0)
    if version:
        common["softmaxOutLayout"] = common["softmaxInLayout"] = ""
    if version == "V5":
        common |= dict.fromkeys(["queryRope", "keyRope", "keyInRope", "sinkOptional", "sinkInOptional", "qStartIdxOptional", "kvStartIdxOptional", "dqRopeOut",
                                 "dkRopeOut", "dsinkOut"]) | {"pseType": 1}
    stat = lambda: torch.zeros(len(q), n, 8)  # noqa: E731
    got = call(f"aclnnFlashAttentionVarLenScore{version}", query=q, key=k, value=v, realShiftOptional=None, softmaxMaxOut=stat(), softmaxSumOut=stat(),
               softmaxOutOut=torch.zeros(0), attentionOutOut=torch.zeros_like(q), **common)
    close(got["attentionOutOut"], want.detach())
    dy = torch.randn(q.shape, generator=g)
    leaves = [t for p in parts for t in p]
    grads = torch.autograd.grad((want * dy.double()).sum(), leaves, allow_unused=True)
    rows = torch.split(dy, [a for a, _ in lengths])
    by_head = lambda t: t.detach().double().permute(1, 0, 2)[None]  # noqa: E731
    sized = [gradients(*(by_head(t) for t in p), hidden, 0, 0.25, torch.ones(()).double(), by_head(y), by_head(out))[1]
             for p, hidden, y, out in zip(parts, hiddens, rows, wants)]
    back = call(f"aclnnFlashAttentionUnpaddingScoreGrad{version}", query=q, keyIn=k, value=v, dy=dy, pseShiftOptional=None,
                softmaxMaxOptional=got["softmaxMaxOut"], softmaxSumOptional=got["softmaxSumOut"], softmaxInOptional=None,
                attentionInOptional=got["attentionOutOut"], dqOut=torch.zeros_like(q), dkOut=torch.zeros_like(k), dvOut=torch.zeros_like(v),
                dpseOut=None, **common)
    for i, name in enumerate(("dqOut", "dkOut", "dvOut")):
        close(back[name], torch.cat(grads[i::3]), torch.cat([t[i][0].permute(1, 0, 2) for t in sized]))


@pytest.mark.parametrize("sunk", [False, True])
@pytest.mark.parametrize("number", range(6))
def test_gradients_of_bias_and_sink(sunk, number):
    """A bias of any broadcast shape, before or behind the scale, and a sink: a score of each head that only takes weight away."""
    rng = random.Random(f"{SEED} bias {sunk} {number}")
    g = generator(rng)
    b, n, kv, sq, sk, d = rng.choice([1, 2]), 4, rng.choice([1, 2, 4]), rng.choice([1, 5, 70]), rng.choice([3, 64, 130]), 16
    q, k, v = (torch.randn(b, h, s, d, generator=g) for h, s in ((n, sq), (kv, sk), (kv, sk)))
    bias = torch.randn(*rng.choice([(b, n, sq, sk), (1, n, sq, sk), (sq, sk), (b, 1, sq, sk)]), generator=g)
    sink = torch.randn(n, generator=g) if sunk else None
    behind, scale, causal = rng.random() < 0.5, 0.3, rng.random() < 0.5
    leaves = [t.double().requires_grad_() for t in (q, k, v, bias)] + ([sink.double().requires_grad_()] if sunk else [])
    wq, wk, wv, wb = leaves[:4]
    wide_k, wide_v = wk.repeat_interleave(n // kv, 1), wv.repeat_interleave(n // kv, 1)
    scores = scale * (wq @ wide_k.mT) + wb if behind else scale * (wq @ wide_k.mT + wb)
    if causal:
        scores = scores.masked_fill(torch.ones(sq, sk).triu(1).bool(), float("-inf"))
    if sunk:
        scores = torch.cat([scores, leaves[4].view(1, n, 1, 1).expand(b, n, sq, 1)], -1)
    want = scores.softmax(-1)[..., :sk] @ wide_v
    # pseType 1 adds the bias before the scale is applied, 0 behind it
    common = dict(dropMaskOptional=None, paddingMaskOptional=None, attenMaskOptional=torch.ones(2048, 2048).triu(1).bool() if causal else None, prefixOptional=None,
                  qStartIdxOptional=None, kvStartIdxOptional=None, sinkOptional=sink, sinkInOptional=sink, pseType=0 if behind else 1, scaleValue=scale, keepProb=1.0,
                  preTokens=BIG, nextTokens=BIG, headNum=n, inputLayout="BNSD", innerPrecise=0, sparseMode=2 if causal else 0)
    stat = lambda: torch.zeros(b, n, sq, 8)  # noqa: E731
    version = ["V3", "V4"][number % 2]
    if version == "V4":
        common |= dict(actualSeqQLenOptional=None, actualSeqKvLenOptional=None, queryRopeOptional=None, keyRopeOptional=None, dScaleQOptional=None, dScaleKOptional=None,
                       dScaleVOptional=None, dScaleDyOptional=None, dScaleOOptional=None, outDtype=0, softmaxOutLayout="", softmaxInLayout="", seed=0, offset=0,
                       dqRopeOut=None, dkRopeOut=None)
    got = call(f"aclnnFlashAttentionScore{version}", query=q, key=k, value=v, **common, realShiftOptional=bias, softmaxMaxOut=stat(), softmaxSumOut=stat(),
               softmaxOutOut=torch.zeros(0), attentionOutOut=torch.zeros(b, n, sq, d))
    close(got["attentionOutOut"], want.detach())
    dy = torch.randn(want.shape, generator=g)
    back = call(f"aclnnFlashAttentionScoreGrad{version}", query=q, keyIn=k, value=v, **common, dy=dy, pseShiftOptional=bias, softmaxMaxOptional=got["softmaxMaxOut"],
                softmaxSumOptional=got["softmaxSumOut"], softmaxInOptional=None, attentionInOptional=got["attentionOutOut"], dqOut=torch.zeros_like(q),
                dkOut=torch.zeros_like(k), dvOut=torch.zeros_like(v), dpseOut=layout(rng, torch.zeros_like(bias)), dsinkOut=torch.zeros(n) if sunk else None)
    grads = torch.autograd.grad((want * dy.double()).sum(), leaves)
    for name, grad in zip(("dqOut", "dkOut", "dvOut", "dpseOut", "dsinkOut"), grads):
        close(back[name], grad)


@pytest.mark.parametrize("name", ["BSH", "BSND", "BNSD", "TND"])
@pytest.mark.parametrize("number", range(4))
def test_paged_caches(name, number):
    """Keys and values in blocks that a table names, in either layout of the cache, against the same attention over whole sequences."""
    rng = random.Random(f"{SEED} pages {name} {number}")
    g = generator(rng)
    dtype = rng.choice([torch.float32, torch.float16])
    b, n, kv, d, size = rng.randint(1, 3), 4, rng.choice([1, 2]), 16, rng.choice([4, 16])
    lengths = [rng.randint(1, 3 * size) for _ in range(b)]
    blocks = sum(-(-x // size) for x in lengths) + 2
    free, table = random.Random(number).sample(range(blocks), blocks), torch.full((b, 3), -1, dtype=torch.int32)
    cache = [torch.full((blocks, size, kv, d), float("nan"), dtype=dtype) for _ in range(2)]
    whole = [[torch.randn(x, kv, d, generator=g).to(dtype) for x in lengths] for _ in range(2)]
    for i, x in enumerate(lengths):
        for at in range(0, x, size):
            block = free.pop()
            table[i, at // size] = block
            for pages, rows in zip(cache, whole):
                pages[block, : min(size, x - at)] = rows[i][at: at + size]
    rows = [rng.randint(1, 5) for _ in range(b)] if name == "TND" else [rng.randint(1, 5)] * b
    q = [torch.randn(x, n, d, generator=g).to(dtype) for x in rows]
    want = [torch.nn.functional.scaled_dot_product_attention(
        a.double().transpose(0, 1), k.double().transpose(0, 1).repeat_interleave(n // kv, 0), v.double().transpose(0, 1).repeat_interleave(n // kv, 0), scale=0.25)
        for a, k, v in zip(q, *whole)]  # [n, rows, d]
    held = [p.reshape(blocks, size, kv * d) for p in cache] if rng.random() < 0.5 else [p.transpose(1, 2).contiguous() for p in cache]
    if name == "TND":
        query, expected = torch.cat(q), torch.cat([w.transpose(0, 1) for w in want])
        q_lengths = [sum(rows[: i + 1]) for i in range(b)]
    else:
        query, expected, q_lengths = to_layout(torch.stack(q).transpose(1, 2), name), to_layout(torch.stack(want), name), None
    version = ["V3", "V5"][number % 2]
    args = {p["name"]: None if p["kind"] in ("tensor", "tensorlist", "intarray") else 0 for p in OPERATORS[f"aclnnFusedInferAttentionScore{version}"]["params"]}
    got = call(f"aclnnFusedInferAttentionScore{version}", **{
        **args, "query": query, "key": [held[0]], "value": [held[1]], "actualSeqLengthsOptional": q_lengths, "actualSeqLengthsKvOptional": lengths,
        "blockTableOptional": table, "numHeads": n, "scaleValue": 0.25, "preTokens": BIG, "nextTokens": BIG, "inputLayout": name, "numKeyValueHeads": kv,
        "blockSize": size, "softmaxLseFlag": False, "attentionOut": torch.zeros_like(query)})
    close(got["attentionOut"], expected)


@pytest.mark.parametrize("number", range(3))
def test_a_sink_in_inference(number):
    """A score of each head that takes weight away and has no value."""
    function = ["aclnnFusedInferAttentionScoreV4", "aclnnFusedInferAttentionScoreV5"][number % 2]
    rng = random.Random(f"{SEED} infer sink {number}")
    g = generator(rng)
    b, n, kv, sq, sk, d = 2, 4, rng.choice([1, 2, 4]), rng.choice([1, 5]), rng.choice([3, 64, 130]), 16
    q, k, v = (torch.randn(b, h, s, d, generator=g) for h, s in ((n, sq), (kv, sk), (kv, sk)))
    sink = torch.randn(n, generator=g)
    wide_k, wide_v = (t.double().repeat_interleave(n // kv, 1) for t in (k, v))
    scores = torch.cat([0.25 * q.double() @ wide_k.mT, sink.double().view(1, n, 1, 1).expand(b, n, sq, 1)], -1)
    args = {p["name"]: None if p["kind"] in ("tensor", "tensorlist", "intarray") else 0 for p in OPERATORS[function]["params"]}
    args |= {"query": q, "key": [k], "value": [v], "learnableSinkOptional": sink, "numHeads": n, "numKeyValueHeads": kv, "scaleValue": 0.25, "preTokens": BIG,
             "nextTokens": BIG, "inputLayout": "BNSD", "softmaxLseFlag": False, "attentionOut": torch.zeros_like(q)}
    close(call(function, **args)["attentionOut"], scores.softmax(-1)[..., :sk] @ wide_v)
    with pytest.raises(driver.CallFailed, match=f"{function}.*queryRopeOptional"):
        call(function, **args | {"queryRopeOptional": q})


def test_a_block_that_does_not_exist_is_named():
    args = {p["name"]: None if p["kind"] in ("tensor", "tensorlist", "intarray") else 0 for p in OPERATORS["aclnnFusedInferAttentionScoreV3"]["params"]}
    with pytest.raises(driver.CallFailed, match="blockTable.0, 0. is 9, but there are 2 blocks"):
        call("aclnnFusedInferAttentionScoreV3", **{
            **args, "query": torch.zeros(1, 1, 1, 8), "key": [torch.zeros(2, 4, 8)], "value": [torch.zeros(2, 4, 8)], "actualSeqLengthsKvOptional": [3],
            "blockTableOptional": torch.tensor([[9]], dtype=torch.int32), "numHeads": 1, "scaleValue": 1.0, "preTokens": BIG, "nextTokens": BIG, "inputLayout": "BSND",
            "numKeyValueHeads": 1, "blockSize": 4, "softmaxLseFlag": False, "attentionOut": torch.zeros(1, 1, 1, 8)})


def test_wrong_calls_name_the_parameter():
    f = torch.zeros
    good = dict(query=f(1, 2, 4, 8), key=f(1, 2, 4, 8), value=f(1, 2, 4, 8), realShiftOptional=None, dropMaskOptional=None,
                paddingMaskOptional=None, attenMaskOptional=None, prefixOptional=None, scaleValue=1.0, keepProb=1.0, preTokens=BIG, nextTokens=BIG,
                headNum=2, inputLayout="BNSD", innerPrecise=0, sparseMode=0, softmaxMaxOut=f(1, 2, 4, 8), softmaxSumOut=f(1, 2, 4, 8),
                softmaxOutOut=f(0), attentionOutOut=f(1, 2, 4, 8))
    call("aclnnFlashAttentionScore", **good)
    for change, words in [
        (dict(headNum=3), ["headNum", "3"]), (dict(key=f(1, 2, 4, 7)), ["key", "[1, 2, 4, 7]"]), (dict(inputLayout="SBND"), ["inputLayout"]),
        (dict(attenMaskOptional=f(4, 5).bool()), ["attenMaskOptional", "[4, 5]"]), (dict(keepProb=0.0), ["keepProb"]),
        (dict(softmaxSumOut=f(1, 2, 4)), ["softmaxSumOut"]), (dict(attentionOutOut=f(1, 2, 8, 4)), ["attentionOutOut"]),
        (dict(sparseMode=6), ["sparseMode 6"]), (dict(value=f(1, 2, 4, 8).double()), ["float64"]),
    ]:
        with pytest.raises(driver.CallFailed) as failed:
            call("aclnnFlashAttentionScore", **{**good, **change})
        assert all(w in failed.value.text for w in ["aclnnFlashAttentionScore", *words]), failed.value.text
