"""Samples of torch's operator database, and their copies on another device and in another precision."""
from __future__ import annotations

import random
import zlib

import numpy
import torch
from torch.utils._pytree import tree_map

HIGHER = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
          torch.complex32: torch.complex128, torch.complex64: torch.complex128}


def title(op) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def seed_everything(seed: int, name: str) -> None:
    """Samples of an operator hang on the seed and its name only, so a run can be taken up anywhere."""
    mixed = (seed * 1000003 + zlib.crc32(name.encode())) % (1 << 31)
    random.seed(mixed)
    numpy.random.seed(mixed)
    torch.manual_seed(mixed)


class Call:
    """One call: the operator's positional and keyword arguments."""

    def __init__(self, input, args, kwargs, finish=None, broadcasts=False):
        self.input, self.args, self.kwargs, self.finish, self.broadcasts = input, tuple(args), dict(kwargs), finish, broadcasts

    @classmethod
    def of(cls, sample):
        return cls(sample.input, sample.args, sample.kwargs, sample.output_process_fn_grad, sample.broadcasts_input)

    def mapped(self, function) -> "Call":
        input, args, kwargs = tree_map(function, (self.input, self.args, self.kwargs))
        return Call(input, args, kwargs, self.finish, self.broadcasts)

    def run(self, function, **more):
        result = function(self.input, *self.args, **self.kwargs, **more)
        return self.finish(result) if self.finish else result

    def leaves(self) -> list[torch.Tensor]:
        found = []
        tree_map(lambda x: found.append(x) if isinstance(x, torch.Tensor) else None, (self.input, self.args, self.kwargs))
        return found

    def text(self) -> str:
        def one(x):
            if isinstance(x, torch.Tensor):
                text = f"{str(x.dtype)[6:]}{list(x.shape)}"
                if x.layout == torch.strided and not x.is_contiguous():
                    text += f"/strides{list(x.stride())}"
                return text
            return x if isinstance(x, (bool, int, float, str, type(None))) else str(x)

        parts = [str(p) for p in tree_map(one, (self.input, *self.args))]
        parts += [f"{k}={tree_map(one, v)}" for k, v in self.kwargs.items()]
        return "(" + ", ".join(parts)[:400] + ")"


def moved(call: Call, device: str, keep_integers: bool = False) -> Call:
    """The same values with the same strides on `device`."""

    def one(x):
        if isinstance(x, torch.Tensor):
            if keep_integers and x.dtype is torch.int64 and x is not call.input:
                return x.clone()
            return tensor_on(x, device)
        if isinstance(x, torch.device) or (isinstance(x, str) and x == "cpu"):
            return torch.device(device) if isinstance(x, torch.device) else device
        return x

    return call.mapped(one)


def tensor_on(x: torch.Tensor, device: str) -> torch.Tensor:
    with torch.no_grad():
        plain = x.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        if plain.layout != torch.strided or plain.is_contiguous() or plain.numel() == 0:
            copy = plain.to(device, copy=True)
        else:  # the whole storage moves, so that gaps and shared elements stay
            span = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride()))
            flat = plain.as_strided((span,), (1,), plain.storage_offset())
            copy = flat.to(device, copy=True).as_strided(plain.shape, plain.stride(), 0)
    return copy.requires_grad_(x.requires_grad)


def copied(call: Call) -> Call:
    return moved(call, "cpu")


def higher(call: Call) -> Call:
    """The same call in double precision; values are kept exactly."""

    def one(x):
        if isinstance(x, torch.Tensor):
            wide = HIGHER.get(x.dtype, x.dtype)
            return x.detach().to(wide, copy=True).requires_grad_(x.requires_grad)
        if isinstance(x, torch.dtype):
            return HIGHER.get(x, x)
        return x

    return call.mapped(one)


def thinned(samples: list, limit: int) -> list:
    """At most `limit`, drawn by the seed: an even choice would always meet the same of alternating arguments."""
    if limit <= 0 or len(samples) <= limit:
        return list(enumerate(samples))
    return [(i, samples[i]) for i in sorted(random.sample(range(len(samples)), limit))]


def shapes_of_elementwise(op, dtype):
    """Empty and 0-d calls for elementwise operators, whose own samples do not hold all of them."""
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

    make = lambda shape, **k: torch.testing.make_tensor(shape, dtype=dtype, device="cpu", **k)
    for shape in ((), (0,), (2, 0, 3), (1, 1)):
        if isinstance(op, UnaryUfuncInfo):
            low, high = op.domain
            yield Call(make(shape, low=low, high=high), (), op.sample_kwargs("cpu", dtype, None)[0])
        elif isinstance(op, BinaryUfuncInfo):
            yield Call(make(shape, **op.lhs_make_tensor_kwargs), (make(shape, **op.rhs_make_tensor_kwargs),), {})


def calls(op, dtype, seed: int, limit: int, grad: bool) -> list[tuple[int, Call]]:
    seed_everything(seed, title(op) + str(dtype))
    samples = [Call.of(s) for s in op.sample_inputs("cpu", dtype, requires_grad=grad)]
    chosen = thinned(samples, limit)
    try:
        chosen += [(len(samples) + i, c) for i, c in enumerate(shapes_of_elementwise(op, dtype))]
    except Exception:  # a constraint of the operator's own (fixed shapes, keyword-only arguments): its samples are all there is
        pass
    return chosen
