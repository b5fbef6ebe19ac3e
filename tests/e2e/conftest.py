"""End to end: real wheels, real processes, started as a user would start them, through `anynpu run`.

Environment:
  ANYNPU_PROGRAM   the launcher (default: the newest build tree's bin/anynpu)
  ANYNPU_PYTHON    Python with torch 2.13.0 and torch_npu 2.13.0 (default: the one that runs pytest)
  ANYNPU_PYTHON_29 Python 3.12 with torch 2.9.0 and torch_npu 2.9.0.post2; tests that need it are not collected without it
  ANYNPU_29_ONLY   of these only the files whose name begins so (./test: the articles; ./test --all: everything)
  ANYNPU_SEED      seed of the run-time inputs (default: from the clock; printed)
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import textwrap
import time
import uuid

import pytest
from built import find_program

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SEED = int(os.environ.get("ANYNPU_SEED", str(time.time_ns() % 1_000_000)))
# Ray starts its workers at nice 15: beside another test on a machine with few cores they would hardly run.
os.environ.setdefault("RAY_worker_niceness", "0")
WHEELS = {"2.13": os.environ.get("ANYNPU_PYTHON", sys.executable)}
if os.environ.get("ANYNPU_PYTHON_29"):
    WHEELS["2.9"] = os.environ["ANYNPU_PYTHON_29"]


def pytest_report_header(config):
    return f"end to end: seed {SEED} (repeat with ANYNPU_SEED={SEED}), wheels {', '.join(sorted(WHEELS))}"


def pytest_collection_modifyitems(config, items):
    only = os.environ.get("ANYNPU_29_ONLY")
    if not only:
        return
    left_out = [i for i in items if hasattr(i, "callspec") and "2.9" in i.callspec.params.values() and not i.path.name.startswith(only)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [i for i in items if i not in left_out]


class Done:
    """A finished process: its code, stdout and stderr, and how long it took."""

    def __init__(self, code: int, out: str, err: str, seconds: float, command: list[str]):
        self.code, self.out, self.err, self.seconds, self.command = code, out, err, seconds, command

    def ok(self) -> "Done":
        assert self.code == 0, f"exit code {self.code} after {self.seconds:.1f} s: {' '.join(self.command)[:300]}\n" + self.tail()
        return self

    def tail(self) -> str:
        return f"--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-6000:]}"

    def ranks_say(self, text: str, ranks: int) -> "Done":
        """Each rank has printed `text` with its number in place of `{rank}`, once. Several processes write to one stream, and
        Python writes a line's end apart from the line, so lines may hold two texts."""
        for rank in range(ranks):
            assert self.out.count(text.format(rank=rank)) == 1, f"rank {rank} of {ranks}\n" + self.tail()
        return self

    def says(self, *patterns: str) -> "Done":
        for p in patterns:
            assert re.search(p, self.out, re.M), f"no line like {p!r}\n" + self.tail()
        return self


class Machine:
    """A software machine of its own for one test, so that tests never share cards."""

    def __init__(self, tmp: pathlib.Path, python: str):
        self.tmp, self.python, self.name = tmp, python, "t" + uuid.uuid4().hex[:8]

    def run(self, *command: str, cards: int = 2, timeout: float = 600, env: dict | None = None, options: tuple = (),
            stdin: str | None = None) -> Done:
        line = [find_program(), "run", "-n", str(cards), "--machine", self.name, *options, "--", *command]
        full = os.environ | {"PATH": f"{pathlib.Path(self.python).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                             "PYTHONPATH": "", "ANYNPU_SEED": str(SEED)} | (env or {})
        started = time.monotonic()
        p = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.tmp, env=full,
                             stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, start_new_session=True)
        try:
            out, err = p.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            out, err = p.communicate()
            pytest.fail(f"no end after {timeout} s: {' '.join(command)[:300]}\n" + Done(-1, out, err, timeout, line).tail())
        return Done(p.returncode, out, err, time.monotonic() - started, line)

    def shell(self, text: str, timeout: float = 800) -> Done:
        """Runs lines of the guide as a user would type them: `anynpu`, `python` and `npu-smi` are on the path."""
        path = os.pathsep.join((str(pathlib.Path(self.python).parent), str(pathlib.Path(find_program()).parent), os.environ["PATH"]))
        full = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "PYTHONPATH": "", "ANYNPU_SEED": str(SEED), "ANYNPU_MACHINE": self.name}
        try:
            p = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, cwd=self.tmp, env=full, timeout=timeout,
                               stdin=subprocess.DEVNULL, start_new_session=True)
        except subprocess.TimeoutExpired as e:
            pytest.fail(f"no end after {timeout} s: {text[:300]}\n{e.stdout}\n{e.stderr}")
        return Done(p.returncode, p.stdout, p.stderr, 0, [text])

    def py(self, code: str, **kw) -> Done:
        """Runs a program text with the wheel's Python."""
        path = self.tmp / f"prog_{uuid.uuid4().hex[:6]}.py"
        path.write_text(textwrap.dedent(code))
        return self.run(self.python, str(path), **kw)

    def script(self, name: str, code: str) -> str:
        path = self.tmp / name
        code = textwrap.dedent(code)
        if name.endswith(".py") and "backward" in code:  # torch's own thread may still drop its last objects (docs/limits.md)
            code += "\nimport time\ntime.sleep(0.3)\n"
        path.write_text(code)
        return str(path)


@pytest.fixture(params=sorted(WHEELS))
def machine(request, tmp_path):
    """Runs the test once for each installed wheel."""
    return Machine(tmp_path, WHEELS[request.param])


@pytest.fixture
def machine213(tmp_path):
    """For what does not depend on the wheel's version."""
    return Machine(tmp_path, WHEELS["2.13"])
