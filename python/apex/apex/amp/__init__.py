"""Mixed precision with the interface of Apex, by torch.autocast and torch.amp.GradScaler."""
from .api import disable_casts, initialize, load_state_dict, master_params, scale_loss, state_dict
from .refusal import Refused

__all__ = ["initialize", "scale_loss", "state_dict", "load_state_dict", "master_params", "disable_casts", "Refused"]

_CUSTOM_CASTS = ("half_function", "float_function", "promote_function", "register_half_function", "register_float_function",
                 "register_promote_function")


def _custom_cast(name):
    def refuse(*args, **kwargs):
        raise Refused(f"apex.amp.{name}", "casts of single functions are torch.autocast's, nothing of torch is patched here",
                      "decorate the function with torch.amp.custom_fwd, or call it under torch.autocast(device_type, dtype=...)")
    return refuse


for _name in _CUSTOM_CASTS:
    globals()[_name] = _custom_cast(_name)


def init(*args, **kwargs):
    raise Refused("apex.amp.init", "the interface of before 2019", "call amp.initialize(model, optimizer, opt_level=...)")
