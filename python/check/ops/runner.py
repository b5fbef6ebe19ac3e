"""The cases of one operator and data type, and what becomes of each."""
from __future__ import annotations

import re

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import chance
import judge
from samples import Call, calls, copied, higher, moved, title

# Order of the kinds within a sample; the driver resumes behind a pair (index, kind).
FORWARD, OUT, INPLACE, STRIDED = "a", "b", "c", "d"
# Which of several equal elements they name is not defined.
FREE_ORDER = ("sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian")
# torch itself wants these arguments on the CPU.
TAKE_CPU_INTEGERS = ("tensor_split",)


def failure(e: BaseException) -> tuple[str, str]:
    """Ours when our library's text is in the message, torch_npu's otherwise."""
    text = str(e)
    ours = re.findall(r"\[AnyNPU\] (.+)", text)
    if ours:
        told = next((t for t in ours if "executor is null" not in t), ours[0])
        missing = "not implemented in AnyNPU yet" in told
        return ("missing" if missing else "refused"), told[:400]
    not_there = re.search(r"(acl\w+) or acl\w+ not in", text)
    if not_there:
        return "missing", f"{not_there.group(1)} is not exported"
    lines = [l for l in text.splitlines() if l.strip()]
    return "raised", f"{type(e).__name__}: {' '.join(lines)[:300]}"


class Runner:
    def __init__(self, op, dtype, seed: int, limit: int):
        self.op, self.dtype, self.seed = op, dtype, seed
        self.grad = dtype is torch.float32 and op.supports_autograd and dtype in op.dtypes
        self.samples = calls(op, dtype, seed, limit, self.grad)
        self.text = ""

    def cases(self):
        for index, call in self.samples:
            prepared = Sample(self, index, call)
            self.text = call.text()
            yield index, FORWARD, prepared.forward
            if prepared.random:
                continue
            if self.op.supports_out:
                yield index, OUT, prepared.out
            if self.op.inplace_variant is not None and not call.broadcasts:
                yield index, INPLACE, prepared.inplace
            yield index, STRIDED, prepared.strided


class Sample:
    def __init__(self, runner: Runner, index: int, call: Call):
        self.runner, self.index, self.call = runner, index, call
        self.op = runner.op
        self.random = chance.is_random(title(runner.op), call)
        self._cpu = self._exact = None

    # What the CPU says. A call that torch refuses on the CPU has to be refused on the card.
    def same(self):
        if self._cpu is None:
            self._cpu = attempt(lambda: self.results(copied(self.call)))
        return self._cpu

    def exact(self):
        if self._exact is None:
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)  # what integers become
            try:
                ok, value = attempt(lambda: self.results(higher(self.call)))
            finally:
                torch.set_default_dtype(before)
            self._exact = value if ok else [None]
        return self._exact if self._exact != [None] else None

    def results(self, call: Call) -> list:
        """Values, then gradients."""
        inputs = [x for x in call.leaves() if x.requires_grad]
        result = call.run(self.op)
        outs = judge.flat(result)
        if not (self.runner.grad and inputs):
            return outs
        leaves, _ = tree_flatten(result)
        roots = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad and x.grad_fn is not None]
        if not roots:
            return outs
        grads = torch.autograd.grad(roots, inputs, [weights(x, i) for i, x in enumerate(roots)], allow_unused=True)
        return outs + [judge.plain(g) if g is not None else None for g in grads]

    def card(self, call: Call) -> Call:
        return moved(call, "npu", keep_integers=title(self.op) in TAKE_CPU_INTEGERS)

    def judged(self, got, same, exact) -> tuple[str, str]:
        ok_same, same = same
        ok_got, got = got
        if not ok_same:
            if ok_got:
                return "accepted", f"torch's CPU refuses: {str(same)[:200]}"
            return "pass", ""
        if not ok_got:
            return failure(got)
        if self.op.name in FREE_ORDER and not self.call.kwargs.get("stable"):
            got = [judge.ties(self.call.input, g, s) for g, s in zip(got, same)] if len(got) == len(same) else got
        return judge.compare(got, same, exact)

    def forward(self):
        if self.random:
            return chance.check(self.op, self.call)
        got = attempt(lambda: self.results(self.card(self.call)))
        return self.judged(got, self.same(), self.exact())

    def outs_only(self, call: Call, **more):
        with torch.no_grad():
            return judge.flat(call.run(self.op, **more))

    def out(self):
        same = attempt(lambda: self.outs_only(copied(self.call)))
        if not same[0] or not all(isinstance(x, torch.Tensor) and x.layout == torch.strided for x in same[1]):
            return "pass", ""

        def into(device, call):
            with torch.no_grad():
                shape = call.run(self.op) if device == "cpu" else copied(self.call).run(self.op)
                leaves, spec = tree_flatten(shape)
                # Every second element of a larger tensor: out= has to honour strides.
                targets = [torch.empty([*x.shape, 2], dtype=x.dtype, device=device).fill_(1)[..., self.index % 2] for x in leaves]
                call.run(self.op, out=targets[0] if isinstance(shape, torch.Tensor) else tuple(targets))
                return [judge.plain(t) for t in targets]

        same = attempt(lambda: into("cpu", copied(self.call)))
        got = attempt(lambda: into("npu", self.card(self.call)))
        return self.judged(got, same, self.shortened(same))

    def inplace(self):
        def run(call):
            with torch.no_grad():
                target = call.input[0] if isinstance(call.input, (list, tuple)) else call.input
                call.run(self.op.inplace_variant)
                return [judge.plain(target)]

        if not isinstance(self.call.input, torch.Tensor):
            return "pass", ""
        same = attempt(lambda: run(copied(self.call)))
        got = attempt(lambda: run(self.card(self.call)))
        return self.judged(got, same, self.shortened(same))

    def strided(self):
        call = self.call.mapped(spread)
        same = attempt(lambda: self.outs_only(copied(call)))
        got = attempt(lambda: self.outs_only(self.card(call)))
        return self.judged(got, same, self.shortened(same))

    def shortened(self, same):
        """The exact values without the gradients."""
        exact = self.exact()
        return exact[: len(same[1])] if exact is not None and same[0] else None


def spread(x):
    """The same values with gaps between them and the dims stored in another order."""
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.dim() == 0 or x.numel() == 0 or x.numel() > 1 << 20:
        return x
    plain = x.detach().resolve_conj().resolve_neg()
    wide = torch.empty([*reversed(plain.shape), 2], dtype=plain.dtype)
    view = wide[..., 1].permute(*reversed(range(plain.dim())))
    view.copy_(plain)
    return view


def weights(x: torch.Tensor, i: int) -> torch.Tensor:
    """Cotangents, equal on every device and in every precision."""
    generator = torch.Generator().manual_seed(1000 + i)
    real = torch.float64
    w = torch.randn(x.shape, generator=generator, dtype=torch.float32).to(real)
    if x.dtype.is_complex:
        w = torch.complex(w, torch.randn(x.shape, generator=generator, dtype=torch.float32).to(real))
    return w.to(x.dtype).to(x.device)


def attempt(function):
    try:
        return True, function()
    except Exception as e:
        return False, e
