"""The scale of one loss: a number, or one that torch.amp.GradScaler moves."""
from __future__ import annotations

import torch

from .optimizers import Held
from .options import Options
from .refusal import Refused


class LossScaler:
    def __init__(self, number: int, options: Options):
        self.number, self.options = number, options
        self.scale = self._bounded(options.init_scale) if options.dynamic else options.loss_scale
        self.good_steps = 0  # as loaded; the scaler's own once there is one
        self.scaler: torch.amp.GradScaler | None = None

    def _bounded(self, scale: float) -> float:
        bounded = max(min(scale, self.options.max_loss_scale), self.options.min_loss_scale or 0.0)
        return torch.tensor(bounded, dtype=torch.float32).item()  # as the scaler holds it

    def scaled(self, loss):
        """The loss times the scale, in float32."""
        if isinstance(loss, (list, tuple)):
            return type(loss)(self.scaled(one) for one in loss)
        if not isinstance(loss, torch.Tensor):
            raise Refused(f"amp.scale_loss({type(loss).__name__})", "a loss is a tensor, or a list of tensors", "pass what backward() is called on")
        if not self.options.dynamic:
            return loss.float() * self.scale
        return self._on(loss.device.type).scale(loss.float())

    def _on(self, device: str) -> torch.amp.GradScaler:
        if self.scaler is None:
            o = self.options
            self.scaler = torch.amp.GradScaler(device, init_scale=self.scale, growth_factor=o.growth_factor, backoff_factor=o.backoff_factor,
                                               growth_interval=o.growth_interval)
            self.scaler.load_state_dict({**self.scaler.state_dict(), "_growth_tracker": self.good_steps})
        return self.scaler

    def unscale(self, optimizers: list[Held]) -> bool:
        """Divides the gradients by the scale; True if a dynamic scale found one that is not finite, and has become smaller for it."""
        if not self.options.dynamic:
            if self.scale != 1.0:
                for o in optimizers:
                    for grad in o.gradients():
                        grad.mul_(1.0 / self.scale)
            return False
        with_gradients = [o for o in optimizers if o.gradients()]
        if not with_gradients:
            return False
        for o in with_gradients:
            self.scaler.unscale_(o.optimizer)
        before = self.scale
        self.scaler.update()
        self.scale = self.scaler.get_scale()
        overflow = self.scale < before
        bounded = self._bounded(self.scale)
        if bounded != self.scale:
            self.scaler.update(bounded)
            self.scale = bounded
        if self.scale == 0.0:
            raise Refused(f"loss scaler {self.number}", "the scale has been halved down to zero, so every loss gives gradients that are not finite",
                          "look for inf or NaN in the data and the loss; min_loss_scale bounds the scale from below")
        return overflow

    def state(self) -> dict:
        unskipped = self.good_steps if self.scaler is None else self.scaler.state_dict()["_growth_tracker"]
        return {"loss_scale": self.scale, "unskipped": unskipped}

    def load(self, state: dict) -> None:
        scale = float(state["loss_scale"])
        self.scale = self._bounded(scale) if self.options.dynamic else scale
        self.good_steps, self.scaler = int(state["unskipped"]), None  # the next loss makes a scaler of them
