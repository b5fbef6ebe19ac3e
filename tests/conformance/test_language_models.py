"""Operators of language models: quantised products, experts, fused norms, caches. The judge is the formula of the operator's public
description, written here with torch in double precision.

Cases are written as in test_more_operators.py.
"""
from __future__ import annotations

import math
import struct

import pytest
import torch
import torch.nn.functional as F

import test_more_operators as more
from aclnn_call import Failure, lib
from test_formats import NZ, card, packed
from test_more_operators import HALVES, case_of, draw, seeded

CASES: list = []
case = case_of(CASES)
F3 = [torch.float32, *HALVES]


@pytest.mark.parametrize("name, make, dtype, times", CASES)
def test_operator(name, make, dtype, times):
    more.check(name, make, dtype, times)


# --- quantising

def to_byte(v: torch.Tensor) -> torch.Tensor:
    return v.round().clamp(-128, 127).to(torch.int8)


def away_from_ties(v: torch.Tensor, limit: float = 1e-3) -> bool:
    """No value lies so near the middle between two integers that a rounding before decides."""
    return bool(((v.double() - v.double().floor() - 0.5).abs() > limit).all())


def untied(make, tries: int = 200):
    """Draws until no result is decided by a rounding of float32."""
    for _ in range(tries):
        inputs, outputs, terms, exact = make()
        if away_from_ties(exact):
            return inputs, outputs, terms
    raise AssertionError("no such sample was drawn")


@case("aclnnAscendQuant", F3)
def _(t, r):
    def make():
        n = r.randint(1, 9)
        x, scale = draw((r.randint(1, 4), n), t, -4, 4), draw((r.choice([1, n]),), t, 0.5, 20)
        offset = r.choice([None, draw((r.choice([1, n]),), t, -5, 5)])
        mode, squares = r.choice(["round", "floor", "ceil", "trunc"]), r.random() < 0.3
        exact = x.double() * scale.double() ** (2 if squares else 1) + (0 if offset is None else offset.double())
        rounded = {"round": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}[mode](exact)
        return ({"x": x, "scale": scale, "offset": offset, "sqrtMode": squares, "roundMode": mode, "dstType": 2}, {"y": to_byte(rounded)}, 0,
                exact if mode == "round" else exact + 0.5)

    return untied(make)


@case("aclnnAscendQuantV3", F3)
def _(t, r):
    def make():
        x = draw((r.randint(2, 4), r.randint(2, 5), r.randint(2, 4)), t, -4, 4)
        axis = r.choice([-1, -2])
        scale = draw((x.shape[axis],), t, 0.5, 20)
        exact = x.double() * (scale.double() if axis == -1 else scale.double()[:, None])
        return {"x": x, "scale": scale, "sqrtMode": False, "roundMode": "round", "dstType": 2, "axis": axis}, {"y": to_byte(exact)}, 0, exact

    return untied(make)


@case("aclnnAscendAntiQuant", HALVES)
def _(t, r):
    n = r.randint(1, 9)
    x, scale = draw((3, n), torch.int8, -100, 100), draw((r.choice([1, n]),), torch.float32, 0.01, 2)
    offset = r.choice([None, draw(scale.shape, torch.float32, -5, 5)])
    return ({"x": x, "scale": scale, "offset": offset, "dstType": 1, "sqrtMode": False},
            {"y": ((x.double() + (0 if offset is None else offset.double())) * scale.double(), t)}, 4)


def dynamic(x: torch.Tensor):
    scale = x.double().abs().amax(-1) / 127
    return x.double() / scale[..., None], scale


@case("aclnnDynamicQuant", HALVES)
def _(t, r):
    def make():
        n = r.randint(2, 20)
        x, smooth = draw((r.randint(1, 3), r.randint(1, 3), n), t), r.choice([None, draw((n,), t, 0.5, 2)])
        exact, scale = dynamic(x.double() if smooth is None else x.double() * smooth.double())
        return {"x": x, "smoothScalesOptional": smooth}, {"yOut": to_byte(exact), "scaleOut": (scale, torch.float32)}, 4, exact

    return untied(make)


@case("aclnnDynamicQuantV2", HALVES)
def _(t, r):
    def make():
        x = draw((r.randint(1, 3), r.randint(2, 20)), t)
        high, low = x.double().amax(-1), x.double().amin(-1)
        scale = (high - low) / 255
        offset = 127 - high / scale
        exact = x.double() / scale[:, None] + offset[:, None]
        return {"x": x, "dstType": 2}, {"yOut": to_byte(exact), "scaleOut": (scale, torch.float32), "offsetOut": (offset, torch.float32)}, 64, exact

    return untied(make)


def words(scale: torch.Tensor, offset: torch.Tensor | None) -> torch.Tensor:
    """Bits of the scale above the lowest 13, bit 46, nine bits of the offset from bit 37 on."""
    out = []
    for i, s in enumerate(scale.tolist()):
        word = struct.unpack("<I", struct.pack("<f", s))[0] & 0xFFFFE000 | 1 << 46
        if offset is not None:
            word |= (max(-256, min(255, round(offset.tolist()[i]))) & 0x1FF) << 37
        out.append(word)
    return torch.tensor(out)


def test_dynamic_quantising_without_an_offset():
    r = seeded("no offset")
    x = draw((3, r.randint(2, 20)), torch.float16)
    first, second = (torch.zeros(x.shape, dtype=torch.int8) for _ in range(2))
    a, b = torch.zeros(3), torch.zeros(3)
    lib("aclnnDynamicQuant", x=x, yOut=first, scaleOut=a)
    lib("aclnnDynamicQuantV2", x=x, dstType=2, yOut=second, scaleOut=b)
    assert torch.equal(first, second) and torch.equal(a, b)


