"""The functions of apex.amp. As in Apex one process has one amp: initialize sets it up, the others refer to it."""
from __future__ import annotations

import collections
import contextlib

import torch

from . import models as _models
from . import optimizers as _optimizers
from . import options as _options
from .refusal import Refused
from .scaler import LossScaler


class _Amp:
    def __init__(self, enabled: bool, scalers: list[LossScaler], verbosity: int):
        self.enabled, self.scalers, self.verbosity = enabled, scalers, verbosity

    def say(self, text: str) -> None:
        first = not (torch.distributed.is_available() and torch.distributed.is_initialized()) or torch.distributed.get_rank() == 0
        if self.verbosity >= 1 and first:
            print(text)


_amp: _Amp | None = None


def _current(call: str) -> _Amp:
    if _amp is None:
        raise Refused(call, "amp.initialize has not been called", "call model, optimizer = amp.initialize(model, optimizer, opt_level=...) first")
    return _amp


def _listed(value) -> list:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def initialize(models, optimizers=None, enabled=True, opt_level="O1", cast_model_type=None, patch_torch_functions=None,
               keep_batchnorm_fp32=None, master_weights=None, loss_scale=None, cast_model_outputs=None, num_losses=1, verbosity=1,
               min_loss_scale=None, max_loss_scale=2.0**24, combine_grad=None, combine_ddp=None, dynamic_init_scale=2.0**16,
               scale_growth_factor=2.0, scale_backoff_factor=0.5, scale_window=2000):
    """Prepares models and optimizers for an opt_level and gives them back as they came, single or as lists."""
    global _amp
    if not enabled:
        _amp = _Amp(False, [], verbosity)
        return models if optimizers is None else (models, optimizers)
    options = _options.read(opt_level, cast_model_type, patch_torch_functions, keep_batchnorm_fp32, master_weights, loss_scale)
    if combine_ddp:
        raise Refused("amp.initialize(combine_ddp=True)", "this package does not reduce gradients between processes",
                      "leave it out and wrap the model in torch.nn.parallel.DistributedDataParallel after amp.initialize")
    if not isinstance(num_losses, int) or num_losses < 1:
        raise Refused(f"amp.initialize(num_losses={num_losses!r})", "it is the number of losses, 1 or more", "pass how many scale_loss calls have a loss_id of their own")
    options.cast_model_outputs, options.min_loss_scale, options.max_loss_scale = cast_model_outputs, min_loss_scale, max_loss_scale
    options.init_scale, options.growth_interval = dynamic_init_scale, scale_window
    options.growth_factor, options.backoff_factor = scale_growth_factor, scale_backoff_factor

    for model in _listed(models):
        _models.check(model)
    scalers = [LossScaler(i, options) for i in range(num_losses)]
    for model in _listed(models):
        _models.prepare(model, options)
    for optimizer in _listed(optimizers):
        _optimizers.hold(optimizer, options)
    _amp = _Amp(True, scalers, verbosity)
    _amp.say(f"apex.amp: opt_level {opt_level}, model {options.cast_model_type or 'float32 with autocast float16'}, loss scale {options.loss_scale}")
    return models if optimizers is None else (models, optimizers)


@contextlib.contextmanager
def scale_loss(loss, optimizers, loss_id=0, model=None, delay_unscale=False):
    """Gives the scaled loss; after the backward in its block the optimizers' gradients are unscaled, or their next step is skipped."""
    amp = _current("amp.scale_loss")
    if not amp.enabled:
        yield loss
        return
    if not isinstance(loss_id, int) or not 0 <= loss_id < len(amp.scalers):
        raise Refused(f"amp.scale_loss(loss_id={loss_id!r})", f"amp.initialize was told of num_losses={len(amp.scalers)}", f"call amp.initialize(..., num_losses=N) with N > {loss_id}")
    scaler = amp.scalers[loss_id]
    held = [_optimizers.held(o) for o in _listed(optimizers)]
    for h in held:
        if h.scaled_by not in (None, (loss_id, scaler.scale)):
            raise Refused(f"amp.scale_loss(loss_id={loss_id})", f"the optimizer holds gradients of loss {h.scaled_by[0]} scaled by {h.scaled_by[1]:g}, this scale is {scaler.scale:g}",
                          "use delay_unscale=True only between backward passes of one loss")
    scaled = scaler.scaled(loss)
    for h in held:
        h.begin()
    try:
        yield scaled
    except BaseException:
        for h in held:
            h.give_up()
        raise
    if delay_unscale:
        for h in held:
            h.scaled_by = (loss_id, scaler.scale)
        return
    for h in held:
        h.gather()
    overflow = scaler.unscale(held)
    for h in held:
        h.add_up()
        h.skips |= overflow
    if overflow:
        amp.say(f"Gradient overflow.  Skipping step, loss scaler {loss_id} reducing loss scale to {scaler.scale}")


def state_dict(destination=None):
    """The scale of each loss and its good steps since the last change, in Apex's form."""
    out = collections.OrderedDict() if destination is None else destination
    for scaler in _current("amp.state_dict").scalers:
        out[f"loss_scaler{scaler.number}"] = scaler.state()
    return out


def load_state_dict(state):
    """Takes what state_dict gave. Call it after amp.initialize."""
    scalers = _current("amp.load_state_dict").scalers
    named = {f"loss_scaler{s.number}": s for s in scalers}
    if set(state) != set(named):
        raise Refused("amp.load_state_dict", f"the state is of {sorted(state)}, amp has {sorted(named)}", "call amp.initialize with the num_losses of the run that saved it")
    for name, one in state.items():
        named[name].load(one)


def master_params(optimizer):
    """The weights that the optimizer works on: at O2 the float32 ones. What to clip."""
    for group in optimizer.param_groups:
        yield from group["params"]


@contextlib.contextmanager
def disable_casts():
    """A block inside a forward that autocast leaves alone."""
    with contextlib.ExitStack() as stack:
        for device in ("cpu", "cuda", "npu"):
            if hasattr(torch, device) and torch.amp.is_autocast_available(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield
