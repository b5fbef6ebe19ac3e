"""Calls aclnn functions of the host library (build/*/tests/libopapi_host.so) with torch CPU tensors, in place and unchecked: for timing.

  lib = Library.load()
  lib("aclnnReduceSum", self=x, dims=[1], keepDims=False, dtype=torch.float32, out=out)

Parameters are named as in abi/aclnn.tsv; what is left out is null. Outputs are written in place; a failing phase raises Failure
with status and text. `shapes` of the result has the view shape of every output after the call.
"""
from __future__ import annotations

import ctypes as C
import os
import pathlib

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]

DTYPES = {
    torch.float32: 0, torch.float16: 1, torch.int8: 2, torch.int32: 3, torch.uint8: 4, torch.int16: 6, torch.int64: 9,
    torch.float64: 11, torch.bool: 12, torch.complex64: 16, torch.complex128: 17, torch.bfloat16: 27,
}
NUMBERS = {"bool": C.c_bool, "int8": C.c_int8, "int32": C.c_int32, "int64": C.c_int64, "uint64": C.c_uint64,
           "float": C.c_float, "double": C.c_double}


class Failure(Exception):
    def __init__(self, phase: int, status: int, text: str):
        super().__init__(f"phase {phase}: {status}: {text}")
        self.phase, self.status, self.text = phase, status, text


def signatures() -> dict[str, list[tuple[str, str, str]]]:
    """name -> (role, kind, parameter) of abi/aclnn.tsv."""
    table = {}
    lines = (ROOT / "abi" / "aclnn.tsv").read_text().splitlines()
    columns = lines[0].split("\t")
    for line in lines[1:]:
        row = dict(zip(columns, line.split("\t")))
        params = []
        for entry in row["signature"].split(", ") if row["signature"] else []:
            words = entry.split()
            role = words.pop(0) if words[0] in ("out", "inout") else "in"
            params.append((role, words[0].rstrip("?"), words[1]))
        table[row["name"]] = params
    return table


class Library:
    _loaded = None

    @classmethod
    def load(cls) -> "Library":
        if cls._loaded is None:
            path = os.environ.get("ANYNPU_OPAPI_HOST")
            if path is None:
                found = sorted(ROOT.glob("build/*/tests/libopapi_host.so"), key=lambda p: p.stat().st_mtime)
                if not found:
                    raise FileNotFoundError("build the target opapi_host first, or set ANYNPU_OPAPI_HOST")
                path = str(found[-1])
            cls._loaded = cls(path)
        return cls._loaded

    def __init__(self, path: str):
        self.c = C.CDLL(path)
        self.table = signatures()
        for name in ("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateBoolArray", "aclCreateTensorList",
                     "aclCreateScalarList"):
            getattr(self.c, name).restype = C.c_void_p
        self.c.host_error_text.restype = C.c_char_p

    def has(self, name: str) -> bool:
        return hasattr(self.c, name)

    def tensor(self, t: torch.Tensor | None) -> C.c_void_p:
        if t is None:
            return C.c_void_p(None)
        n = t.dim()
        shape, strides = (C.c_int64 * n)(*t.shape), (C.c_int64 * n)(*t.stride())
        storage = t.untyped_storage()
        elements = (C.c_int64 * 1)(storage.nbytes() // t.element_size())
        handle = self.c.aclCreateTensor(shape, C.c_uint64(n), C.c_int(DTYPES[t.dtype]), strides, C.c_int64(t.storage_offset()),
                                        C.c_int(2), elements, C.c_uint64(1), C.c_void_p(storage.data_ptr() or 64))
        return C.c_void_p(handle)

    def scalar(self, v) -> C.c_void_p:
        if v is None:
            return C.c_void_p(None)
        if isinstance(v, bool):
            return C.c_void_p(self.c.aclCreateScalar(C.byref(C.c_bool(v)), 12))
        if isinstance(v, int):
            return C.c_void_p(self.c.aclCreateScalar(C.byref(C.c_int64(v)), 9))
        return C.c_void_p(self.c.aclCreateScalar(C.byref(C.c_double(v)), 11))

    def word(self, kind: str, v, handles: list):
        if kind in NUMBERS:
            return NUMBERS[kind](v)
        if kind == "dtype":
            return C.c_int(DTYPES[v])
        if kind == "string":
            return C.c_char_p(v.encode())
        if kind == "tensor":
            handle = self.tensor(v)
            handles.append(("Tensor", handle))
        elif kind == "scalar":
            handle = self.scalar(v)
            handles.append(("Scalar", handle))
        elif v is None:
            return C.c_void_p(None)
        elif kind == "tensorlist":
            items = (C.c_void_p * len(v))(*[self.tensor(t).value for t in v])
            handle = C.c_void_p(self.c.aclCreateTensorList(items, C.c_uint64(len(v))))
            handles.append(("TensorList", handle))
        elif kind == "intarray":
            handle = C.c_void_p(self.c.aclCreateIntArray((C.c_int64 * len(v))(*v), C.c_uint64(len(v))))
            handles.append(("IntArray", handle))
        elif kind == "boolarray":
            handle = C.c_void_p(self.c.aclCreateBoolArray((C.c_bool * len(v))(*v), C.c_uint64(len(v))))
            handles.append(("BoolArray", handle))
        else:
            raise TypeError(kind)
        return handle

    def text(self) -> str:
        text = self.c.host_error_text()
        return (text or b"").decode()

    def view_shape(self, handle: C.c_void_p) -> tuple[int, ...]:
        dims, n = C.POINTER(C.c_int64)(), C.c_uint64()
        self.c.aclGetViewShape(handle, C.byref(dims), C.byref(n))
        return tuple(dims[i] for i in range(n.value))

    def __call__(self, name: str, /, **args) -> dict[str, tuple[int, ...]]:
        handles: list = []
        words, outputs = [], {}
        params = self.table[name]
        unknown = set(args) - {p for _, _, p in params}
        assert not unknown, f"{name} has no {unknown}"
        for role, kind, param in params:
            word = self.word(kind, args.get(param), handles)
            if role != "in" and kind == "tensor" and args.get(param) is not None:
                outputs[param] = word
            words.append(word)
        size, executor = C.c_uint64(), C.c_void_p()
        try:
            status = getattr(self.c, name + "GetWorkspaceSize")(*words, C.byref(size), C.byref(executor))
            if status != 0:
                raise Failure(1, status, self.text())
            workspace = torch.empty(size.value, dtype=torch.uint8)
            status = getattr(self.c, name)(C.c_void_p(workspace.data_ptr()), size, executor, C.c_void_p(None))
            if status != 0:
                raise Failure(2, status, self.text())
            return {param: self.view_shape(h) for param, h in outputs.items()}
        finally:
            for kind, handle in handles:
                if handle.value:
                    getattr(self.c, "aclDestroy" + kind)(handle)
