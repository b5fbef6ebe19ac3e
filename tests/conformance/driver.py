"""Calls operators through the C ABI: tensors with guard bytes, the two phases, error texts.

Two backends: `host` is the library built from tests/opapi_host (device memory is host memory, no streams), `device` the
installed tree (libascendcl and libopapi: aclrtMalloc, a stream, copies). ANYNPU_TEST_BACKEND chooses; ANYNPU_BUILD is the
build directory. On `host` every call that succeeds is made once more, from the same bytes and with three workers, and must give the
same bits; with ANYNPU_TEST_GUARD=pages every tensor ends at a page that nobody may touch, so that reading past it ends the process.
"""
from __future__ import annotations

import ctypes as C
import json
import mmap
import os
import pathlib
import random

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ANYNPU_BUILD", ROOT / "build" / "dev"))
BACKEND = os.environ.get("ANYNPU_TEST_BACKEND", "host")
PAGES = os.environ.get("ANYNPU_TEST_GUARD") == "pages"

ACL = {
    torch.float32: 0, torch.float16: 1, torch.int8: 2, torch.int32: 3, torch.uint8: 4, torch.int16: 6, torch.uint16: 7,
    torch.uint32: 8, torch.int64: 9, torch.uint64: 10, torch.float64: 11, torch.bool: 12, torch.complex64: 16,
    torch.complex128: 17, torch.bfloat16: 27,
}
GUARD = 64
GUARD_BYTE = 0xA5
PAGE = mmap.PAGESIZE
# The arguments of one call of each operator that succeeded in this process.
EXECUTED: dict[str, list[tuple[dict, object]]] = {}


class CallFailed(Exception):
    def __init__(self, phase: int, code: int, text: str):
        super().__init__(f"phase {phase}: {code}: {text}")
        self.phase, self.code, self.text = phase, code, text


