"""Samples for the rules of operator definitions: what a good call looks like, and how to break it.

A sampler fills shapes and types of inputs in a `Case`; a violator changes one finished argument list so that the call must be
refused. Both are found by the rule's name; rooms add their own with @sampler and @violator.
"""
from __future__ import annotations

import math
import random
from typing import Callable

import torch

SAMPLERS: dict[str, Callable] = {}
VIOLATORS: dict[str, Callable] = {}

BY_NAME = {str(t).removeprefix("torch."): t for t in (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
    torch.bool, torch.complex64, torch.complex128)}
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
# Around vector widths, empty, 0-d, one element, long rows, many dimensions.
SHAPES = [(), (1,), (0,), (3, 0, 2), (7,), (8,), (15,), (16,), (17,), (31,), (33,), (65,), (2, 3), (5, 1, 7), (4, 33), (3, 260),
          (2, 3, 4, 5), (1, 1), (2, 1, 3, 1, 2), (1030,), (17, 129), (2, 2, 2, 2, 2, 2, 2, 3), (40, 1100)]


def sampler(name: str):
    return lambda f: SAMPLERS.setdefault(name, f)


def violator(name: str):
    return lambda f: VIOLATORS.setdefault(name, f)


def narrowed(shape: tuple, rng: random.Random) -> tuple:
    """A shape that broadcasts to `shape`."""
    if rng.random() < 0.4:
        return shape
    out = [s if rng.random() < 0.6 else 1 for s in shape]
    return tuple(out[rng.randrange(len(out) + 1):])


def joint_types(types: list, count: int, rng: random.Random) -> list:
    """`count` types whose promoted type the operator computes; mostly one and the same."""
    types = [BY_NAME[t] for t in types if t in BY_NAME]
    first = rng.choice(types)
    if count == 1 or rng.random() < 0.6:
        return [first] * count
    chosen = [first]
    while len(chosen) < count:
        other = rng.choice(types)
        together = first
        for t in chosen[1:] + [other]:
            together = torch.promote_types(together, t)
        chosen.append(other if together in types else first)
    rng.shuffle(chosen)
    return chosen


@sampler("broadcast")
def _(case, rule):
    *operands, out = [p for p in rule["params"]]
    tensors = [p for p in operands if case.kind(p) == "tensor"]
    inplace = out in operands
    full = case.shapes.get(out) or case.rng.choice(SHAPES)
    for p in tensors:
        case.shapes[p] = full if p == out else narrowed(full, case.rng)
    if not inplace and not any(case.shapes[p] == full for p in tensors):
        case.shapes[case.rng.choice(tensors)] = full


@violator("broadcast")
def _(case, rule):
    out = rule["params"][-1]
    operands = [p for p in rule["params"][:-1] if case.kind(p) == "tensor"]
    if out in operands:  # an operand larger than what is written
        other = next((p for p in operands if p != out), None)
        if other is None:
            return None
        case.values[other] = torch.ones((2, *(s + 3 for s in case.values[out].shape)), dtype=case.values[other].dtype)
        return [other, out]
    case.values[out] = torch.zeros((*case.values[out].shape, 3), dtype=case.values[out].dtype)
    return [out]


@sampler("same_shape")
def _(case, rule):
    a, b = rule["params"]
    shape = case.shapes.get(a) or case.shapes.get(b) or case.rng.choice(SHAPES)
    case.shapes[a] = case.shapes[b] = shape


@violator("same_shape")
def _(case, rule):
    a, b = rule["params"]
    if a == b or case.values.get(b) is None or case.values.get(a) is None:
        return None
    case.values[b] = torch.zeros((*case.values[b].shape, 3), dtype=case.values[b].dtype)
    return [b]


@sampler("expands_to")
def _(case, rule):
    a, b = rule["params"]
    full = case.shapes.get(b) or case.rng.choice(SHAPES)
    case.shapes[b] = full
    case.shapes[a] = narrowed(full, case.rng)


@violator("expands_to")
def _(case, rule):
    a, b = rule["params"]
    case.values[a] = torch.zeros((*(s + 2 for s in case.values[b].shape), 5), dtype=case.values[a].dtype)
    return [a]


@sampler("same_dtype")
def _(case, rule):
    a, b = rule["params"]
    dtype = case.dtypes.get(a) or case.dtypes.get(b) or case.rng.choice(FLOATS[:3])
    case.dtypes[a] = case.dtypes[b] = dtype


@violator("same_dtype")
def _(case, rule):
    a, b = rule["params"]
    if a == b or case.values.get(b) is None or case.values.get(a) is None:
        return None
    case.values[b] = case.values[b].to(torch.float32 if case.values[b].dtype != torch.float32 else torch.float16)
    return [b]


@sampler("dtype_in")
def _(case, rule):
    (t,) = rule["params"]
    if t not in case.dtypes:
        case.dtypes[t] = case.rng.choice([BY_NAME[n] for n in rule["types"] if n in BY_NAME])


@violator("dtype_in")
def _(case, rule):
    (t,) = rule["params"]
    if not isinstance(case.values.get(t), torch.Tensor):
        return None
    wrong = next((d for d in (torch.int16, torch.complex64, torch.float64) if str(d).removeprefix("torch.") not in rule["types"]), None)
    if wrong is None:
        return None
    case.values[t] = torch.zeros(case.values[t].shape, dtype=wrong)
    return [t]


