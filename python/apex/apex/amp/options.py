"""What an opt_level means, and which of its options may be changed."""
from __future__ import annotations

import dataclasses

import torch

from .refusal import Refused


@dataclasses.dataclass
class Options:
    opt_level: str
    cast_model_type: torch.dtype | None
    autocast: bool
    keep_batchnorm_fp32: bool | None
    master_weights: bool
    loss_scale: float | str
    cast_model_outputs: torch.dtype | None = None
    min_loss_scale: float | None = None
    max_loss_scale: float = 2.0**24
    init_scale: float = 2.0**16
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000

    @property
    def dynamic(self) -> bool:
        return self.loss_scale == "dynamic"

    @property
    def half(self) -> bool:
        return self.cast_model_type in (torch.float16, torch.bfloat16)


LEVELS = {
    "O0": dict(cast_model_type=torch.float32, autocast=False, keep_batchnorm_fp32=None, master_weights=False, loss_scale=1.0),
    "O1": dict(cast_model_type=None, autocast=True, keep_batchnorm_fp32=None, master_weights=False, loss_scale="dynamic"),
    "O2": dict(cast_model_type=torch.float16, autocast=False, keep_batchnorm_fp32=True, master_weights=True, loss_scale="dynamic"),
    "O3": dict(cast_model_type=torch.float16, autocast=False, keep_batchnorm_fp32=False, master_weights=False, loss_scale=1.0),
}


def _flag(name: str, value):
    """True and False, also as the words that command lines hand on."""
    if value in ("True", "False"):
        return value == "True"
    if value is None or isinstance(value, bool):
        return value
    raise Refused(f"amp.initialize({name}={value!r})", "it is neither True nor False", f"pass a bool, or leave {name} out")


def _scale(value) -> float | str:
    if value == "dynamic":
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise Refused(f"amp.initialize(loss_scale={value!r})", 'a loss scale is a positive number or "dynamic"', 'pass for example 128.0 or "dynamic"')
    return number


def read(opt_level, cast_model_type, patch_torch_functions, keep_batchnorm_fp32, master_weights, loss_scale) -> Options:
    """The level's options with the caller's changes."""
    if opt_level not in LEVELS:
        hint = " (the letter O, not the number zero)" if isinstance(opt_level, str) and opt_level.startswith("0") else ""
        raise Refused(f"amp.initialize(opt_level={opt_level!r})", f"there are the levels {', '.join(LEVELS)}{hint}", 'pass opt_level="O1"')
    options = Options(opt_level, **LEVELS[opt_level])
    call = f"amp.initialize(opt_level={opt_level!r}"

    patch = _flag("patch_torch_functions", patch_torch_functions)
    if patch is not None and patch != options.autocast:
        raise Refused(f"{call}, patch_torch_functions={patch})", "whether single functions are cast is what O1 differs in",
                      'choose opt_level="O1" for it and another level against it')
    if cast_model_type is not None and cast_model_type != options.cast_model_type:
        if not (options.half and cast_model_type is torch.bfloat16):
            raise Refused(f"{call}, cast_model_type={cast_model_type})", "O1 leaves the weights alone, O0 is float32, O2 and O3 take float16 or bfloat16",
                          "choose the level that has this type, or leave cast_model_type out")
        options.cast_model_type = cast_model_type
    keep = _flag("keep_batchnorm_fp32", keep_batchnorm_fp32)
    if keep is not None:
        if options.autocast:
            raise Refused(f"{call}, keep_batchnorm_fp32={keep})", "at O1 all weights stay float32, those of batch norm too", "leave keep_batchnorm_fp32 out, or use O2")
        options.keep_batchnorm_fp32 = keep
    master = _flag("master_weights", master_weights)
    if master is not None:
        if master and not options.half:
            raise Refused(f"{call}, master_weights=True)", "the weights are float32 themselves", "leave master_weights out, or use O2")
        options.master_weights = master
    if loss_scale is not None:
        options.loss_scale = _scale(loss_scale)
    if options.dynamic and options.half and not options.master_weights:
        raise Refused(f'{call}, master_weights=False, loss_scale="dynamic")', "torch.amp.GradScaler does not unscale half gradients, they would lose bits again",
                      "pass a number as loss_scale, or use O2 with master weights")
    return options
