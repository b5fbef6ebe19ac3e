"""Which calls torch_npu hands to the CPU. It says so once per operator and process, so what was said is remembered, and a
case is looked through for these operators."""
from __future__ import annotations

import re

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NOTICE = re.compile(r"operator 'aten::([\w.]+)' is not currently supported on the NPU backend and will fall back")


def base(name: str) -> str:
    """add_.Tensor, add.out, add.Tensor: add."""
    return name.split(".")[0].rstrip("_")


class Seen(TorchDispatchMode):
    """The aten operators that are called on the card and for which torch_npu has no kernel of its own."""

    def __init__(self):
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name
        full = f"{name}.{function._schema.overload_name}" if function._schema.overload_name else name
        if any(isinstance(x, torch.Tensor) and x.device.type == "npu" for x in tree_leaves((args, kwargs))):
            if not torch._C._dispatch_has_kernel_for_dispatch_key(full, "PrivateUse1"):
                self.names.add(base(name.split("::")[-1]))
        return function(*args, **(kwargs or {}))


class Fallbacks:
    def __init__(self, stderr):
        self.stderr = stderr
        self.told: set[str] = set()
        self.inside: dict[str, set[str]] = {}  # operators whose notice names something that no case calls by that name
        self.suspect = True

    def new_job(self, job: str) -> None:
        self.stderr.take()
        self.job, self.suspect = job, True

    def of(self, again) -> list[str]:
        """Names of what fell back in the case that just ran; `again` runs it once more."""
        fresh = {base(n) for n in NOTICE.findall(self.stderr.take())}
        self.told |= fresh
        if not self.told or (not self.suspect and not fresh):
            return sorted(fresh)
        seen = Seen()
        try:
            with seen:
                again()
        except Exception:  # the case itself has told what fails
            pass
        fresh |= {base(n) for n in NOTICE.findall(self.stderr.take())}
        for name in fresh - seen.names:
            self.inside.setdefault(name, set()).add(self.job)
        found = (self.told & seen.names) | fresh | {n for n, jobs in self.inside.items() if self.job in jobs}
        self.suspect = bool(found)
        return sorted(found)
