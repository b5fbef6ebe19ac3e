"""npu-smi, hccn_tool, libdcmi.so and faults as operations people meet them: programs started through `anynpu run`, monitors of
PyPI unmodified. No torch is needed: loads come from the module acl and libopapi.so.

Environment: ANYNPU_PROGRAM, the launcher (default: the newest build tree's bin/anynpu); ANYNPU_SEED, seed of what is drawn.
"""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import time
import uuid

import pytest
from built import find_program as program

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("ANYNPU_SEED", str(time.time_ns() % 1_000_000)))


def pytest_report_header(config):
    return f"monitors: seed {SEED} (repeat with ANYNPU_SEED={SEED})"


# A program that uses card CARD: holds MB of memory, multiplies matrices of SIZE while the file GO exists, ends when it is told.
WORKER = textwrap.dedent(
    """
    import ctypes, os, sys, time
    import acl
    card, megabytes, size, go = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    assert acl.init() == 0
    assert acl.rt.set_device(card) == 0
    held, code = acl.rt.malloc(megabytes << 20, 0)
    assert code == 0, code
    op, base = ctypes.CDLL("libopapi.so"), ctypes.CDLL("libnnopbase.so")
    base.aclCreateTensor.restype = ctypes.c_void_p
    def tensor(at):
        dims, steps = (ctypes.c_int64 * 2)(size, size), (ctypes.c_int64 * 2)(size, 1)
        return ctypes.c_void_p(base.aclCreateTensor(dims, ctypes.c_uint64(2), 0, steps, ctypes.c_int64(0), 2, dims, ctypes.c_uint64(2), ctypes.c_void_p(at)))
    step = size * size * 4
    a, b, c = (tensor(held + i * step) for i in range(3))
    stream, code = acl.rt.create_stream()
    assert code == 0
    def multiply():
        bytes_, executor = ctypes.c_uint64(), ctypes.c_void_p()
        code = op.aclnnMatmulGetWorkspaceSize(a, b, c, ctypes.c_int8(0), ctypes.byref(bytes_), ctypes.byref(executor))
        assert code == 0, code
        room, _ = acl.rt.malloc(bytes_.value, 0) if bytes_.value else (0, 0)
        code = op.aclnnMatmul(ctypes.c_void_p(room), bytes_, executor, ctypes.c_void_p(stream))
        assert code == 0, code
        code = acl.rt.synchronize_stream(stream)
        if room: acl.rt.free(room)
        return code
    print("ready", multiply(), flush=True)
    while True:
        if os.path.exists(go + ".end"): break
        if os.path.exists(go):
            code = multiply()
            if code: print("failed", code, flush=True); break
        else:
            time.sleep(0.02)
    """
)


class Worker:
    def __init__(self, machine: "Machine", card: int, megabytes: int, size: int, options: tuple[str, ...]):
        self.go = machine.tmp / f"go-{uuid.uuid4().hex[:6]}"
        line = [program(), "run", "-q", *options, "--", sys.executable, "-c", WORKER, str(card), str(megabytes), str(size), str(self.go)]
        self.process = subprocess.Popen(line, env=machine.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.first = self.process.stdout.readline().split()
        if not self.first:
            raise AssertionError(self.process.communicate(timeout=120)[1])
        self.pid = self.process.pid

    def work(self) -> None:
        self.go.touch()

    def rest(self) -> None:
        self.go.unlink(missing_ok=True)

    def end(self) -> None:
        pathlib.Path(f"{self.go}.end").touch()
        try:
            self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Machine:
    """A software machine of its own. machine("inject", …) runs anynpu, machine.inside("npu-smi", …) a command in it."""

    def __init__(self, tmp: pathlib.Path, options: tuple[str, ...] = ()):
        self.tmp, self.options, self.name = tmp, options, "t" + uuid.uuid4().hex[:8]
        dropped = ("ANYNPU_", "ASCEND_", "LD_LIBRARY", "PYTHONPATH")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        self.env |= {"ANYNPU_MACHINE": self.name, "XDG_CACHE_HOME": str(tmp / "cache")}
        self.workers: list[Worker] = []

    def __call__(self, *words: str, **more) -> subprocess.CompletedProcess:
        return subprocess.run([program(), *words], env=self.env | more, capture_output=True, text=True, timeout=300)

    def inside(self, *command: str, **more) -> subprocess.CompletedProcess:
        return self("run", "-q", *self.options, "--", *command, **more)

    def smi(self, *words: str, **more) -> str:
        done = self.inside("npu-smi", *words, **more)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def python(self, text: str, *words: str, **more) -> subprocess.CompletedProcess:
        return self.inside(sys.executable, "-c", textwrap.dedent(text), *words, **more)

    def worker(self, card: int = 0, megabytes: int = 300, size: int = 512) -> Worker:
        self.workers.append(Worker(self, card, megabytes, size, self.options))
        return self.workers[-1]

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self("clear", "--all")
        self("down", "--machine", self.name)


@pytest.fixture
def make_machine(tmp_path):
    made: list[Machine] = []

    def make(*options: str) -> Machine:
        made.append(Machine(tmp_path, options))
        return made[-1]

    yield make
    for machine in made:
        machine.close()


@pytest.fixture
def machine(make_machine):
    return make_machine()


def until(condition, seconds: float = 90):
    """What `condition` gives once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s")