@case("aclnnTransQuantParamV2", [torch.float32])
def _(t, r):
    n = r.randint(1, 6)
    scale, offset = draw((n,), t, 1e-3, 2), r.choice([None, draw((n,), t, -300, 300)])
    return {"scale": scale, "offset": offset}, {"out": words(scale, offset)}, 0


@pytest.mark.parametrize("out_type", [torch.bfloat16, torch.float16, torch.float32, torch.int32, torch.int8])
@pytest.mark.parametrize("name", ["aclnnQuantMatmulV5", "aclnnQuantMatmulWeightNz"])
def test_products_of_bytes(name, out_type):
    for number in range(6):
        r = seeded(name, out_type, number)
        m, k, n = r.randint(1, 20), r.choice([r.randint(2, 60), r.randint(1000, 2500)]), r.randint(2, 40)
        batch = (r.randint(1, 3),) if name.endswith("V5") and r.random() < 0.3 else ()
        a, b = draw((*batch, m, k), torch.int8, -128, 128), draw((k, n), torch.int8, -128, 128)
        scale = draw((r.choice([1, n]),), torch.float32, 1e-4, 1e-3)
        args: dict = {"x2Scale": scale, "groupSize": 0, "transposeX1": False, "transposeX2": False}
        exact = a.double() @ b.double()
        if r.random() < 0.5:
            bias = draw((n,), torch.int32, -9999, 9999)
            args["bias"], exact = bias, exact + bias
        if out_type != torch.int32:
            if out_type == torch.int8 or r.random() < 0.4:
                offset = draw((scale.numel(),), torch.float32, -20, 20)
                args["x2Scale"] = words(scale, offset if out_type == torch.int8 else None)
                scale = torch.tensor([struct.unpack("<f", struct.pack("<I", w & 0xFFFFFFFF))[0] for w in args["x2Scale"].tolist()])
            exact = exact * scale.double()
            if out_type == torch.int8:
                exact = exact + offset.round()
            elif r.random() < 0.5:
                args["x1Scale"] = draw((m,), torch.float32, 0.5, 2)
                exact = exact * args["x1Scale"].double()[:, None]
                if "bias" not in args:
                    args["bias"] = draw((n,), torch.float32)
                    exact = exact + args["bias"].double()
        if r.random() < 0.5:
            a, args["transposeX1"] = a.transpose(-1, -2).contiguous(), True
        if r.random() < 0.5:
            b, args["transposeX2"] = b.t().contiguous(), True
        held = card(packed(b, NZ), NZ, b) if name.endswith("Nz") else b
        out = torch.zeros(exact.shape, dtype=out_type)
        lib(name, x1=a, x2=held, out=out, **args)
        if out_type == torch.int8:
            clear = (exact - exact.floor() - 0.5).abs() > 1e-2  # others are decided by a rounding of float32
            assert torch.equal(out[clear], to_byte(exact)[clear])
        else:
            more.agree("out", out, exact, 8)


def test_sums_of_products_go_round_at_the_ends_of_int32():
    a, b, bias = draw((3, 40), torch.int8, 1, 128), draw((40, 5), torch.int8, 1, 128), torch.full((5,), 2**31 - 1, dtype=torch.int32)
    out = torch.zeros((3, 5), dtype=torch.int32)
    lib("aclnnQuantMatmulV5", x1=a, x2=b, x2Scale=torch.ones(1), bias=bias, groupSize=0, transposeX1=False, transposeX2=False, out=out)
    assert torch.equal(out, (a.long() @ b.long() + bias.long()).to(torch.int32))


@case("aclnnWeightQuantBatchMatmulV2", HALVES)
def _(t, r):
    return weight_only(t, r), *weight_only.rest


def weight_only(t, r):
    m, k, n, group = r.randint(1, 8), r.randint(33, 70), r.randint(1, 9), r.choice([0, 32])
    x, w = draw((m, k), t), draw((k, n), torch.int8, -128, 128)
    shape = r.choice([(1,), (n,)]) if group == 0 else (math.ceil(k / group), n)
    scale, offset = draw(shape, t, 0.01, 0.1), r.choice([None, draw(shape, t, -3, 3)])
    bias = r.choice([None, draw((n,), t)])
    spread = lambda v: v.double() if group == 0 else v.double().repeat_interleave(group, 0)[:k]  # noqa: E731
    plain = (w.double() + (0 if offset is None else spread(offset))) * spread(scale)
    want = x.double() @ plain + (0 if bias is None else bias.double())
    weight_only.rest = {"y": (want, t)}, 3 * k + 8
    return {"x": x, "weight": w, "antiquantScale": scale, "antiquantOffsetOptional": offset, "biasOptional": bias, "antiquantGroupSize": group}


@case("aclnnWeightQuantBatchMatmulV3", HALVES)
def _(t, r):
    return {**weight_only(t, r), "innerPrecise": 0}, *weight_only.rest


# --- experts

def distinct(shape) -> torch.Tensor:
    """Scores without ties: which of equal ones is taken is not the question here."""
    n = math.prod(shape)
    return ((torch.randperm(n).double() + 1) / n * 8 - 4).view(shape)


@case("aclnnMoeGatingTopKSoftmax", [torch.float32])
def _(t, r):
    rows, experts = r.randint(1, 6), r.randint(2, 12)
    k = r.randint(1, experts)
    x, finished = distinct((rows, experts)).to(t), r.choice([None, draw((rows,), torch.bool)])
    y, expert = x.double().softmax(-1).topk(k)
    if finished is not None:
        expert = torch.where(finished[:, None], experts, expert)
    return ({"x": x, "finishedOptional": finished, "k": k},
            {"yOut": (y, t), "expertIdxOut": (expert, torch.int32), "rowIdxOut": torch.arange(rows * k, dtype=torch.int32).view(k, rows).t().contiguous()}, 8)


