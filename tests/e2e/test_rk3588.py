"""Four boards (network namespaces, each with a software NPU of 8 GB) sum predictions with gloo: examples/rk3588."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT, SEED, WHEELS, find_program

sys.path.insert(0, str(ROOT / "tests" / "coll"))
from hosts import Hosts, possible  # noqa: E402

why_not = possible()


@pytest.mark.skipif(bool(why_not), reason=why_not)
def test_four_boards(tmp_path):
    program = str(ROOT / "examples" / "rk3588" / "predict.py")
    with Hosts(4) as boards:
        children = []
        for rank, board in enumerate(boards):
            env = {"RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": boards[0].address, "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": "eth0",
                   "OMP_NUM_THREADS": "1", "PYTHONPATH": "", "ANYNPU_SEED": str(SEED)}
            children.append(board.start([find_program(), "run", "-n", "1", "--machine", board.machine, "--hbm", "8G", "--", WHEELS["2.13"], program],
                                        env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path))
        texts = [child.communicate(timeout=240)[0] for child in children]
        assert [c.returncode for c in children] == [0] * 4, "\n".join(texts)
    sums = []
    for rank, text in enumerate(texts):
        found = re.search(rf"board {rank} of 4: sum (-?[\d.]+), ([\d.]+) GiB", text)
        assert found, text
        sums.append(found[1])
        assert float(found[2]) <= 8.0, text
    assert len(set(sums)) == 1, sums
