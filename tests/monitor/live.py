"""Real programs for the tests: an exporter, a Prometheus, a load; each ended by its own handle."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest
from built import find_program as program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def shipped() -> pathlib.Path:
    return pathlib.Path(program()).resolve().parents[1] / "monitoring"


def need(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is not installed (ci/lib.sh, test_packages)"
    return path


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, seconds: float = 180, every: float = 0.2, say=lambda: ""):
    """The first true answer of `what`; the time is for a hang, not for speed."""
    end = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {say()}")
        time.sleep(every)


def fetch(url: str, timeout: float = 20, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as answer:
        return answer.read().decode()


class Machine:
    """A software machine of its own; everything started through it sees that one."""

    def __init__(self, folder: pathlib.Path, cards: int):
        self.folder, self.cards = folder, cards
        self.name = "m" + uuid.uuid4().hex[:8]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("ANYNPU_", "ASCEND_", "LD_LIBRARY", "PYTHONPATH", "HCCL_"))}
        self.env |= {"ANYNPU_MACHINE": self.name, "ANYNPU_CARDS": str(cards), "ANYNPU_HBM": "2G", "XDG_CACHE_HOME": str(folder / "cache")}
        self.children: list[subprocess.Popen] = []
        self.run("up")

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run([program(), *words], env=self.env, capture_output=True, text=True, timeout=300)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def start(self, *words: str, name: str, **env: str) -> subprocess.Popen:
        log = open(self.folder / f"{name}.log", "w")
        child = subprocess.Popen([program(), *words], env=self.env | env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        log.close()
        self.children.append(child)
        return child

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self, child: subprocess.Popen) -> None:
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(120)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def close(self) -> None:
        for child in reversed(self.children):
            self.end(child)
        self.run("clear", "--all", check=False)
        self.run("down", "--machine", self.name, check=False)


class Exporter:
    def __init__(self, machine: Machine, *options: str):
        self.port, self.ranks_port = free_port(), free_port()
        name = f"exporter-{self.port}"
        self.process = machine.start("exporter", "--listen", f"127.0.0.1:{self.port}", "--trainer", f"127.0.0.1:{self.ranks_port}", *options, name=name)
        self.log = lambda: machine.log(name)
        until(lambda: "ranks on" in self.log() or self.process.poll() is not None, say=self.log)
        assert self.process.poll() is None, self.log()

    def scrape(self) -> str:
        return fetch(f"http://127.0.0.1:{self.port}/metrics")

    def value(self, series: str) -> float | None:
        """The sample of exactly this text, e.g. npu_power_watts{device="npu0"}."""
        for line in self.scrape().splitlines():
            if line.rpartition(" ")[0] == series:
                return float(line.rpartition(" ")[2])
        return None


class Prometheus:
    """The real one, with the shipped configuration; only ports, intervals and patience are a test's."""

    def __init__(self, folder: pathlib.Path, exporter: Exporter, window: str = "10s"):
        self.folder, self.port = folder, free_port()
        shutil.copytree(shipped(), folder, dirs_exist_ok=True)
        config = (folder / "prometheus.yml").read_text()
        config = config.replace(":8082", f":{exporter.port}").replace(":8000", f":{exporter.ranks_port}").replace("_interval: 5s", "_interval: 1s")
        (folder / "prometheus.yml").write_text(config)
        for file in (folder / "rules").glob("*.yml"):
            # Patience in seconds: the shortest stay the shortest.
            text = re.sub(r"\bfor: (\w+)", lambda m: "for: 2s" if m[1] != "30s" else "for: 8s", file.read_text())
            file.write_text(text.replace("[1m]", f"[{window}]"))
        self.log = open(folder / "prometheus.log", "w")
        self.process = subprocess.Popen(
            [need("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--web.enable-lifecycle",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=subprocess.STDOUT)
        until(lambda: self._ready(), say=lambda: (folder / "prometheus.log").read_text()[-2000:])

    def _ready(self) -> bool:
        with contextlib.suppress(OSError):
            return "Ready" in fetch(f"http://127.0.0.1:{self.port}/-/ready")
        return False

    def query(self, expression: str) -> list[dict]:
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        return json.loads(fetch(url))["data"]["result"]

    def firing(self) -> list[dict]:
        return [s["metric"] for s in self.query('ALERTS{alertstate="firing"}')]

    def reload(self) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/-/reload", method="POST"), timeout=20) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(120)
        self.log.close()


def wheels_python() -> str:
    return os.environ.get("ANYNPU_PYTHON", sys.executable)