@case("aclnnMoeGatingTopKSoftmaxV2", [torch.float32])
def _(t, r):
    rows, experts, renorm = r.randint(1, 6), r.randint(2, 12), r.randint(0, 1)
    k = r.randint(1, experts)
    x = distinct((rows, experts)).to(t)
    all_ = x.double().softmax(-1)
    y, expert = (x.double().topk(k)[0].softmax(-1), x.topk(k)[1]) if renorm else all_.topk(k)
    out = {"yOut": (y, t), "expertIdxOut": (expert, torch.int32)}
    if not renorm:
        out["softmaxResultOutOptional"] = (all_, torch.float32)
    return {"x": x, "k": k, "renorm": renorm, "outputSoftmaxResultFlag": not renorm}, out, 8


@case("aclnnMoeGatingTopK", [torch.float32])
def _(t, r):
    groups, width, rows = r.randint(1, 4), r.randint(2, 5), r.randint(1, 6)
    experts, kept, two, norm = groups * width, r.randint(1, groups), r.randint(0, 1), r.randint(0, 1)
    k = r.randint(1, kept * width)
    x, bias = distinct((rows, experts)).to(t), r.choice([None, draw((experts,), t, -0.5, 0.5)])
    score = x.double().sigmoid() if norm else x.double().softmax(-1)
    choice = score + (0 if bias is None else bias.double())
    best = choice.view(rows, groups, width).topk(2 if two else 1)[0].sum(-1)
    reach = torch.zeros(rows, groups).scatter(1, best.topk(kept)[1], 1).bool().repeat_interleave(width, 1)
    expert = choice.masked_fill(~reach, -math.inf).topk(k)[1]
    y = score.gather(1, expert)
    factor, eps = 2.5, 1e-20
    y = (y / (y.sum(-1, keepdim=True) + eps) if norm else y) * factor
    return ({"x": x, "biasOptional": bias, "k": k, "kGroup": kept, "groupCount": groups, "groupSelectMode": two, "renorm": 0, "normType": norm,
             "outFlag": True, "routedScalingFactor": factor, "eps": eps}, {"yOut": (y, t), "expertIdxOut": (expert, torch.int32), "outOut": (score, t)}, 16)


@case("aclnnMoeComputeExpertTokens", [torch.int32, torch.int64])
def _(t, r):
    n = r.randint(1, 9)
    given = torch.randint(0, n, (r.randint(1, 30),)).sort()[0].to(t)
    return {"sortedExperts": given, "numExperts": n}, {"out": torch.bincount(given, minlength=n).cumsum(0).to(t)}, 0


def tokens_and_choices(t, r):
    n, k, width = r.randint(1, 9), r.randint(1, 4), r.randint(1, 17)
    return draw((n, width), t), torch.randint(0, 5, (n, k)), n, k


