"""CPU_AFFINITY_CONF: torch_npu learns of libdcmi.so where a card sits and binds its threads to the CPUs beside it."""
from __future__ import annotations

import os
import subprocess
import textwrap

import pytest
from live import program, wheels_python

TEXT = textwrap.dedent("""
    import os, sys, torch, torch_npu
    torch.npu.set_device(int(sys.argv[1]))
    x = torch.randn(8, 8, device="npu", requires_grad=True)
    (x @ x).sum().backward()
    torch.npu.synchronize()
    print("main", sorted(os.sched_getaffinity(0)), flush=True)
    for task in sorted(os.listdir("/proc/self/task")):
        if open(f"/proc/self/task/{task}/comm").read().strip() == "pt_autograd_" + sys.argv[1]:
            print("autograd", sorted(os.sched_getaffinity(int(task))), flush=True)
    os._exit(0)  # torch's backward thread may still drop its last objects, which ends a finalising Python (docs/limits.md)
""")


def bound(machine, card: int, mode: str) -> dict[str, list[int]]:
    done = subprocess.run([program(), "run", "-q", "--", wheels_python(), "-c", TEXT, str(card)], env=machine.env | {"CPU_AFFINITY_CONF": mode},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {}
    for line in done.stdout.splitlines():
        name, _, cpus = line.partition(" ")
        found[name] = [int(word) for word in cpus.strip("[]").split(",")]
    return found


def test_threads_of_each_card_are_bound_to_cpus_of_their_own(machine):
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one CPU")
    assert bound(machine, 1, "0")["main"] == mine, "without the setting nothing is bound"
    first, second = bound(machine, 0, "1"), bound(machine, 1, "1")
    for name in ("main", "autograd"):
        assert set(first[name]) < set(mine) and set(second[name]) < set(mine), (first, second)
        assert not set(first[name]) & set(second[name]), (first, second)
