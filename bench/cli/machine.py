"""Where a run takes place, and the processes that take part in it."""
from __future__ import annotations

import json
import os
import pathlib
import platform
import re
import subprocess
import sys
from typing import Optional

HERE = pathlib.Path(__file__).resolve().parent


def description() -> str:
    model = next((line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return f"{len(os.sched_getaffinity(0))} cores of {model}, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}"


def _lines(path: str) -> list[str]:
    try:
        return pathlib.Path(path).read_text().splitlines()
    except OSError:
        return []


def program(name: str) -> str:
    return str(HERE / "bin" / name)


def peaks(sizes: list[int]) -> dict:
    """GFLOP/s and copies of so many bytes, measured now."""
    done = subprocess.run([program("bench_peak"), *map(str, sizes)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


class Missing(Exception):
    """A side that cannot take part, and what it needs."""


def torch_of(python: str, wanted: list[str]) -> None:
    """Raises Missing unless `python` has these modules."""
    code = "import importlib.util, sys; print([m for m in sys.argv[1:] if importlib.util.find_spec(m) is None])"
    try:
        done = subprocess.run([python, "-c", code, *wanted], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise Missing(f"{python}: {error.strerror}. Name a Python with --python.") from None
    if done.returncode != 0:
        raise Missing(f"{python} does not work: {done.stderr.strip()[-200:]}")
    absent = json.loads(done.stdout.replace("'", '"'))
    if absent:
        raise Missing(f"{python} has no {' and no '.join(absent)}. Install {'them' if len(absent) > 1 else 'it'} there, or name another Python with --python.")


class Side:
    """A worker process; it sleeps while the other sides work."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]):
        self.name = name
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL if name == "null" else None, text=True)
        self.facts = self._answer()

    def _answer(self) -> dict:
        for line in self.process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        raise Missing(f"The process of side {self.name} ended with code {self.process.wait()}.")

    def times(self, suite: str, key: str, seconds: float) -> dict:
        try:
            self.process.stdin.write(json.dumps({"suite": suite, "key": key, "seconds": seconds}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Missing(f"The process of side {self.name} ended with code {self.process.wait()}.") from None
        return self._answer()

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def default_queue(launcher: str) -> str:
    """TASK_QUEUE_ENABLE as `anynpu run` sets it."""
    text = subprocess.run([launcher, "env"], check=True, capture_output=True, text=True).stdout
    return re.search(r"TASK_QUEUE_ENABLE='(.*)'", text).group(1)


def side(name: str, python: str, launcher: str, queue: str, null: Optional[str] = None) -> Side:
    """cpu: torch alone. npu: torch_npu on the software cards. null: torch_npu on libraries that do nothing."""
    worker = [python, str(HERE / "worker.py"), "cpu" if name == "cpu" else "npu"]
    environment = {} if name == "cpu" else {"TASK_QUEUE_ENABLE": queue}
    if name == "cpu":
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch finds torch_npu installed and would load it
    elif name == "npu":
        worker = [launcher, "run", "-q", "--", *worker]
    else:
        environment["LD_LIBRARY_PATH"] = null
    return Side(name, worker, environment)


def say(text: str = "") -> None:
    print(text, flush=True)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