@sampler("promotes")
def _(case, rule):
    *operands, out = rule["params"]
    tensors = [p for p in operands if case.kind(p) == "tensor"]
    types = case.op["types"]
    imm = case.op["imm"]
    if imm & 3 == 1 and case.rng.random() < 0.15 and out not in operands and not any("complex" in t for t in types):
        types = types + ["int32", "bool"]  # operators that turn integers into float32
    chosen = joint_types(types, len(tensors), case.rng)
    if case.op["kernel"].endswith(("Grad", "GradResult")):  # torch computes mixed halves in halves here
        chosen = [chosen[0]] * len(chosen)
    # Operands without dimensions have the others' type: whether a wider number is rounded first is the judge's business.
    full = [t for p, t in zip(tensors, chosen) if case.shapes.get(p) != ()]
    if full:
        chosen = [t if case.shapes.get(p) != () else full[0] for p, t in zip(tensors, chosen)]
    if out in tensors:  # in place: the written one must hold the result
        joint = chosen[0]
        for t in chosen[1:]:
            joint = torch.promote_types(joint, t)
        chosen[tensors.index(out)] = joint
    for p, t in zip(tensors, chosen):
        case.dtypes[p] = t


@violator("promotes")
def _(case, rule):
    *operands, out = rule["params"]
    value = case.values.get(out)
    if out in operands or value is None or value.dtype == torch.bool:
        return None
    if value.dtype.is_floating_point:
        wrong = torch.int32
    elif value.dtype.is_complex:
        wrong = torch.float32
    else:
        wrong = torch.bool
    case.values[out] = torch.zeros(value.shape, dtype=wrong)
    return [out]


@sampler("dtype_is")
def _(case, rule):
    t, dtype = rule["params"]
    known = case.op["samples"].get(dtype)
    case.values[dtype] = case.rng.choice(eval(known) if known else list(BY_NAME.values()))


@violator("dtype_is")
def _(case, rule):
    t, dtype = rule["params"]
    case.values[t] = torch.zeros(case.values[t].shape, dtype=torch.int16 if case.values[dtype] != torch.int16 else torch.int32)
    return [t]


@sampler("rank_is")
def _(case, rule):
    (t,) = rule["params"]
    case.shapes[t] = tuple(case.rng.choice([1, 2, 5]) for _ in range(rule["imm"]))


@violator("rank_is")
def _(case, rule):
    (t,) = rule["params"]
    case.values[t] = torch.zeros((1,) * (rule["imm"] + 1), dtype=case.values[t].dtype)
    return [t]


@sampler("same_lists")
def _(case, rule):
    a, b = rule["params"]
    case.lists.update({a, b})


@violator("same_lists")
def _(case, rule):
    a, b = rule["params"]
    if a == b or len(case.values[b]) < 1:
        return None
    case.values[b] = case.values[b][:-1]
    return [a, b]


@sampler("dim_in_range")
def _(case, rule):
    dim, t = rule["params"]
    shape = case.shapes.setdefault(t, case.rng.choice(SHAPES))
    n = max(len(shape), 1)
    case.values[dim] = case.rng.randrange(-n, n)


@violator("dim_in_range")
def _(case, rule):
    dim, t = rule["params"]
    case.values[dim] = 9
    return [dim]


for nothing in ("dtype_free", "shape_free", "castable"):
    SAMPLERS.setdefault(nothing, lambda case, rule: None)


# What the second, third … operand may hold, where not every value has a meaning: kernel -> parameter position -> generator.
def nonzero(t: torch.Tensor) -> torch.Tensor:
    return torch.where(t == 0, torch.ones_like(t), t) if t.dtype != torch.bool else torch.ones_like(t)


def small_count(t: torch.Tensor) -> torch.Tensor:
    return (t.abs() % 6).to(t.dtype) if not t.dtype.is_floating_point and t.dtype != torch.bool else t


def finite(t: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(t, 1.0, 2.0, -2.0).clamp(-1e4, 1e4) if t.dtype.is_floating_point else t


def near_one(t):
    """A product of many numbers overflows or vanishes, and then 0·∞ depends on the order: keep it in range."""
    if t.is_complex():
        return (torch.sgn(t) * (1 + t.abs().clamp(max=8) / 1024)).to(t.dtype)
    if not t.is_floating_point():
        return t if t.dtype == torch.bool else torch.where(t < 0, -1, 1).to(t.dtype)
    return (1 + t.abs().clamp(max=8) / 1024).to(t.dtype) * torch.where(t < 0, -1, 1).to(t.dtype)


# By kernel and the operand's place, or by function and the parameter's name.
DOMAIN = {
    # of NaN torch's vector form makes 0 when there is a bound and its scalar form NaN, as we do
    "LogitGrad": {1: lambda t: t.nan_to_num(0.25, math.inf, -math.inf)},
    "aclnnProd": {"self": near_one}, "aclnnProdDim": {"self": near_one}, "aclnnCumprod": {"input": near_one},
    # torch's vector forms turn infinities into NaN
    "Gelu": {0: finite}, "GeluTanh": {0: finite}, "Mish": {0: finite}, "GeluGrad": {0: finite, 1: finite}, "GeluTanhGrad": {0: finite, 1: finite},
    "MishGrad": {0: finite, 1: finite},
    # torch's scalar and vector forms disagree about NaN
    "HardshrinkGrad": {1: finite}, "HardtanhGrad": {1: finite}, "HardswishGrad": {1: finite}, "EluGrad": {1: finite}, "ThresholdGrad": {1: finite},
    "Gcd": {0: small_count, 1: small_count},
    "DivFloor": {1: nonzero}, "DivTrunc": {1: nonzero}, "Remainder": {1: nonzero}, "Fmod": {1: nonzero},
    "Pow": {1: small_count, 0: small_count}, "ShiftLeft": {1: small_count, 0: small_count}, "ShiftRight": {1: small_count},
    "Cube": {0: small_count}, "Square": {0: small_count},
}
