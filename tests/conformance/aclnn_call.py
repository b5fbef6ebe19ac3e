"""Calls aclnn functions with torch CPU tensors as keyword arguments.

  lib("aclnnReduceSum", self=x, dims=[1], keepDims=False, dtype=torch.float32, out=out)

Parameters are named as in abi/aclnn.tsv; what is left out is null. Outputs are written back into the tensors that were passed; a
failing phase raises Failure. The answer has the view shape of every output after the call. Guards, gaps between elements and inputs
are checked as `driver` does.
"""
from __future__ import annotations

import ctypes as C

import torch

import driver

Failure = driver.CallFailed


class Library:
    def __init__(self) -> None:
        self.operators = {op["name"]: op for op in driver.operators()}

    def __call__(self, name: str, /, **args) -> dict[str, tuple[int, ...]]:
        op = self.operators[name]
        unknown = set(args) - {p["name"] for p in op["params"]}
        assert not unknown, f"{name} has no {unknown}"
        call = driver.Call(op)
        try:
            for param in op["params"]:
                call.add(param, args.get(param["name"]))
            call.run()
            return self.bring_back(call)
        finally:
            call.close()

    def bring_back(self, call: driver.Call) -> dict[str, tuple[int, ...]]:
        shapes, written = {}, set()
        for param in call.op["params"]:
            placed = call.placed.get(param["name"])
            if param["role"] == "in" or placed is None:
                continue
            for p in placed if isinstance(placed, list) else [placed]:
                body = p.memory.now()
                C.memmove(p.tensor.untyped_storage().data_ptr(), body, len(body))
                written.add(p.memory)
            if not isinstance(placed, list):
                placed.untouched_gaps()
                shapes[param["name"]] = call.view_shape(param["name"])
        for memory in call.memories.values():
            assert memory in written or memory.now() == memory.before, f"{call.op['name']} changed an input"
        return shapes


lib = Library()
