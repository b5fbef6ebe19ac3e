"""What initialize changes on a model: types of its weights, its forward, and what its state_dict holds at O2."""
from __future__ import annotations

import collections.abc
import copy

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from .options import Options
from .refusal import Refused


def check(model: torch.nn.Module) -> None:
    name = type(model).__name__
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    if not isinstance(model, torch.nn.Module):
        raise Refused(f"amp.initialize({name})", "a model is a torch.nn.Module", "pass the model, or a list of models")
    if isinstance(model, wrappers):
        raise Refused(f"amp.initialize({name})", "the model is wrapped already, and the wrapper has seen weights that are about to change",
                      f"call amp.initialize first and {name}(model) after it")
    if isinstance(getattr(model, "forward", None), Forward):
        raise Refused(f"amp.initialize({name})", "this model has been through amp.initialize", "make a new model, or keep the first call's")
    for parameter, value in model.named_parameters():
        if value.is_floating_point() and value.dtype is not torch.float32:
            raise Refused(f"amp.initialize({name})", f"parameter {parameter} is {value.dtype}, amp begins with float32",
                          "leave out .half() and .to(dtype), amp.initialize casts what its opt_level casts")


def cast(tree, dtype: torch.dtype):
    """Floating point tensors in lists, tuples and dicts, in `dtype`."""
    if isinstance(tree, torch.Tensor):
        return tree.to(dtype) if tree.is_floating_point() else tree
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(cast(v, dtype) for v in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(cast(v, dtype) for v in tree)
    if isinstance(tree, dict):
        try:
            return type(tree)((k, cast(v, dtype)) for k, v in tree.items())
        except TypeError:  # a dict class with a constructor of its own
            out = copy.copy(tree)
            for k, v in tree.items():
                out[k] = cast(v, dtype)
            return out
    if isinstance(tree, collections.abc.Mapping):
        return {k: cast(v, dtype) for k, v in tree.items()}
    return tree


class Forward:
    """A model's forward with its casts. An object, so that a copy of the model gets a copy that calls the copy."""

    def __init__(self, model: torch.nn.Module, options: Options):
        self.inner, self.model = model.forward, model
        self.autocast = options.autocast
        self.inputs = options.cast_model_type
        self.outputs = options.cast_model_outputs or torch.float32

    def __call__(self, *args, **kwargs):
        if self.autocast:
            with torch.autocast(self._device(args, kwargs), dtype=torch.float16):
                out = self.inner(*args, **kwargs)
        else:
            out = self.inner(*cast(args, self.inputs), **cast(kwargs, self.inputs))
        return cast(out, self.outputs)

    def _device(self, args, kwargs) -> str:
        for parameter in self.model.parameters():
            return parameter.device.type
        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
        return tensors[0].device.type if tensors else "cpu"


def prepare(model: torch.nn.Module, options: Options) -> torch.nn.Module:
    if options.half:
        for module in model.modules():
            if options.keep_batchnorm_fp32 and isinstance(module, _BatchNorm):
                continue
            for p in module.parameters(recurse=False):
                if p.is_floating_point():
                    p.data = p.data.to(options.cast_model_type)  # the object stays, optimizers know it
                    if p.grad is not None:
                        p.grad = None
            for name, b in module.named_buffers(recurse=False):
                if b.is_floating_point():
                    module._buffers[name] = b.to(options.cast_model_type)
        model.register_state_dict_post_hook(_full_precision)
        model.register_load_state_dict_pre_hook(_into_masters)
    model.forward = Forward(model, options)
    return model


def _full_precision(module, state, prefix, metadata):
    """At O2 a state is float32: master weights where there are some."""
    masters = {prefix + n: p._apex_master for n, p in module.named_parameters(remove_duplicate=False) if hasattr(p, "_apex_master")}
    for key, value in state.items():
        if not key.startswith(prefix) or not isinstance(value, torch.Tensor):
            continue
        if key in masters:
            state[key] = masters[key].current().detach()
        elif value.dtype in (torch.float16, torch.bfloat16):
            state[key] = value.float()


def _into_masters(module, state, prefix, metadata, strict, missing, unexpected, errors):
    for name, p in module.named_parameters(remove_duplicate=False):
        value = state.get(prefix + name)
        if hasattr(p, "_apex_master") and isinstance(value, torch.Tensor) and value.shape == p.shape:
            p._apex_master.load(value)
