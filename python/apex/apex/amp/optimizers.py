"""What initialize changes on an optimizer: master weights, a step that can be skipped, gradients that add up unscaled."""
from __future__ import annotations

import types

import torch

from .refusal import Refused


class Master:
    """A half weight of the model and the float32 weight that the optimizer works on."""

    def __init__(self, weight: torch.nn.Parameter):
        self.weight = weight
        self.value = torch.nn.Parameter(weight.detach().float(), requires_grad=weight.requires_grad)
        self.used = False
        weight._apex_master = self

    @torch.no_grad()
    def current(self) -> torch.nn.Parameter:
        """Until the first loss the model's weights may be changed by others (a broadcast of DistributedDataParallel, an initialisation):
        the master takes over what is no longer its own rounding."""
        if not self.used:
            same = self.value.to(self.weight.dtype) == self.weight
            self.value.copy_(torch.where(same, self.value, self.weight.float()))
        return self.value

    @torch.no_grad()
    def load(self, value: torch.Tensor) -> None:
        self.value.copy_(value)

    @torch.no_grad()
    def publish(self) -> None:
        self.weight.copy_(self.value)


class Held:
    """An optimizer under amp; reachable as optimizer._apex. Its step, zero_grad and add_param_group are those of this class."""

    def __init__(self, optimizer: torch.optim.Optimizer, master_weights: bool, half: torch.dtype | None):
        self.optimizer, self.half = optimizer, half if master_weights else None
        self.masters: list[Master] = []
        self.stash: dict[torch.Tensor, torch.Tensor] = {}
        self.scaled_by: tuple[int, float] | None = None  # loss and scale of gradients that wait to be unscaled
        self.skips = False
        for group in optimizer.param_groups:
            group["params"] = [self._own(p) for p in group["params"]]
        self._step, self._zero_grad, self._add_param_group = optimizer.step, optimizer.zero_grad, optimizer.add_param_group

        def step(_, *args, **kwargs):  # schedulers bind what they find to the optimizer, so this is a method of it
            return self.step(*args, **kwargs)

        if hasattr(optimizer.step, "_wrapped_by_lr_sched"):  # a scheduler that was made before counts its steps in there
            step._wrapped_by_lr_sched = True
        optimizer.step = types.MethodType(step, optimizer)
        optimizer.zero_grad, optimizer.add_param_group = self.zero_grad, self.add_param_group
        optimizer._apex = self

    def _own(self, p: torch.nn.Parameter) -> torch.nn.Parameter:
        if self.half is None or p.dtype is not self.half:
            return p
        master = Master(p)
        self.masters.append(master)
        if p in self.optimizer.state:
            self.optimizer.state[master.value] = self.optimizer.state.pop(p)
        return master.value

    def parameters(self):
        for group in self.optimizer.param_groups:
            yield from group["params"]

    def gradients(self) -> list[torch.Tensor]:
        return [p.grad for p in self.parameters() if p.grad is not None]

    def begin(self) -> None:
        """Before a backward: gradients that are there already are put aside, unless they are scaled as the coming ones will be."""
        if self.scaled_by is not None:
            return
        for master in self.masters:
            master.current()
            master.used = True
            master.weight.grad = None  # added to the master's already
        self.stash = {p: p.grad for p in self.parameters() if p.grad is not None}
        for p in self.stash:
            p.grad = None

    def gather(self) -> None:
        """After a backward: the model's half gradients become float32 gradients of the masters."""
        for master in self.masters:
            if master.weight.grad is not None:
                master.value.grad = master.weight.grad.float()

    @torch.no_grad()
    def add_up(self) -> None:
        for p, before in self.stash.items():
            p.grad = before if p.grad is None else p.grad.add_(before)
        self.stash, self.scaled_by = {}, None

    def give_up(self) -> None:
        """After a backward that did not end: what it has left is worth nothing, what was there before is."""
        for p in self.parameters():
            p.grad = self.stash.get(p)
        for master in self.masters:
            master.weight.grad = None
        self.stash, self.scaled_by = {}, None

    def step(self, closure=None, **kwargs):
        if closure is not None:
            raise Refused("optimizer.step(closure) under apex.amp", "a closure calls backward where its loss cannot be scaled",
                          "call backward under amp.scale_loss and optimizer.step() without a closure")
        if self.scaled_by is not None:
            raise Refused("optimizer.step() under apex.amp", "the gradients are still scaled (delay_unscale=True)",
                          "leave delay_unscale out in the last amp.scale_loss before the step")
        if self.skips:
            self.skips, result = False, None
        else:
            result = self._step(**kwargs)
            for master in self.masters:
                master.publish()
        for master in self.masters:  # model.zero_grad() does not reach them
            master.value.grad = None
        return result

    def zero_grad(self, set_to_none: bool = True):
        self._zero_grad(set_to_none=set_to_none)
        self.scaled_by = None
        for master in self.masters:
            if set_to_none:
                master.weight.grad = None
            elif master.weight.grad is not None:
                master.weight.grad.detach_().zero_()

    def add_param_group(self, group: dict):
        params = group["params"]
        params = [params] if isinstance(params, torch.Tensor) else list(params)
        self._add_param_group({**group, "params": [self._own(p) for p in params]})


def held(optimizer) -> Held:
    state = getattr(optimizer, "_apex", None)
    if state is None:
        raise Refused(f"amp.scale_loss({type(optimizer).__name__})", "this optimizer has not been through amp.initialize",
                      "pass all models and optimizers to one amp.initialize, as lists")
    return state


def hold(optimizer, options) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise Refused(f"amp.initialize({type(optimizer).__name__})", "it is not a torch.optim.Optimizer", "pass the optimizer itself, before it is wrapped")
    if hasattr(optimizer, "_apex"):
        raise Refused(f"amp.initialize({type(optimizer).__name__})", "this optimizer has been through amp.initialize", "make a new optimizer, or keep the first call's")
    Held(optimizer, options.master_weights, options.cast_model_type if options.half else None)
