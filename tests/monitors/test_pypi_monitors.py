"""Monitors of PyPI, unmodified: two cards with the running process, values that follow the load and return."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import pytest

from conftest import program, until

# Three of them bring a package of the same name, so each is installed into a folder of its own.
PACKAGES = {"nptop": "0.1.0", "nputop": "0.0.3", "ascend-nputop": "0.1.0", "ascend-npu-utils": "0.1.1", "ascendtop": "0.2.0"}
NEEDS = {"nptop": [], "nputop": ["textual", "psutil", "rich"], "ascend-nputop": ["psutil", "cachetools", "termcolor"], "ascend-npu-utils": ["psutil"], "ascendtop": ["psutil"]}


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pypi")
    made = {}

    def install(name: str) -> str:
        if name not in made:
            target = folder / name
            line = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(target), f"{name}=={PACKAGES[name]}", *NEEDS[name]]
            done = subprocess.run(line, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr[-2000:]
            made[name] = str(target)
        return made[name]

    return install


def with_path(machine, folder: str) -> dict:
    """PYTHONPATH is put together by the launcher: ours, then this."""
    return machine.env | {"PYTHONPATH": folder}


def run(machine, folder: str, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run([program(), "run", "-q", *machine.options, "--", *command], env=with_path(machine, folder), capture_output=True, text=True, timeout=300)


def test_nptop(machine, installed):
    folder = installed("nptop")
    worker = machine.worker(card=1, megabytes=300, size=768)

    def look() -> dict:
        done = run(machine, folder, sys.executable, "-c", "from nputop.cli import run; raise SystemExit(run(['--json']))")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    seen = look()
    assert [(d["index"], d["name"], d["health"]) for d in seen["devices"]] == [(0, "910B4", "OK"), (1, "910B4", "OK")]
    assert [(p["pid"], p["device_index"]) for p in seen["processes"]] == [(worker.pid, 1)]
    used = seen["devices"][1]["memory_used_mb"]
    assert used >= 2922 + 300 and seen["devices"][0]["memory_used_mb"] == 2922
    worker.work()
    until(lambda: look()["devices"][1]["utilization_percent"] > 20)
    worker.rest()
    until(lambda: look()["devices"][1]["utilization_percent"] == 0)
    worker.end()
    assert look()["devices"][1]["memory_used_mb"] == 2922 and not look()["processes"]


def test_eight_cards_have_no_line_that_a_parser_stumbles_over(make_machine, installed):
    """R049: eight 910B3, each idle."""
    machine = make_machine("--soc", "Ascend910B3", "-n", "8")
    done = run(machine, installed("nptop"), sys.executable, "-c", "from nputop.cli import run; raise SystemExit(run(['--json']))")
    seen = json.loads(done.stdout)
    assert [(d["index"], d["name"], d["memory_total_mb"]) for d in seen["devices"]] == [(i, "910B3", 65536) for i in range(8)] and not seen["processes"]
    assert machine.smi("info").count("No running processes found in NPU") == 8


def screen(machine, folder: str, command: str, wanted, keys: str = "q") -> str:
    """What a full-screen program shows in tmux once `wanted(text)` is true."""
    name = f"t{os.getpid()}-{time.monotonic_ns()}"
    line = f"{program()} run -q -- {command}"
    tmux = ["tmux", "-L", name]
    subprocess.run([*tmux, "new-session", "-d", "-x", "160", "-y", "60", line], env=with_path(machine, folder) | {"TERM": "xterm-256color"}, check=True, timeout=120)
    text = ""

    def shown() -> bool:
        nonlocal text
        text = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, timeout=120).stdout
        return wanted(text)

    try:
        until(shown, 120)
    except AssertionError as failed:
        raise AssertionError(text) from failed
    finally:
        subprocess.run([*tmux, "send-keys", keys], capture_output=True, timeout=120)
        subprocess.run([*tmux, "kill-server"], capture_output=True, timeout=120)
    return text


def need_tmux():
    if subprocess.run(["sh", "-c", "command -v tmux"], capture_output=True).returncode != 0:
        pytest.skip("no tmux here")


def test_nputop(machine, installed):
    need_tmux()
    folder = installed("nputop")
    worker = machine.worker(card=0, megabytes=400)
    python = f"{sys.executable} -c 'from nputop.main import main; main()'"
    text = screen(machine, folder, python, lambda t: str(worker.pid) in t and t.count("910B4") >= 2)
    assert re.search(rf"\b{worker.pid}\b", text)
    worker.end()
    screen(machine, folder, python, lambda t: t.count("910B4") >= 2 and str(worker.pid) not in t)


def test_ascend_nputop(machine, installed):
    folder = installed("ascend-nputop")
    worker = machine.worker(card=1, megabytes=500, size=768)

    def look() -> str:
        done = run(machine, folder, sys.executable, "-m", "nputop", "--once", "--ascii")
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)

    text = look()
    assert len(re.findall(r"910B4", text)) >= 2, text
    assert re.search(rf"\b1 +{worker.pid}\b", text) or str(worker.pid) in text, text
    memory = lambda t: [int(n) for n in re.findall(r"(\d+)MiB / 32", t)] or [float(n) for n in re.findall(r"([\d.]+)[GM]iB / 32", t)]  # noqa: E731
    before = memory(text)
    worker.end()
    after = memory(look())
    assert before and len(before) == len(after) and before != after, (before, after)


def test_ascendtop(machine, installed):
    folder = installed("ascendtop")
    worker = machine.worker(card=1, megabytes=500)

    def look() -> str:
        text = "import sys; sys.argv = ['ascendtop', '--once', '--no-color']; from ascendtop import main; main()"
        done = run(machine, folder, sys.executable, "-c", text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    text = look()
    assert re.search(r"0 +910B4 +OK", text) and re.search(r"1 +910B4 +OK", text)
    assert re.search(rf"^│ +1 +{worker.pid} ", text, re.M), text
    worker.end()
    assert "No running NPU processes found" in look()


def test_ascend_npu_utils(make_machine, installed, tmp_path):
    """It reads the chips of one card; the two dies of an A3 are those. It calls `source` through sh, which dash lacks."""
    folder = installed("ascend-npu-utils")
    machine = make_machine("--soc", "Ascend910_9391", "-n", "2")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "source").write_text("#!/bin/sh\n")
    (programs / "source").chmod(0o755)
    machine.env["PATH"] = f"{programs}:{machine.env['PATH']}"
    worker = machine.worker(card=0, megabytes=200)
    text = """
import json
from ascend_npu_utils.utils import AscendNPUUtils
utils = AscendNPUUtils("/dev/null")
devices, processes = utils.npu_smi()
print(json.dumps([devices, processes, utils.npu_smi_query_power(0)]))
"""
    done = run(machine, folder, sys.executable, "-c", text)
    assert done.returncode == 0, done.stderr
    devices, processes, power = json.loads(done.stdout)
    assert [d["name"] for d in devices] == ["Ascend910", "Ascend910"] and power > 0
    assert [p["process_id"] for p in processes] == [str(worker.pid)]
    assert int(processes[0]["process_memory_mb"]) >= 200
    worker.end()
    devices, processes, _ = json.loads(run(machine, folder, sys.executable, "-c", text).stdout)
    assert len(devices) == 2 and not processes
