"""A random choice of torch's operator database on a card. `anynpu check ops` is the whole of it."""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest
from built import find_program

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1, 1 << 30)))
PROGRAM = find_program()


def check(folder, *options: str) -> tuple[subprocess.CompletedProcess, list[dict]]:
    """Runs the check on a machine of its own and reads its results."""
    done = subprocess.run([PROGRAM, "check", "--python", sys.executable, "--machine", f"opinfo{os.getpid()}", "ops", "--seed", str(SEED),
                           "--results", str(folder), *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return done, [r for r in rows if "op" in r]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_random_operators_have_no_wrong_value_of_ours(dtype, tmp_path):
    done, rows = check(tmp_path, "--choose", "12", "--limit", "3", "--budget", "15", "--dtype", dtype, "--quiet")
    assert done.returncode == 0
    assert rows and sum(r["counts"].get("pass", 0) for r in rows) > 0


@pytest.mark.timeout(1800)
def test_a_wrong_value_is_found_and_charged(tmp_path):
    """gelu's approximate=tanh does not reach us: the judge has to see that, and not to blame us for it."""
    done, rows = check(tmp_path, "--only", "nn.functional.gelu", "--dtype", "float32")
    assert rows[0]["counts"]["wrong"] > 0 and "torch_npu: wrong" in done.stdout
    assert done.returncode == 0
