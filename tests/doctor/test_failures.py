"""Failures of real programs: what they leave in the plog files names the first cause, not what followed from it."""
from __future__ import annotations

import json
import os
import pathlib
import random
import socket
import subprocess
import uuid

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# case -> (the cause that explain has to name, words of the first line, settings of the program)
CASES = {
    "device-beyond": ("device-id", "99", {}),
    "list-unordered": ("no-device", "ascending", {"ASCEND_RT_VISIBLE_DEVICES": "1,0"}),
    "list-beyond": ("device-id", "input visible devices:4", {"ASCEND_RT_VISIBLE_DEVICES": "4"}),
    "no-context": ("no-context", "107002", {}),
    "out-of-memory": ("device-oom", "207001", {}),
    "type-refused": ("dtype-unsupported", "data type", {}),
    "shape-refused": ("bad-argument", "shape", {}),
    "tensor-null": ("bad-argument", "self is null", {}),
    "private-format": ("format-unsupported", "private format", {}),
    "host-address": ("bad-argument", "aclnnAbs", {}),
    "stream-destroyed": ("bad-handle", "aclrtSynchronizeStream", {}),
    "peer-closed": ("no-permission", "207006", {}),
    "copy-too-long": ("bad-argument", "destMax", {}),
    "config-missing": ("bad-file", "/no/such/file.json", {}),
    "config-broken": ("bad-config", "JSON", {}),
    "wait-forever": ("wait-timeout", "507046", {}),
    "ranks-disagree": ("hccl-mismatch", "EI0005", {}),
    "type-not-reduced": ("hccl-argument", "HcclAllReduce", {}),
    "hccl-setting": ("hccl-env", "HCCL_CONNECT_TIMEOUT", {"HCCL_CONNECT_TIMEOUT": "3"}),
    "rank-table": ("hccl-ranktable", "table.json", {}),
    "port-taken": ("port-in-use", "is held by", {}),
    "model-not-here": ("simulator-gap", "aclmdlLoadFromFile", {}),
}
# Faults of the machine under a program that is right: words of anynpu inject -> the cause, and a word of the line that shows it.
INJECTED = {
    "card-lost": (["card-lost", "--card", "0"], "card-lost", "507010"),
    "ecc-double": (["ecc-double", "--card", "0"], "hbm-hardware", "507054"),
    "link-down": (["link-down", "--card", "0"], "network-port-down", "EJ0002"),
    "driver-timeout": (["driver-timeout", "--card", "0", "--amount", "10"], "driver-internal", "507899"),
    "hbm-fragmentation": (["hbm-fragmentation", "--card", "0", "--amount", "90"], "device-oom", "207001"),
    "third-allocation": (["call", "--call", "aclrtMalloc", "--nth", "2", "--code", "207001"], "device-oom", "207001"),
    "phase-one": (["call", "--call", "aclnnAbsGetWorkspaceSize", "--nth", "1", "--code", "561003"], "kernel-missing", "561003"),
}


@pytest.fixture(scope="module")
def failures(program, tmp_path_factory) -> pathlib.Path:
    out = tmp_path_factory.mktemp("failures") / "failures"
    tree = pathlib.Path(program).resolve().parent.parent
    subprocess.run(["g++", "-std=c++17", f"-I{tree}/include", str(HERE / "failures.cc"), f"-L{tree}/lib64", "-lascendcl", "-lnnopbase", "-lhccl", "-ldl", "-lpthread",
                    f"-Wl,-rpath-link,{tree}/lib64", f"-Wl,-rpath-link,{tree}/anynpu/lib", "-o", str(out)], check=True)
    listed = subprocess.run([program, "run", "-q", "--machine", "f" + uuid.uuid4().hex[:8], "--", str(out)], capture_output=True, text=True, check=True)
    assert sorted(listed.stdout.split()) == sorted([*CASES, "work"]), "each failure of the program has its line here"
    return out


def run_failing(program, failures, tmp_path, case, settings, machine: str | None = None) -> pathlib.Path:
    logs = tmp_path / "logs"
    broken = tmp_path / "broken.json"
    broken.write_text("{ this is no JSON")
    env = {**os.environ, "ASCEND_PROCESS_LOG_PATH": str(logs), "FAILURE_FILE": str(broken), **settings}
    for name in ("ASCEND_GLOBAL_LOG_LEVEL", "ASCEND_SLOG_PRINT_TO_STDOUT"):
        env.pop(name, None)
    held = None
    if case == "port-taken":
        held = socket.socket()
        held.bind(("", 0))
        held.listen()
        env["HCCL_HOST_SOCKET_PORT_RANGE"] = str(held.getsockname()[1])
    subprocess.run([program, "run", "-q", "-n", "2", "--machine", machine or "f" + uuid.uuid4().hex[:8], "--", str(failures), case], env=env, timeout=120, check=True)
    if held:
        held.close()
    return logs


@pytest.mark.parametrize("case", CASES)
def test_the_first_cause_is_found_in_the_plog_files(program, failures, tmp_path, case):
    cause, words, settings = CASES[case]
    logs = run_failing(program, failures, tmp_path, case, settings)
    files = list(logs.glob("debug/plog/plog-*_*.log"))
    assert len(files) == 1, list(logs.rglob("*"))
    text = files[0].read_text()
    done = subprocess.run([program, "explain", "--json", str(logs / "debug" / "plog")], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    first = json.loads(done.stdout)["first_cause"]
    assert first["cause"] == cause, text + done.stdout
    assert words in first["text"], text + done.stdout


@pytest.mark.parametrize("fault", INJECTED)
def test_the_first_cause_of_an_injected_fault_is_found(program, failures, tmp_path, fault):
    words, cause, word = INJECTED[fault]
    machine = "f" + uuid.uuid4().hex[:8]
    subprocess.run([program, "up", "-n", "2", "--machine", machine], check=True, capture_output=True)
    try:
        subprocess.run([program, "inject", *words, "--machine", machine], check=True, capture_output=True)
        logs = run_failing(program, failures, tmp_path, "work", {"HCCL_EXEC_TIMEOUT": "3"}, machine)
    finally:
        subprocess.run([program, "clear", "--all", "--machine", machine], capture_output=True)
        subprocess.run([program, "down", "--machine", machine], capture_output=True)
    text = "".join(p.read_text() for p in logs.glob("debug/plog/*.log"))
    done = subprocess.run([program, "explain", "--json", str(logs / "debug" / "plog")], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    first = json.loads(done.stdout)["first_cause"]
    assert first["cause"] == cause and word in first["text"], text + done.stdout


def test_follow_ups_of_another_rank_are_not_the_cause(program, failures, tmp_path):
    """Rank 0 runs out of memory; rank 1's log is full of what followed."""
    logs = run_failing(program, failures, tmp_path, "out-of-memory", {})
    first = min(logs.glob("debug/plog/*.log"))
    other = first.with_name("plog-2_29991231235959999.log")
    other.write_text("[ERROR] HCCL(2,python):2999-12-31-23:59:59.999.999 [x.cc:1]2 EI0002: the wait for rank 0 timed out\n" * random.randint(3, 50))
    done = subprocess.run([program, "explain", "--json", str(logs / "debug" / "plog")], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    assert json.loads(done.stdout)["first_cause"]["cause"] == "device-oom", done.stdout
