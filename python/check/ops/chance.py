"""Operators whose values are random, or not defined: shape and type are compared, the same seed has to give the same values,
and many draws have to have the mean that the CPU's draws have."""
from __future__ import annotations

import math
import sys

import torch

import judge
from samples import Call, copied, moved

UNDEFINED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "normal.in_place", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "uniform", "normal.number_mean",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout.with_train", "nn.functional.fractional_max_pool2d", "svd_lowrank", "pca_lowrank",
    "nn.functional.fractional_max_pool3d", "randperm",
}
DRAWS = 24
seed_now = 5


def set_seed(op, *args, **kwargs):
    """Stands in for the database's own wrapper, which draws with one seed only."""
    torch.manual_seed(seed_now)
    return op(*args, **kwargs)


def free_seeds() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal") and hasattr(module, "wrapper_set_seed"):
            module.wrapper_set_seed = set_seed


def use_seed(seed: int) -> None:
    global seed_now
    seed_now = seed
    torch.manual_seed(seed)


def is_random(name: str, call: Call) -> bool:
    if name in UNDEFINED or name in RANDOM:
        return True
    if name == "nn.functional.rrelu":
        return bool(call.kwargs.get("training", False))
    p = call.kwargs.get("dropout_p", call.kwargs.get("p", 0) if "dropout" in name else 0)
    if name == "nn.functional.multi_head_attention_forward":
        return bool(call.kwargs.get("training", True)) and len(call.args) > 9 and call.args[9] > 0
    return "attention" in name and bool(p)


def check(op, call: Call) -> tuple[str, str]:
    from runner import attempt, failure
    from samples import title

    same = attempt(lambda: judge.flat(copied(call).run(op)))
    got = attempt(lambda: judge.flat(moved(call, "npu").run(op)))
    if not same[0]:
        return ("accepted", f"torch's CPU refuses: {str(same[1])[:200]}") if got[0] else ("pass", "")
    if not got[0]:
        return failure(got[1])
    verdict = judge.compare(got[1], same[1], None, values=False)
    if verdict[0] != "pass" or title(op) in UNDEFINED:
        return verdict
    draws = []
    for seed in (5, 5):
        use_seed(seed)
        draws.append(judge.flat(moved(call, "npu").run(op)))
    for a, b in zip(*draws):
        if isinstance(a, torch.Tensor) and not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)):
            return "wrong", "the same seed gives other values"
    return rate(op, call)


def rate(op, call: Call) -> tuple[str, str]:
    """Means of draws on the card and on the CPU differ by no more than six standard errors."""

    def drawn(make):
        rows = []
        for draw in range(DRAWS):
            use_seed(100 + draw)
            first = judge.flat(make().run(op))[0]
            if not isinstance(first, torch.Tensor) or first.dtype.is_complex or first.numel() == 0:
                return None
            rows.append(first.to(torch.float64).reshape(-1).clamp(-1e3, 1e3))
        return torch.stack(rows)

    here, there = drawn(lambda: moved(call, "npu")), drawn(lambda: copied(call))
    if here is None or there is None:
        return "pass", ""
    here, there = here.mean(dim=1), there.mean(dim=1)
    error = math.sqrt((float(here.var()) + float(there.var())) / DRAWS)
    gap = abs(float(here.mean()) - float(there.mean()))
    if gap > 6 * error + 1e-6 * abs(float(there.mean())) + 1e-9:
        return "wrong", f"mean of {DRAWS} draws {float(here.mean()):.6g}, on the CPU {float(there.mean()):.6g}, standard error {error:.3g}"
    return "pass", ""