class Host:
    """Everything in one library; addresses are the process's own."""

    def __init__(self) -> None:
        self.lib = C.CDLL(str(os.environ.get("ANYNPU_HOST_LIBRARY", BUILD / "tests" / "libopapi_host.so")))
        self.base = self.lib
        self.stream = None
        self.blocks: dict[int, object] = {}

    def error(self) -> str:
        self.lib.host_error_text.restype = C.c_char_p
        return (self.lib.host_error_text() or b"").decode()

    def allocate(self, size: int) -> int:
        if PAGES:
            return self.allocate_before_a_wall(size)
        memory = C.create_string_buffer(size + 64)
        address = (C.addressof(memory) + 63) // 64 * 64
        self.blocks[address] = memory
        return address

    def allocate_before_a_wall(self, size: int) -> int:
        whole = mmap.mmap(-1, (size + PAGE - 1) // PAGE * PAGE + PAGE)
        start = C.addressof(C.c_char.from_buffer(whole))
        wall = start + len(whole) - PAGE
        assert C.CDLL(None).mprotect(C.c_void_p(wall), C.c_size_t(PAGE), 0) == 0
        self.blocks[wall - size] = whole
        return wall - size

    def free(self, address: int) -> None:
        del self.blocks[address]

    def write(self, address: int, data: bytes) -> None:
        C.memmove(address, data, len(data))

    def read(self, address: int, size: int) -> bytes:
        return C.string_at(address, size)

    def workers(self, count: int) -> None:
        self.lib.host_use_workers(C.c_int(count))

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

    def allocate(self, size: int) -> int:
        address = C.c_void_p()
        self.check(self.acl.aclrtMalloc(C.byref(address), C.c_size_t(max(size, 1)), 0))
        return address.value

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


class Memory:
    """A torch storage's bytes on the device, with guards around."""

    def __init__(self, storage: torch.UntypedStorage):
        self.size = storage.nbytes()
        self.before = C.string_at(storage.data_ptr(), self.size) if self.size else b""
        self.behind = 0 if PAGES and BACKEND == "host" else GUARD
        self.address = backend().allocate(GUARD + self.size + self.behind)
        self.data = self.address + GUARD
        self.restore()

    def restore(self) -> None:
        guard = bytes([GUARD_BYTE])
        backend().write(self.address, guard * GUARD + self.before + guard * self.behind)

    def now(self) -> bytes:
        """The bytes; fails when one around them changed."""
        data = backend().read(self.address, GUARD + self.size + self.behind)
        guard = bytes([GUARD_BYTE])
        assert data[:GUARD] == guard * GUARD, "bytes before the tensor were written"
        assert data[GUARD + self.size:] == guard * self.behind, "bytes after the tensor were written"
        return data[GUARD:GUARD + self.size]

    def release(self) -> None:
        backend().free(self.address)


class Placed:
    """A view of a memory; `tensor` is a CPU view whose layout is used."""

    def __init__(self, tensor: torch.Tensor, memory: Memory):
        self.tensor, self.memory = tensor, memory

    def handle(self) -> int:
        t = self.tensor
        if hasattr(t, "card"):  # a storage in a layout of the card: (format, shape of the view, its strides)
            number, shape, strides = t.card
            ints = lambda values: (C.c_int64 * len(values))(*values)  # noqa: E731
            return backend().base.aclCreateTensor(ints(shape), C.c_uint64(len(shape)), ACL[t.dtype], ints(strides), C.c_int64(0), number,
                                                  ints(t.shape), C.c_uint64(t.dim()), C.c_void_p(self.memory.data))
        rank = t.dim()
        sizes, strides = (C.c_int64 * max(rank, 1))(*t.shape), (C.c_int64 * max(rank, 1))(*t.stride())
        storage = (C.c_int64 * 1)(self.memory.size // t.element_size())
        return backend().base.aclCreateTensor(sizes, C.c_uint64(rank), ACL[t.dtype], strides, C.c_int64(t.storage_offset()), 2,
                                              storage, C.c_uint64(1), C.c_void_p(self.memory.data))

    def fetch(self) -> torch.Tensor:
        """The view's contents now; fails when a byte around the storage changed."""
        t, body = self.tensor, bytearray(self.memory.now())
        if not body:
            return torch.empty(t.shape, dtype=t.dtype)
        flat = torch.frombuffer(body, dtype=torch.uint8).clone().view(t.dtype)
        return flat.as_strided(t.shape, t.stride(), t.storage_offset())

    def unchanged(self) -> bool:
        return self.memory.now() == self.memory.before

    def untouched_gaps(self) -> None:
        """Elements of the storage that the view does not reach must keep their bytes."""
        width = self.tensor.element_size()
        if self.tensor.numel() * width == self.memory.size:  # what is written does not overlap itself: there is no gap
            return
        reach = torch.zeros(self.memory.size // width, dtype=torch.bool)
        reach.as_strided(self.tensor.shape, self.tensor.stride(), self.tensor.storage_offset()).fill_(True)
        now = torch.frombuffer(bytearray(self.memory.now()), dtype=torch.uint8)[: reach.numel() * width]
        then = torch.frombuffer(bytearray(self.memory.before), dtype=torch.uint8)[: reach.numel() * width]
        same = (now == then).view(-1, width).all(1)
        assert bool((same | reach).all()), "memory between the elements of the view was written"


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
    """One call in the making: arguments by kind of the table, objects destroyed at the end. Views of one storage share memory."""

    def __init__(self, op: dict):
        self.op, self.words, self.cleanup = op, [], []
        self.arguments: list[tuple[dict, object]] = []
        self.placed: dict[str, Placed | list[Placed]] = {}
        self.handles: dict[str, int] = {}
        self.memories: dict[object, Memory] = {}

    def add(self, param: dict, value: object) -> None:
        self.arguments.append((param, value))
        if param["kind"] == "tensor" and isinstance(value, torch.Tensor):
            self.placed[param["name"]] = self.place(value)
        elif param["kind"] == "tensorlist" and isinstance(value, (list, tuple)):
            self.placed[param["name"]] = [None if v is None else self.place(v) for v in value]
        self.words.append(self.word(param, value))

    def place(self, tensor: torch.Tensor) -> Placed:
        storage = tensor.untyped_storage()
        key = storage.data_ptr() or id(tensor)
        if key not in self.memories:
            self.memories[key] = Memory(storage)
        return Placed(tensor, self.memories[key])

    def word(self, param: dict, value: object) -> object:
        base, kind, name = backend().base, param["kind"], param["name"]
        if kind in ("tensor", "tensorlist", "scalar", "scalarlist", "intarray", "boolarray", "floatarray", "string"):
            if value is None:
                return C.c_void_p(None)
            if isinstance(value, C.c_void_p):
                return value
        if kind == "tensor":
            self.handles[name] = self.placed[name].handle()
            return self.own(self.handles[name], "aclDestroyTensor")
        if kind == "tensorlist":
            return self.own(make_list("aclCreateTensorList", [p and p.handle() for p in self.placed[name]]), "aclDestroyTensorList")
        if kind == "scalar":
            return self.own(scalar(value), "aclDestroyScalar")
        if kind == "scalarlist":
            return self.own(make_list("aclCreateScalarList", [scalar(v) for v in value]), "aclDestroyScalarList")
        arrays = {"intarray": ("aclCreateIntArray", C.c_int64), "boolarray": ("aclCreateBoolArray", C.c_bool),
                  "floatarray": ("aclCreateFloatArray", C.c_float)}
        if kind in arrays:
            create, element = arrays[kind]
            return self.own(getattr(base, create)((element * max(len(value), 1))(*value), C.c_uint64(len(value))), create.replace("Create", "Destroy"))
        if kind == "string":
            return C.c_char_p(value.encode())
        if kind == "dtype":
            return C.c_int32(ACL[value])
        convert = {"bool": C.c_bool, "int8": C.c_int8, "int32": C.c_int32, "int64": C.c_int64, "uint64": C.c_uint64,
                   "float": C.c_float, "double": C.c_double}[kind]
        return convert(value)

    def own(self, handle: int, destroy: str) -> C.c_void_p:
        assert handle, f"creating an object for {self.op['name']} failed"
        self.cleanup.append((destroy, handle))
        return C.c_void_p(handle)

    def run(self) -> None:
        """Both phases and a synchronise; raises CallFailed. On the host once more, which must give the same bits."""
        self.run_once()
        EXECUTED[self.op["name"]] = self.arguments
        if BACKEND == "host":
            first = self.results()
            if self.run_again(3) != first:
                assert self.run_again(1) == first, f"{self.op['name']}: the same call gave other bits the second time"
                raise AssertionError(f"{self.op['name']}: three workers gave other bits than one")

    def run_again(self, workers: int) -> list[bytes]:
        for memory in self.memories.values():
            memory.restore()
        self.words = [self.word(param, value) for param, value in self.arguments]  # a call may have changed the shape of an output
        backend().workers(workers)
        try:
            self.run_once()
        finally:
            backend().workers(1)
        return self.results()

    def results(self) -> list[bytes]:
        return [memory.now() for memory in self.memories.values()]

    def run_once(self) -> None:
        b, name = backend(), self.op["name"]
        size, executor = C.c_uint64(), C.c_void_p()
        code = getattr(b.lib, name + "GetWorkspaceSize")(*self.words, C.byref(size), C.byref(executor))
        if code:
            raise CallFailed(1, code, b.error())
        workspace = b.allocate(size.value) if size.value else None
        try:
            code = getattr(b.lib, name)(C.c_void_p(workspace), size, executor, b.stream)
            if code:
                raise CallFailed(2, code, b.error())
            b.synchronize()
        finally:
            if workspace:
                b.free(workspace)

    def view_shape(self, name: str) -> tuple[int, ...]:
        """What the operator made of an output's shape."""
        dims, rank = C.POINTER(C.c_int64)(), C.c_uint64()
        backend().base.aclGetViewShape(C.c_void_p(self.handles[name]), C.byref(dims), C.byref(rank))
        return tuple(dims[i] for i in range(rank.value))

    def close(self) -> None:
        for destroy, handle in self.cleanup:
            getattr(backend().base, destroy)(C.c_void_p(handle))
        for memory in self.memories.values():
            memory.release()
