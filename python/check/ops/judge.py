"""Right or wrong: results against torch's CPU in the same type and in double precision.

The rounding model (docs/reference/ops.md states it too): floating results are computed in float32 or better and rounded
once on store. A result x of type t passes when

    |x - exact| <= ulps(t) * eps(t) * |exact| + 4 * max|cpu - exact|

where `exact` is torch's CPU result in double precision, `cpu` its result in type t, and the maximum is taken over the
tensor: operators that torch composes of several calls round in between, and torch's own error on the CPU says how much
that matters. Results outside of the model but inside torch.testing's default bounds for the type pass as "loose".
Integers and booleans are equal or wrong. NaN and infinities stand where torch's CPU has them in either precision.
"""
from __future__ import annotations

import torch
from torch.utils._pytree import tree_flatten

ULPS = {torch.float32: 8, torch.float16: 1, torch.bfloat16: 1, torch.float64: 8, torch.complex64: 8, torch.complex32: 2,
        torch.complex128: 8}
TORCH_BOUNDS = {torch.float32: (1.3e-6, 1e-5), torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5),
                torch.float64: (1e-7, 1e-7), torch.complex64: (1.3e-6, 1e-5), torch.complex32: (1e-3, 1e-5),
                torch.complex128: (1e-7, 1e-7)}


def plain(x):
    """On the CPU, dense, without lazy conjugation."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach()
    if x.layout != torch.strided:
        x = x.to_dense()
    x = x.cpu()
    return x.resolve_conj().resolve_neg()


def flat(result) -> list:
    leaves, _ = tree_flatten(result)
    return [plain(x) for x in leaves]


def ties(input, got, same):
    """Indices into `input`: those of the CPU when both name equal elements, else as they are."""
    index = lambda x: isinstance(x, torch.Tensor) and x.dtype is torch.int64
    if not (index(got) and index(same)) or got.shape != same.shape or got.numel() == 0 or not isinstance(input, torch.Tensor) or input.dim() == 0:
        return got
    for dim in range(input.dim()):
        a, b = (x if x.dim() == input.dim() else x.unsqueeze(min(dim, x.dim())) for x in (got, same))
        if a.dim() != input.dim() or any(a.shape[d] != input.shape[d] for d in range(a.dim()) if d != dim):
            continue
        if int(a.min()) < 0 or int(a.max()) >= input.shape[dim]:
            continue
        if a.shape[dim] > 1 and bool((a.sort(dim).values.diff(dim=dim) == 0).any()):
            continue  # the same element twice
        x, y = input.detach().gather(dim, a), input.detach().gather(dim, b)
        if bool(((x == y) | (torch.isnan(x) & torch.isnan(y))).all()):
            return same
    return got


def compare(got: list, same: list, exact: list | None, values: bool = True) -> tuple[str, str]:
    """("pass" | "loose" | "wrong", text)."""
    if len(got) != len(same):
        return "wrong", f"{len(got)} results instead of {len(same)}"
    worst = ("pass", "")
    for i, (g, s) in enumerate(zip(got, same)):
        e = exact[i] if exact is not None and len(exact) == len(same) else None
        verdict, text = one(g, s, e, values)
        if verdict == "wrong":
            return verdict, f"result {i}: {text}" if len(got) > 1 else text
        if verdict == "loose":
            worst = verdict, text
    return worst


def one(g, s, e, values) -> tuple[str, str]:
    if not isinstance(s, torch.Tensor):
        if isinstance(s, float) and isinstance(g, float):
            return one(torch.tensor(g), torch.tensor(s), torch.tensor(e) if isinstance(e, float) else None, values)
        same = g == s or not values or isinstance(s, (torch.device, torch.Generator))
        return ("pass", "") if same else ("wrong", f"{str(g)[:60]} instead of {str(s)[:60]}")
    if not isinstance(g, torch.Tensor):
        return "wrong", f"{type(g).__name__} instead of a tensor"
    if g.dtype != s.dtype:
        return "wrong", f"type {g.dtype} instead of {s.dtype}"
    if g.shape != s.shape:
        return "wrong", f"shape {list(g.shape)} instead of {list(s.shape)}"
    if not values or g.numel() == 0:
        return "pass", ""
    if isinstance(e, torch.Tensor) and (e.shape != s.shape or e.dtype.is_complex != s.dtype.is_complex):
        e = None
    if not (g.dtype.is_floating_point or g.dtype.is_complex):
        if torch.equal(g, s) or (isinstance(e, torch.Tensor) and torch.equal(g, e.to(g.dtype))):
            return "pass", ""
        return "wrong", difference(g, s, g != s)
    return floating(g, s, e)


def floating(g, s, e) -> tuple[str, str]:
    eps = torch.finfo(g.dtype).eps
    wide = torch.complex128 if g.dtype.is_complex else torch.float64
    gw, sw = g.to(wide), s.to(wide)
    ew = e.to(wide) if isinstance(e, torch.Tensor) else sw
    if not g.dtype.is_complex:
        big = torch.finfo(g.dtype).max * (1 + eps / 4)
        ew = torch.where(ew.abs() > big, torch.sign(ew) * float("inf"), ew)  # rounding makes it infinite
    finite = torch.isfinite(gw) & torch.isfinite(ew)
    other = ~finite  # not finite: as the CPU has it, in either precision
    as_cpu = (gw == sw) | (torch.isnan(gw) & torch.isnan(sw)) | (gw == ew) | (torch.isnan(gw) & torch.isnan(ew))
    bad = other & ~as_cpu
    if g.dtype.is_complex:
        bad &= torch.isfinite(gw) | torch.isfinite(sw)  # which part of a complex number is infinite differs by formula
    # Near the edge of the type a result may round to infinity or to the largest number.
    if bool(bad.any()):
        return "wrong", difference(g, ew, bad)
    error = torch.where(finite, (gw - ew).abs(), 0.0)
    both = torch.isfinite(sw) & torch.isfinite(ew)
    cpu_error = float(torch.where(both, (sw - ew).abs(), 0.0).max())
    tiny = torch.finfo(g.dtype).smallest_normal * eps
    size = torch.where(finite, ew.abs(), 0.0)
    model = ULPS[g.dtype] * eps * size + 4 * cpu_error + tiny
    if bool((error <= model).all()):
        return "pass", ""
    rtol, atol = TORCH_BOUNDS[g.dtype]
    near_same = (gw - sw).abs() <= atol + rtol * sw.abs()
    near = (error <= atol + rtol * size) | near_same | (error <= model)
    if bool((near | other).all()):
        return "loose", difference(g, ew, error > model)
    return "wrong", difference(g, ew, ~(near | other))


def difference(g, e, where) -> str:
    """Names the first element that differs most."""
    flat_where = where.reshape(-1)
    wide = torch.complex128 if g.dtype.is_complex or e.dtype.is_complex else torch.float64
    distance = torch.nan_to_num((g.to(wide) - e.to(wide)).abs().reshape(-1), nan=float("inf"))
    distance = torch.where(flat_where, distance, torch.full_like(distance, -1.0))
    at = int(distance.argmax())
    return f"{int(flat_where.sum())} of {g.numel()} differ, e.g. {g.reshape(-1)[at].item()} instead of {e.reshape(-1)[at].item()}"
