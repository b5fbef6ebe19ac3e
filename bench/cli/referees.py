"""Programs outside torch: pairs of aclnnAdd, all-reduces, and the referees that are built where their tools are installed."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from typing import Optional, Sequence

from machine import HERE, Missing, program


def _run(command: list[str], **more) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **more)
    if done.returncode != 0:
        raise Missing(f"{command[0]} ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def small_adds(launcher: str) -> dict[str, tuple[float, float]]:
    """Seconds of a pair, best and median: tensors made once, and made and destroyed for each pair."""
    text = _run([launcher, "run", "-q", "--", program("bench_adds"), str(HERE.parent.parent / "lib64")])
    found = re.findall(r"^(.*?)\s+best\s+(\d+) ns\s+median\s+(\d+) ns", text, re.M)
    return {name: (int(best) * 1e-9, int(median) * 1e-9) for name, best, median in found}


def _pairs(text: str) -> dict[int, tuple[float, float]]:
    """Lines "BYTES best_us median_us"."""
    rows = (line.split() for line in text.splitlines() if re.match(r"^\d+ [\d.]+ [\d.]+$", line))
    return {int(size): (float(best) * 1e-6, float(median) * 1e-6) for size, best, median in rows}


def collective(launcher: str, op: str, ranks: int, sizes: Sequence[int] = ()) -> dict[int, tuple[float, float]]:
    machine = f"bench{os.getpid()}r{ranks}"
    return _pairs(_run([launcher, "run", "-q", "-n", str(ranks), "--machine", machine, "--", program("bench_all_reduce"), "--op", op, str(ranks),
                        *map(str, sizes)]))


def all_reduce(launcher: str, ranks: int = 2) -> dict[int, tuple[float, float]]:
    return collective(launcher, "all-reduce", ranks)


def torch_all_reduce(backend: str, python: str, launcher: str, queue: str, null: Optional[str] = None) -> dict[int, tuple[float, float]]:
    """Through torch.distributed: gloo, hccl on software NPUs, or hccl on libraries that do nothing."""
    command = [python, str(HERE / "torch_allreduce.py"), backend, "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TASK_QUEUE_ENABLE": queue}
    if null is not None:
        environment["LD_LIBRARY_PATH"] = null
    elif backend == "hccl":
        command = [launcher, "run", "-q", "-n", "2", "--machine", f"bench{os.getpid()}t", "--", *command]
    return _pairs(_run(command, env=environment))


class Wire:
    """Two hosts made of network namespaces with a veth pair between them, for all_reduce through torch.distributed."""

    def __init__(self):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise Missing("two hosts: network namespaces need root and the program ip")
        tag = "b" + uuid.uuid4().hex[:6]
        self.spaces, self.made = [tag + "x", tag + "y"], []
        try:
            for space in self.spaces:
                _run(["ip", "netns", "add", space])
                self.made.append(space)
            _run(["ip", "-n", self.spaces[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.spaces[1]])
            for k, space in enumerate(self.spaces):
                _run(["ip", "-n", space, "addr", "add", f"10.78.0.{k + 1}/24", "dev", "eth0"])
                for device in ("eth0", "lo"):
                    _run(["ip", "-n", space, "link", "set", device, "up"])
        except Missing:
            self.close()
            raise

    def close(self) -> None:
        for space in self.made:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)

    def all_reduce(self, backend: str, python: str, launcher: str) -> dict[int, tuple[float, float]]:
        children = []
        for rank, space in enumerate(self.spaces):
            command = [python, str(HERE / "torch_allreduce.py"), backend, "2", str(rank), "tcp://10.78.0.1:29777"]
            if backend == "hccl":
                command = [launcher, "run", "-q", "-n", "1", "--machine", space, "--", *command]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0", "HCCL_SOCKET_IFNAME": "eth0"}
            children.append(subprocess.Popen(["ip", "netns", "exec", space, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        answers = [child.communicate(timeout=600) for child in children]
        for child, (_, said) in zip(children, answers):
            if child.returncode != 0:
                raise Missing(f"{backend} between two hosts ended with code {child.returncode}: {said.strip()[-300:]}")
        return _pairs(answers[0][0])


def scale(python: str, launcher: str, cards: int, cores: int, seconds: float) -> dict[str, float]:
    """Samples a second of all cards together, by work."""
    command = [python, str(HERE / "scale.py"), str(cards), str(cores), str(seconds)]
    text = _run([launcher, "run", "-q", "-n", str(cards), "--machine", f"bench{os.getpid()}s{cards}", "--", *command])
    return {name: float(rate) for name, rate in re.findall(r"^@(\S+) ([\d.]+)$", text, re.M)}


class Bound:
    """shm_bound.c: two processes over one mapping, nothing in the way."""

    name = "shm_bound"

    def __init__(self, folder: str):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise Missing("shm_bound: no C compiler")
        self.path = os.path.join(folder, "bound")
        _run([compiler, "-O3", "-march=native", "-ffast-math", str(HERE / "baselines" / "shm_bound.c"), "-o", self.path])

    def figures(self) -> dict[int, tuple[float, Optional[float]]]:
        rows = re.findall(r"^(\d+) ([\d.]+)$", _run([self.path]), re.M)
        return {int(size): (float(best), None) for size, best in rows}


class Mpi:
    """An MPI that is installed, two ranks."""

    def __init__(self, kind: str, folder: str, ranks: int = 2):
        self.name = {"openmpi": "Open MPI", "mpich": "MPICH"}[kind]
        compiler = shutil.which(f"mpicc.{kind}")
        runner = shutil.which(f"mpirun.{kind}")
        if compiler is None or runner is None:
            raise Missing(f"{self.name}: no mpicc.{kind} and mpirun.{kind}")
        self.path = os.path.join(folder, kind)
        _run([compiler, "-O3", str(HERE / "mpi_allreduce.c"), "-o", self.path])
        more = ["--oversubscribe"] if kind == "openmpi" and ranks > 2 else []
        self.command = [runner, "-n", str(ranks), *more, self.path]

    def figures(self) -> dict[int, tuple[float, Optional[float]]]:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return dict(_pairs(_run(self.command, env={**os.environ, **root})))


def null_library(python: str, folder: str) -> str:
    """The libraries that answer at once, made for the torch_npu of `python`."""
    for tool in ("bash", "gcc", "g++", "nm", "strings"):
        if shutil.which(tool) is None:
            raise Missing(f"null library: no {tool}")
    code = "import importlib.util; print(importlib.util.find_spec('torch_npu').submodule_search_locations[0])"
    wheel = _run([python, "-c", code], env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).strip()
    out = os.path.join(folder, "null")
    _run(["bash", str(HERE / "baselines" / "null" / "make.sh"), wheel, out])
    return out
