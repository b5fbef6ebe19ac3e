"""Calls operators through the C ABI: tensors with guard bytes, the two phases, error texts.

Two backends: `host` is the library built from tests/opapi_host (device memory is host memory, no streams), `device` the
installed tree (libascendcl and libopapi: aclrtMalloc, a stream, copies). ANYNPU_TEST_BACKEND chooses; ANYNPU_BUILD is the
build directory.
"""
from __future__ import annotations

import ctypes as C
import json
import os
import pathlib
import random

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ANYNPU_BUILD", ROOT / "build" / "dev"))
BACKEND = os.environ.get("ANYNPU_TEST_BACKEND", "host")

ACL = {
    torch.float32: 0, torch.float16: 1, torch.int8: 2, torch.int32: 3, torch.uint8: 4, torch.int16: 6, torch.uint16: 7,
    torch.uint32: 8, torch.int64: 9, torch.uint64: 10, torch.float64: 11, torch.bool: 12, torch.complex64: 16,
    torch.complex128: 17, torch.bfloat16: 27,
}
GUARD = 64
GUARD_BYTE = 0xA5


class CallFailed(Exception):
    def __init__(self, phase: int, code: int, text: str):
        super().__init__(f"phase {phase}: {code}: {text}")
        self.code, self.text = code, text


class Host:
    """Everything in one library; addresses are the process's own."""

    def __init__(self) -> None:
        self.lib = C.CDLL(str(os.environ.get("ANYNPU_HOST_LIBRARY", BUILD / "tests" / "libopapi_host.so")))
        self.base = self.lib
        self.stream = None

    def error(self) -> str:
        self.lib.host_error_text.restype = C.c_char_p
        return (self.lib.host_error_text() or b"").decode()

    def allocate(self, size: int) -> tuple[int, object]:
        memory = C.create_string_buffer(size + 64)
        return (C.addressof(memory) + 63) // 64 * 64, memory

    def free(self, address: int) -> None: ...

    def write(self, address: int, data: bytes) -> None:
        C.memmove(address, data, len(data))

    def read(self, address: int, size: int) -> bytes:
        return C.string_at(address, size)

    def synchronize(self) -> None: ...


class Device:
    """The installed libraries, one card, one stream."""

    def __init__(self) -> None:
        tree = BUILD / "tree" / "lib64"
        self.acl = C.CDLL(str(tree / "libascendcl.so"), C.RTLD_GLOBAL)
        self.base = C.CDLL(str(tree / "libnnopbase.so"), C.RTLD_GLOBAL)
        self.lib = C.CDLL(str(tree / "libopapi.so"))
        self.acl.aclGetRecentErrMsg.restype = C.c_char_p
        self.check(self.acl.aclInit(None))
        self.check(self.acl.aclrtSetDevice(0))
        stream = C.c_void_p()
        self.check(self.acl.aclrtCreateStream(C.byref(stream)))
        self.stream = stream

    def check(self, code: int) -> None:
        if code:
            raise CallFailed(0, code, self.error())

    def error(self) -> str:
        return (self.acl.aclGetRecentErrMsg() or b"").decode()

    def allocate(self, size: int) -> tuple[int, object]:
        address = C.c_void_p()
        self.check(self.acl.aclrtMalloc(C.byref(address), C.c_size_t(max(size, 1)), 0))
        return address.value, None

    def free(self, address: int) -> None:
        self.check(self.acl.aclrtFree(C.c_void_p(address)))

    def write(self, address: int, data: bytes) -> None:
        if data:
            self.check(self.acl.aclrtMemcpy(C.c_void_p(address), C.c_size_t(len(data)), data, C.c_size_t(len(data)), 1))

    def read(self, address: int, size: int) -> bytes:
        buffer = C.create_string_buffer(max(size, 1))
        if size:
            self.check(self.acl.aclrtMemcpy(buffer, C.c_size_t(size), C.c_void_p(address), C.c_size_t(size), 2))
        return buffer.raw[:size]

    def synchronize(self) -> None:
        self.check(self.acl.aclrtSynchronizeStream(self.stream))