@case("aclnnMoeTokenPermute", F3)
def _(t, r):
    x, index, n, k = tokens_and_choices(t, r)
    kept = r.choice([0, r.randint(1, n * k), -1])
    order = index.flatten().argsort(stable=True)
    rows = x[order // k][: kept or None]
    return {"tokens": x, "indices": index, "numOutTokens": kept, "paddedMode": False}, {"permuteTokensOut": rows, "sortedIndicesOut": order.argsort().int()}, 0


@case("aclnnMoeTokenUnpermute", F3)
def _(t, r):
    x, _, n, k = tokens_and_choices(t, r)
    place, rows = torch.randperm(n * k).int(), draw((n * k, x.shape[1]), t)
    probs = draw((n, k), t) if k > 1 or r.random() < 0.5 else None
    weights = torch.ones(n, k).double() if probs is None else probs.double()
    want = (rows.double()[place.long()].view(n, k, -1) * weights[..., None]).sum(1)
    return {"permutedTokens": rows, "sortedIndices": place, "probsOptional": probs, "paddedMode": False}, {"out": (want, t)}, 4 * k + 4


@case("aclnnMoeTokenPermuteGrad", F3)
def _(t, r):
    x, _, n, k = tokens_and_choices(t, r)
    place, rows = torch.randperm(n * k).int(), draw((n * k, x.shape[1]), t)
    return ({"permutedOutputGrad": rows, "sortedIndices": place, "numTopk": k, "paddedMode": False},
            {"out": (rows.double()[place.long()].view(n, k, -1).sum(1), t)}, 4 * k + 4)


@case("aclnnMoeTokenUnpermuteGrad", F3)
def _(t, r):
    x, _, n, k = tokens_and_choices(t, r)
    place = torch.randperm(n * k)
    rows, probs = draw((n * k, x.shape[1]), t), draw((n, k), t)
    a, b = rows.double().requires_grad_(), probs.double().requires_grad_()
    ((a[place].view(n, k, -1) * b[..., None]).sum(1) * x.double()).sum().backward()
    return ({"permuteTokensOptional": rows, "unpermutedTokensGrad": x, "sortedIndices": place.int(), "probsOptional": probs, "paddedMode": False},
            {"permutedTokensGradOut": (a.grad, t), "probsGradOut": (b.grad, t)}, 4 * x.shape[1] + 8)


@case("aclnnMoeInitRouting", F3)
def _(t, r):
    x, index, n, k = tokens_and_choices(t, r)
    numbers = torch.arange(n * k).view(k, n).t().contiguous()  # as aclnnMoeGatingTopKSoftmax numbers them
    active = r.choice([n, r.randint(1, n + 2)])
    order = index.flatten().argsort(stable=True)
    pairs = numbers.flatten()[order]
    return ({"x": x, "rowIdx": numbers.int(), "expertIdx": index.int(), "activeNum": active},
            {"expandedXOut": x[pairs % n][: min(n, active) * k], "expandedRowIdxOut": pairs.argsort().int(), "expandedExpertIdxOut": index.flatten()[order].int()}, 0)


@case("aclnnMoeInitRoutingV2", F3)
def _(t, r):
    x, index, n, k = tokens_and_choices(t, r)
    order, experts, drop = index.flatten().argsort(stable=True), 5, r.random() < 0.5
    counts = torch.bincount(index.flatten(), minlength=experts)
    args = {"x": x, "expertIdx": index.int(), "expertNumOptional": experts, "dropPadModeOptional": int(drop)}
    if not drop:
        flag, active = r.choice([1, 2]), r.choice([0, r.randint(1, n * k)])
        return ({**args, "activeNumOptional": active, "expertCapacityOptional": 0, "expertTokensCountOrCumsumFlagOptional": flag,
                 "expertTokensBeforeCapacityFlagOptional": False},
                {"expandedXOut": x[order // k][: active or None], "expandedRowIdxOut": order.argsort().int(),
                 "expertTokensCountOrCumsumOutOptional": (counts.cumsum(0) if flag == 1 else counts).int()}, 0)
    capacity = r.randint(1, n)
    rows, place = torch.zeros(experts, capacity, x.shape[1], dtype=t), torch.full((n * k,), -1, dtype=torch.int32)
    filled = [0] * experts
    for pair in order.tolist():
        e = int(index.flatten()[pair])
        if filled[e] < capacity:
            rows[e, filled[e]] = x[pair // k]
            place[pair] = e * capacity + filled[e]
        filled[e] += 1
    return ({**args, "activeNumOptional": 0, "expertCapacityOptional": capacity, "expertTokensCountOrCumsumFlagOptional": 0,
             "expertTokensBeforeCapacityFlagOptional": True},
            {"expandedXOut": rows, "expandedRowIdxOut": place, "expertTokensBeforeCapacityOutOptional": counts.int()}, 0)


@case("aclnnMoeInitRoutingV3", F3, times=6)
def _(t, r):
    def make():
        x, index, n, k = tokens_and_choices(t, r)
        first = r.randint(0, 2)
        last, kind, sums, quantised, active = r.randint(first + 1, 5), r.randint(0, 1), r.randint(0, 1), r.random() < 0.4, r.choice([0, r.randint(1, n * k)])
        order = [p for p in index.flatten().argsort(stable=True).tolist() if first <= int(index.flatten()[p]) < last]
        places = torch.full((n * k,), -1, dtype=torch.int32)
        for i, pair in enumerate(order):
            places[pair if kind == 0 else i] = i if kind == 0 else pair
        counts = torch.bincount(index.flatten(), minlength=5)[first:last]
        rows = torch.zeros(active or n * k, x.shape[1], dtype=t)
        taken = order[: len(rows)]
        rows[: len(taken)] = x[torch.tensor(taken, dtype=torch.long) // k]
        args = {"x": x, "expertIdx": index.int(), "activeNum": active, "expertCapacity": 0, "expertNum": 5, "dropPadMode": 0, "expertTokensNumType": 1 - sums,
                "expertTokensNumFlag": True, "quantMode": 1 if quantised else -1, "activeExpertRangeOptional": [first, last], "rowIdxType": kind}
        out = {"expandedRowIdxOut": places, "expertTokensCountOrCumsumOut": counts.cumsum(0) if sums else counts}
        if not quantised:
            scale = draw((n,), torch.float32)
            scales = torch.zeros(len(rows))
            scales[: len(taken)] = scale[torch.tensor(taken, dtype=torch.long) // k]
            return {**args, "scaleOptional": scale}, {**out, "expandedXOut": rows, "expandedScaleOut": (scales, torch.float32)}, 0, torch.zeros(1)
        scale = rows.double().abs().amax(-1) / 127
        exact = torch.where(scale[:, None] > 0, rows.double() / scale[:, None].clamp_min(1e-300), 0.0)
        return args, {**out, "expandedXOut": to_byte(exact), "expandedScaleOut": (scale, torch.float32)}, 4, exact

    return untied(make)


def finalised(t, r, choice_major, drops):
    x, index, n, k = tokens_and_choices(t, r)
    rows, place = draw((n * k, x.shape[1]), t), torch.randperm(n * k)
    if drops:
        place[torch.rand(n * k) < 0.3] = -1
    scales, bias, x1 = draw((n, k), t), r.choice([None, draw((5, x.shape[1]), t)]), r.choice([None, x])
    at = place.view(k, n).t() if choice_major else place.view(n, k)
    taken = torch.where((at < 0)[..., None], 0, rows.double()[at.clamp(min=0)])
    terms = taken + (0 if bias is None else bias.double()[index])
    want = (0 if x1 is None else x1.double()) + (terms * scales.double()[..., None]).sum(1)
    return rows, place.int(), scales, bias, x1, index.int(), want, 6 * k + 6


@case("aclnnMoeFinalizeRouting", F3)
def _(t, r):
    rows, place, scales, bias, x1, index, want, terms = finalised(t, r, True, False)
    return ({"expandedX": rows, "x1": x1, "bias": bias, "scales": scales, "expandedRowIdx": place, "expandedExpertIdx": index}, {"out": (want, t)}, terms)


@case("aclnnMoeFinalizeRoutingV2", F3, times=6)
def _(t, r):
    mode = r.randint(0, 3)
    rows, place, scales, bias, x1, index, want, terms = finalised(t, r, mode < 2, mode % 2 == 1)
    return ({"expandedX": rows, "expandedRowIdx": place, "x1Optional": x1, "biasOptional": bias, "scalesOptional": scales, "expertIdxOptional": index,
             "dropPadMode": mode}, {"out": (want, t)}, terms)


def test_flags_and_probabilities_are_as_many_as_are_read():
    x, y, which = draw((3, 4)), torch.zeros(3, 2), lambda: torch.zeros(3, 2, dtype=torch.int32)  # noqa: E731
    with pytest.raises(Failure, match="finishedOptional has shape .2. for 3 rows"):
        lib("aclnnMoeGatingTopKSoftmax", x=x, finishedOptional=torch.zeros(2, dtype=torch.bool), k=2, yOut=y, expertIdxOut=which(), rowIdxOut=which())
    with pytest.raises(Failure, match="probsOptional has shape .1, 2. for 6 choices"):
        lib("aclnnMoeTokenUnpermute", permutedTokens=draw((6, 4)), sortedIndices=torch.arange(6), probsOptional=draw((1, 2)), paddedMode=False, out=torch.zeros(3, 4))
    with pytest.raises(Failure, match="perTokenScaleOptional has shape .2. for 3 rows"):
        lib("aclnnGroupedMatmulV4", x=[draw((3, 4), torch.int8)], weight=[draw((1, 4, 5), torch.int8)], scaleOptional=[draw((1, 5))], perTokenScaleOptional=[draw((2,))],
            groupListOptional=torch.tensor([3]), out=[torch.zeros(3, 5, dtype=torch.float16)], splitItem=3, groupType=0, groupListType=0, actType=0)


def test_experts_that_do_not_exist_are_named():
    x = draw((2, 3))
    with pytest.raises(Failure, match="sortedIndices.1. is -3"):
        lib("aclnnMoeTokenUnpermute", permutedTokens=x, sortedIndices=torch.tensor([0, -3], dtype=torch.int32), paddedMode=False, out=torch.zeros(2, 3))
    with pytest.raises(Failure, match="expandedRowIdx.0. is 7, but there are 2 rows"):
        lib("aclnnMoeFinalizeRoutingV2", expandedX=x, expandedRowIdx=torch.tensor([7, 0], dtype=torch.int32), dropPadMode=0, out=torch.zeros(2, 3))


# --- norms

def rows_of(t, r):
    shape, width = [r.randint(1, 3) for _ in range(r.randint(1, 2))], r.randint(2, 40)
    return shape, width, *[draw((*shape, width), t) for _ in range(2)], draw((width,), t), r.choice([1e-6, 1e-3])


def rms(v: torch.Tensor, eps: float):
    rstd = (v.square().mean(-1, keepdim=True) + eps).rsqrt()
    return v * rstd, rstd


@case("aclnnAddRmsNormCast", HALVES)
def _(t, r):
    _, width, a, b, gamma, eps = rows_of(t, r)
    x = a.double() + b.double()
    y, rstd = rms(x, eps)
    y = y * gamma.double()
    return ({"x1": a, "x2": b, "gamma": gamma, "epsilon": eps},
            {"y1Out": (y, torch.float32), "y2Out": (y, t), "rstdOut": (rstd, torch.float32), "xOut": (x, t)}, 16)


@case("aclnnGemmaRmsNorm", F3)
def _(t, r):
    _, _, a, _, gamma, eps = rows_of(t, r)
    y, rstd = rms(a.double(), eps)
    return {"x": a, "gamma": gamma, "epsilon": eps}, {"yOut": (y * (1 + gamma.double()), t), "rstdOut": (rstd, torch.float32)}, 16


@case("aclnnAddLayerNorm", F3)
def _(t, r):
    _, width, a, b, gamma, eps = rows_of(t, r)
    beta, bias = draw((width,), t), r.choice([None, draw((width,), t)])
    x = a.double() + b.double() + (0 if bias is None else bias.double())
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    rstd = (var + eps).rsqrt()
    return ({"x1": a, "x2": b, "gamma": gamma, "beta": beta, "biasOptional": bias, "epsilon": eps, "additionalOutput": True},
            {"yOut": ((x - mean) * rstd * gamma.double() + beta.double(), t), "meanOut": (mean, torch.float32), "rstdOut": (rstd, torch.float32), "xOut": (x, t)}, 64)


def layer_gradients(x, gamma, dy, eps):
    x, g, b = x.double().requires_grad_(), gamma.double().requires_grad_(), torch.zeros(len(gamma), dtype=torch.float64, requires_grad=True)
    F.layer_norm(x, (len(gamma),), g, b, eps).backward(dy.double())
    var, mean = torch.var_mean(x.detach(), -1, correction=0, keepdim=True)
    return x.grad, g.grad, b.grad, mean.float(), (var + eps).rsqrt().float()


@case("aclnnAddLayerNormGrad", F3)
def _(t, r):
    shape, width, a, b, gamma, eps = rows_of(t, r)
    dy, dsum = draw(a.shape, t), r.choice([None, draw(a.shape, t)])
    dx, dg, db, mean, rstd = layer_gradients(a.double() + b.double(), gamma, dy, eps)
    return ({"dy": dy, "x1": a, "x2": b, "rstd": rstd, "mean": mean, "gamma": gamma, "dsumOptional": dsum},
            {"dxOut": (dx + (0 if dsum is None else dsum.double()), t), "dgammaOut": (dg, torch.float32), "dbetaOut": (db, torch.float32)}, 400)


@case("aclnnDeepNorm", F3)
def _(t, r):
    _, width, a, b, gamma, eps = rows_of(t, r)
    beta, alpha = draw((width,), t), 0.5
    x = alpha * a.double() + b.double()
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    rstd = (var + eps).rsqrt()
    return ({"x": a, "gx": b, "beta": beta, "gamma": gamma, "alpha": alpha, "epsilon": eps},
            {"meanOut": (mean, torch.float32), "rstdOut": (rstd, torch.float32), "yOut": ((x - mean) * rstd * gamma.double() + beta.double(), t)}, 64)


@case("aclnnDeepNormGrad", F3)
def _(t, r):
    _, width, a, b, gamma, eps = rows_of(t, r)
    dy, alpha = draw(a.shape, t), 0.5
    d, dg, db, mean, rstd = layer_gradients(alpha * a.double() + b.double(), gamma, dy, eps)
    return ({"dy": dy, "x": a, "gx": b, "gamma": gamma, "mean": mean, "rstd": rstd, "alpha": alpha},
            {"dxOut": (alpha * d, t), "dgxOut": (d, t), "dbetaOut": (db, torch.float32), "dgammaOut": (dg, torch.float32)}, 400)


@case("aclnnAddRmsNormQuant", HALVES)
def _(t, r):
    def make():
        _, width, a, b, gamma, eps = rows_of(t, r)
        x = a.double() + b.double()
        y = rms(x, eps)[0] * gamma.double()
        scale, zero, divides = draw((width,), torch.float32, 0.02, 0.2), draw((width,), torch.int32, -5, 5), r.random() < 0.5
        exact = (y / scale.double() if divides else y * scale.double()) + zero
        return ({"x1": a, "x2": b, "gamma": gamma, "scales1": scale, "zeroPoints1Optional": zero, "axis": -1, "epsilon": eps, "divMode": divides},
                {"y1Out": to_byte(exact), "xOut": (x, t)}, 4, exact)

    return untied(make)


@case("aclnnRmsNormQuant", HALVES)
def _(t, r):
    def make():
        _, width, a, _, gamma, eps = rows_of(t, r)
        beta, scale, offset = draw((width,), t), draw((1,), t, 2, 20), draw((1,), torch.int8, -5, 5)
        exact = (rms(a.double(), eps)[0] * gamma.double() + beta.double()) * scale.double() + offset
        return {"x": a, "gamma": gamma, "beta": beta, "scale": scale, "offset": offset, "epsilon": eps}, {"y": to_byte(exact)}, 0, exact

    return untied(make)


@case("aclnnAddRmsNormDynamicQuantV2", HALVES)
def _(t, r):
    def make():
        shape, width, a, b, gamma, eps = rows_of(t, r)
        x = a.double() + b.double()
        y = rms(x, eps)[0] * gamma.double()
        smooth = [draw((width,), t, 0.5, 2) for _ in range(r.randint(0, 2))]
        first, scale1 = dynamic(y * smooth[0].double() if smooth else y)
        inputs = {"x1": a, "x2": b, "gamma": gamma, "epsilon": eps, **{f"smoothScale{i + 1}Optional": s for i, s in enumerate(smooth)}}
        outputs = {"y1Out": to_byte(first), "xOut": (x, t), "scale1Out": (scale1, torch.float32)}
        exact = first
        if len(smooth) == 2:
            second, scale2 = dynamic(y * smooth[1].double())
            outputs |= {"y2Out": to_byte(second), "scale2Out": (scale2, torch.float32)}
            exact = torch.cat([first, second])
        return inputs, outputs, 16, exact

    return untied(make)


def grouped(t, r):
    groups, space = r.randint(1, 3), [r.randint(1, 4) for _ in range(r.randint(0, 2))]
    channels = groups * r.randint(1, 3)
    x = draw((r.randint(1, 3), channels, *space, 3), t)
    gamma, beta, eps = draw((channels,), t), draw((channels,), t), 1e-5
    flat = x.double().reshape(x.shape[0], groups, -1)
    var, mean = torch.var_mean(flat, -1, correction=0)
    return x, groups, gamma, beta, eps, F.group_norm(x.double(), groups, gamma.double(), beta.double(), eps), mean, (var + eps).rsqrt()


@case("aclnnGroupNormSilu", F3)
def _(t, r):
    x, groups, gamma, beta, eps, y, mean, rstd = grouped(t, r)
    return {"self": x, "gamma": gamma, "beta": beta, "group": groups, "eps": eps}, {"out": (F.silu(y), t), "meanOut": (mean, t), "rstdOut": (rstd, t)}, 64


@case("aclnnGroupNormSwish", F3)
def _(t, r):
    x, groups, gamma, beta, eps, y, mean, rstd = grouped(t, r)
    scale, swish = 1.5, r.random() < 0.7
    want = y * (scale * y).sigmoid() if swish else y
    return ({"x": x, "gamma": gamma, "beta": beta, "numGroups": groups, "dataFormatOptional": "NCHW", "eps": eps, "activateSwish": swish, "swishScale": scale},
            {"yOut": (want, t), "meanOut": (mean, t), "rstdOut": (rstd, t)}, 64)


# --- grouped products

def divided(r, rows: int, groups: int) -> list[int]:
    ends = sorted(r.randint(0, rows) for _ in range(groups - 1))
    return [*ends, rows]


ACTIVATIONS = {0: lambda v: v, 1: torch.relu, 2: lambda v: F.gelu(v, approximate="tanh"), 3: F.gelu,
               4: lambda v: v / (1 + torch.exp(-1.702 * v.abs())) * torch.exp(0.851 * (v - v.abs())), 5: F.silu}


@pytest.mark.parametrize("name", ["aclnnGroupedMatmulV4", "aclnnGroupedMatmulV5"])
@pytest.mark.parametrize("kind", ["bytes", "whole", "kept", "floats"])
def test_grouped_products(name, kind):
    for number in range(4):
        r = seeded(name, kind, number)
        groups, rows, k, n = r.randint(1, 4), r.randint(1, 20), r.randint(2, 40), r.randint(2, 20)
        ends = divided(r, rows, groups)
        t = r.choice(HALVES)
        act = 0 if kind == "whole" else r.randint(0, 5)
        x = draw((rows, k), torch.int8, -128, 128) if kind in ("bytes", "whole") else draw((rows, k), t)
        w = draw((groups, k, n), t) if kind == "floats" else draw((groups, k, n), torch.int8, -128, 128)
        out = torch.zeros(rows, n, dtype=torch.int32 if kind == "whole" else t)
        args: dict = {"x": [x], "weight": [w], "groupListOptional": torch.tensor(ends), "out": [out]}
        listed = r.randint(0, 1)
        if listed:
            args["groupListOptional"] = torch.tensor([b - a for a, b in zip([0, *ends], ends)])
        weights = w.double()
        if kind == "kept":
            args["antiquantScaleOptional"], args["antiquantOffsetOptional"] = [draw((groups, n), t, 0.01, 0.05)], [draw((groups, n), t, -4, 4)]
            weights = (weights + args["antiquantOffsetOptional"][0].double()[:, None]) * args["antiquantScaleOptional"][0].double()[:, None]
        want = torch.zeros(rows, n, dtype=torch.float64)
        for e, (a, b) in enumerate(zip([0, *ends], ends)):
            want[a:b] = x[a:b].double() @ weights[e]
        if kind == "bytes":
            scale, token = draw((groups, n), torch.float32, 1e-5, 1e-4), draw((rows,), torch.float32, 0.5, 2)
            args["scaleOptional"], args["perTokenScaleOptional"] = [scale], [token]
            for e, (a, b) in enumerate(zip([0, *ends], ends)):
                want[a:b] *= scale[e].double() * token[a:b, None].double()
        want = ACTIVATIONS[act](want)
        lib(name, splitItem=3, groupType=0, groupListType=listed, actType=act, **args)
        more.agree("out", out, want, 4 * k + 64)


@pytest.mark.parametrize("dtype", F3)
def test_groups_along_the_inner_size(dtype):
    for number in range(3):
        r = seeded("inner groups", dtype, number)
        groups, m, k, n = r.randint(1, 4), r.randint(1, 9), r.randint(4, 30), r.randint(1, 9)
        ends = divided(r, k, groups)
        x, w = draw((k, m), dtype).t(), draw((k, n), dtype)
        want = torch.stack([x[:, a:b].double() @ w[a:b].double() for a, b in zip([0, *ends], ends)])
        out = torch.full(want.shape, 3, dtype=dtype)
        lib("aclnnGroupedMatmulV4", x=[x], weight=[w], groupListOptional=torch.tensor(ends), out=[out], splitItem=3, groupType=2, groupListType=0, actType=0)
        more.agree("out", out, want, k + 8)
        held = draw((groups * m, n), torch.float32)
        sums = held.clone()
        lib("aclnnGroupedMatmulAdd", x=x.t().contiguous(), weight=w, groupList=torch.tensor(ends), yRef=sums, transposeX=True, transposeWeight=False, groupType=2)
        more.agree("yRef", sums, held.double() + want.view(groups * m, n), k + 8)


def test_grouped_refusals_name_what_is_missing():
    x, w = draw((2, 3), torch.int8), draw((1, 3, 4), torch.int8)
    with pytest.raises(Failure, match="int8 products to float16 have no scale"):
        lib("aclnnGroupedMatmulV4", x=[x], weight=[w], groupListOptional=torch.tensor([2]), out=[torch.zeros(2, 4, dtype=torch.float16)], splitItem=3, groupType=0,
            groupListType=0, actType=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("by_rows", [False, True])
def test_coalesce(dtype, by_rows):
    for number in range(3):
        r = seeded("coalesce", dtype, by_rows, number)
        entries, width = r.randint(6, 12), r.randint(0, 3)
        at = torch.randint(0, 2, (2, entries))
        unique, inverse = torch.unique(at[0] * 2 + at[1], return_inverse=True)
        values = draw((entries, width) if width else (entries,), dtype)
        want = torch.sparse_coo_tensor(at, values.double() if dtype.is_floating_point else values, (2, 2, *values.shape[1:])).coalesce()
        indices = at.t().contiguous() if by_rows else at
        made = torch.zeros(len(unique), 2, dtype=torch.int64) if by_rows else torch.zeros(2, len(unique), dtype=torch.int64)
        sums = torch.zeros(len(unique), *values.shape[1:], dtype=dtype)
        lib("aclnnCoalesceSparse", uniqueLen=unique, uniqueIndices=inverse, indices=indices, values=values, newIndices=made, newValues=sums)
        assert torch.equal(made.t() if by_rows else made, want.indices())
        more.agree("newValues", sums, want.values(), 4 * entries)


# --- small fused operators

@case("aclnnGeluMul", F3)
def _(t, r):
    n, how = r.randint(1, 20), r.choice(["none", "tanh"])
    x = draw((r.randint(1, 4), 2 * n), t)
    return {"input": x, "approximateOptional": how}, {"out": (F.gelu(x[:, :n].double(), approximate=how) * x[:, n:].double(), t)}, 64


@case("aclnnApplyTopKTopP", F3)
def _(t, r):
    rows, n = r.randint(1, 4), r.randint(2, 30)
    x = distinct((rows, n)).to(torch.float16).to(t) if t != torch.bfloat16 else (torch.stack([torch.randperm(n) for _ in range(rows)]) / 4).to(t)
    p, k = r.choice([None, torch.full((rows,), r.choice([0.31, 0.77])).to(t)]), r.choice([None, torch.randint(1, n + 1, (rows,)).int()])
    want = x.double()
    if k is not None:
        least = want.sort(-1)[0].gather(1, (n - k.long())[:, None])
        want = want.masked_fill(want < least, -math.inf)
    if p is not None:
        values, order = want.sort(-1)
        gone = values.softmax(-1).cumsum(-1) <= 1 - p.double()[:, None]
        gone[:, -1] = False
        want = want.masked_fill(torch.zeros(rows, n, dtype=torch.bool).scatter(1, order, gone), -math.inf)
    return {"logits": x, "p": p, "k": k}, {"out": (want, t)}, 0


@case("aclnnInterleaveRope", F3)
def _(t, r):
    b, heads, rows, width = r.randint(1, 2), r.randint(1, 3), r.randint(1, 5), 2 * r.randint(1, 8)
    x, cos, sin = draw((b, heads, rows, width), t), draw((b, 1, rows, width), t), draw((b, 1, rows, width), t)
    h = torch.cat([x[..., ::2], x[..., 1::2]], -1).double()
    turned = torch.cat([-h[..., width // 2:], h[..., : width // 2]], -1)
    return {"x": x, "cos": cos, "sin": sin}, {"out": (h * cos.double() + turned * sin.double(), t)}, 16


@case("aclnnScatterPaKvCache", [*F3, torch.int8])
def _(t, r):
    blocks, size, heads, tokens = r.randint(2, 4), r.randint(1, 4), r.randint(1, 3), r.randint(1, 6)
    key, value = draw((tokens, heads, 5), t), draw((tokens, heads, 7), t)
    keys, values = draw((blocks, size, heads, 5), t), draw((blocks, size, heads, 7), t)
    slots = [*r.sample(range(blocks * size), min(tokens, blocks * size)), *[-1] * tokens][:tokens]
    wanted = [keys.clone(), values.clone()]
    for i, slot in enumerate(slots):
        if slot >= 0:
            wanted[0][slot // size, slot % size], wanted[1][slot // size, slot % size] = key[i], value[i]
    return ({"key": key, "keyCacheRef": keys, "slotMapping": torch.tensor(slots, dtype=torch.int32), "value": value, "valueCacheRef": values},
            {"keyCacheRef": wanted[0], "valueCacheRef": wanted[1]}, 0)


@case("aclnnInplaceScatterUpdate", [*F3, torch.int8])
def _(t, r):
    b, heads, rows, width, some = r.randint(1, 3), r.randint(1, 2), r.randint(3, 8), r.randint(1, 4), r.randint(1, 3)
    data, updates = draw((b, heads, rows, width), t), draw((b, heads, some, width), t)
    at = torch.randint(0, rows - some + 1, (b,))
    want = data.clone()
    for i in range(b):
        want[i, :, at[i]: at[i] + some] = updates[i]
    return {"data": data, "indices": at, "updates": updates, "axis": -2}, {"data": want}, 0


@case("aclnnCrossEntropyLoss", [*F3, torch.float64], times=5)
def _(t, r):
    return cross_entropy(t, r)[0]


@case("aclnnCrossEntropyLossGrad", [*F3, torch.float64], times=5)
def _(t, r):
    return cross_entropy(t, r)[1]


def cross_entropy(t, r):
    rows, classes = r.randint(2, 8), r.randint(2, 20)
    x, target, weight = draw((rows, classes), t), torch.randint(0, classes, (rows,)), r.choice([None, draw((classes,), torch.float32, 0.5, 2)])
    reduction, smoothing = r.choice(["mean", "sum", "none"]), r.choice([0.0, 0.1])
    if r.random() < 0.5:
        target[r.randrange(1, rows)] = -100
    a = x.double().requires_grad_()
    want = F.cross_entropy(a, target, None if weight is None else weight.double(), ignore_index=-100, reduction=reduction, label_smoothing=smoothing)
    grad = draw(want.shape, t)
    (want * grad.double()).sum().backward()
    logs = x.double().log_softmax(-1)
    common = {"target": target, "weightOptional": weight, "reductionOptional": reduction, "ignoreIndex": -100, "labelSmoothing": smoothing, "lseSquareScaleForZloss": 0.0}
    given = logs.to(t)
    # The gradient is that of the logarithms as they are passed, rounded.
    counted = target != -100
    w = torch.ones(classes).double() if weight is None else weight.double()
    share = torch.zeros(rows, classes).double() + smoothing / classes * w
    share[torch.arange(rows)[counted], target[counted]] += (1 - smoothing) * w[target[counted]]
    inner = (given.double().exp() * share.sum(-1, keepdim=True) - share) * counted[:, None]
    scale = grad.double().reshape(-1, 1) / (w[target[counted]].sum() if reduction == "mean" else 1)
    assert t != torch.float32 or torch.allclose(inner * scale, a.grad, rtol=1e-4, atol=1e-5)
    return (({**common, "input": x, "returnZloss": False}, {"lossOut": (want.detach(), t), "logProbOut": (logs, t)}, 64),
            ({**common, "gradLoss": grad, "logProb": given}, {"out": (inner * scale, t)}, 64))