_backend: Host | Device | None = None


def backend() -> Host | Device:
    global _backend
    if _backend is None:
        _backend = Host() if BACKEND == "host" else Device()
        for name in ("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateBoolArray", "aclCreateFloatArray",
                     "aclCreateTensorList", "aclCreateScalarList"):
            getattr(_backend.base, name).restype = C.c_void_p
    return _backend


def operators() -> list[dict]:
    lib = backend().lib
    lib.anynpu_describe_operators.restype = C.c_char_p
    return json.loads(lib.anynpu_describe_operators().decode())


def with_odd_ones(rng: random.Random, t: torch.Tensor) -> torch.Tensor:
    """A dense copy whose dimensions of size 1 have arbitrary strides."""
    dense = t.clone(memory_format=torch.contiguous_format)
    return dense.as_strided(dense.shape, [rng.randrange(9) if n == 1 else s for n, s in zip(dense.shape, dense.stride())])


def raw_bytes(t: torch.Tensor) -> bytes:
    """The bytes of a dense tensor."""
    t = t.contiguous()
    return C.string_at(t.data_ptr(), t.numel() * t.element_size()) if t.numel() else b""


class Placed:
    """A torch tensor's whole storage on the device, with guards; `tensor` is a CPU view whose layout is used."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor
        storage = tensor.untyped_storage()
        self.size = storage.nbytes()
        self.address, self.keep = backend().allocate(self.size + 2 * GUARD)
        self.data = self.address + GUARD
        guard = bytes([GUARD_BYTE]) * GUARD
        self.before = C.string_at(storage.data_ptr(), self.size) if self.size else b""
        backend().write(self.address, guard + self.before + guard)

    def handle(self) -> int:
        t = self.tensor
        rank = t.dim()
        sizes, strides = (C.c_int64 * max(rank, 1))(*t.shape), (C.c_int64 * max(rank, 1))(*t.stride())
        storage = (C.c_int64 * 1)(self.size // t.element_size())
        return backend().base.aclCreateTensor(sizes, C.c_uint64(rank), ACL[t.dtype], strides, C.c_int64(t.storage_offset()), 2,
                                              storage, C.c_uint64(1), C.c_void_p(self.data))

    def fetch(self) -> torch.Tensor:
        """The view's contents now; fails when a byte around the storage changed."""
        data = backend().read(self.address, self.size + 2 * GUARD)
        guard = bytes([GUARD_BYTE]) * GUARD
        assert data[:GUARD] == guard, "bytes before the tensor were written"
        assert data[GUARD + self.size:] == guard, "bytes after the tensor were written"
        body = bytearray(data[GUARD:GUARD + self.size])
        t = self.tensor
        if self.size == 0:
            return torch.empty(t.shape, dtype=t.dtype)
        flat = torch.frombuffer(body, dtype=torch.uint8).clone().view(t.dtype)
        return flat.as_strided(t.shape, t.stride(), t.storage_offset())

    def untouched_gaps(self) -> None:
        """Elements of the storage that the view does not reach must keep their bytes."""
        if self.size == 0:
            return
        reach = torch.zeros(self.size // self.tensor.element_size(), dtype=torch.bool)
        reach.as_strided(self.tensor.shape, self.tensor.stride(), self.tensor.storage_offset()).fill_(True)
        width = self.tensor.element_size()
        now = torch.frombuffer(bytearray(backend().read(self.data, self.size)), dtype=torch.uint8)[: reach.numel() * width]
        then = torch.frombuffer(bytearray(self.before), dtype=torch.uint8)[: reach.numel() * width]
        same = (now == then).view(-1, width).all(1)
        assert bool((same | reach).all()), "memory between the elements of the view was written"

    def release(self) -> None:
        backend().free(self.address)


def scalar(value: object) -> int:
    create = backend().base.aclCreateScalar
    if isinstance(value, bool):
        return create(C.byref(C.c_bool(value)), 12)
    if isinstance(value, int):
        return create(C.byref(C.c_int64(value)), 9)
    if isinstance(value, complex):
        return create((C.c_double * 2)(value.real, value.imag), 17)
    return create(C.byref(C.c_double(value)), 11)


def make_list(create: str, handles: list[int | None]) -> int:
    return getattr(backend().base, create)((C.c_void_p * max(len(handles), 1))(*handles), C.c_uint64(len(handles)))


class Call:
    """One call in the making: arguments by kind of the table, objects destroyed at the end."""

    def __init__(self, op: dict):
        self.op, self.words, self.cleanup, self.placed = op, [], [], {}

    def add(self, param: dict, value: object) -> None:
        base, kind = backend().base, param["kind"]
        if kind in ("tensor", "tensorlist", "scalar", "scalarlist", "intarray", "boolarray", "floatarray", "string"):
            if value is None:
                self.words.append(C.c_void_p(None))
                return
            if isinstance(value, C.c_void_p):
                self.words.append(value)
                return
        if kind == "tensor":
            placed = Placed(value)
            self.placed[param["name"]] = placed
            self.push(placed.handle(), "aclDestroyTensor")
        elif kind == "tensorlist":
            placed = [Placed(v) for v in value]
            self.placed[param["name"]] = placed
            self.push(make_list("aclCreateTensorList", [p.handle() for p in placed]), "aclDestroyTensorList")
        elif kind == "scalar":
            self.push(scalar(value), "aclDestroyScalar")
        elif kind == "scalarlist":
            self.push(make_list("aclCreateScalarList", [scalar(v) for v in value]), "aclDestroyScalarList")
        elif kind == "intarray":
            self.push(base.aclCreateIntArray((C.c_int64 * max(len(value), 1))(*value), C.c_uint64(len(value))), "aclDestroyIntArray")
        elif kind == "boolarray":
            self.push(base.aclCreateBoolArray((C.c_bool * max(len(value), 1))(*value), C.c_uint64(len(value))), "aclDestroyBoolArray")
        elif kind == "floatarray":
            self.push(base.aclCreateFloatArray((C.c_float * max(len(value), 1))(*value), C.c_uint64(len(value))), "aclDestroyFloatArray")
        elif kind == "string":
            self.words.append(C.c_char_p(value.encode()))
        elif kind == "dtype":
            self.words.append(C.c_int32(ACL[value]))
        else:
            convert = {"bool": C.c_bool, "int8": C.c_int8, "int32": C.c_int32, "int64": C.c_int64, "uint64": C.c_uint64,
                       "float": C.c_float, "double": C.c_double}[kind]
            self.words.append(convert(value))

    def push(self, handle: int, destroy: str) -> None:
        assert handle, f"creating an object for {self.op['name']} failed"
        self.words.append(C.c_void_p(handle))
        self.cleanup.append((destroy, handle))

    def run(self) -> None:
        """Both phases and a synchronise; raises CallFailed."""
        b, name = backend(), self.op["name"]
        size, executor = C.c_uint64(), C.c_void_p()
        code = getattr(b.lib, name + "GetWorkspaceSize")(*self.words, C.byref(size), C.byref(executor))
        if code:
            raise CallFailed(1, code, b.error())
        workspace, keep = b.allocate(size.value) if size.value else (None, None)
        code = getattr(b.lib, name)(C.c_void_p(workspace), size, executor, b.stream)
        if code:
            raise CallFailed(2, code, b.error())
        b.synchronize()
        if workspace:
            b.free(workspace)
        del keep

    def close(self) -> None:
        for destroy, handle in self.cleanup:
            getattr(backend().base, destroy)(C.c_void_p(handle))
        for placed in self.placed.values():
            for p in placed if isinstance(placed, list) else [placed]:
                p.release()
