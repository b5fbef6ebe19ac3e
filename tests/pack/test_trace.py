"""`anynpu trace` and `anynpu replay` around a program that uses torch_npu."""
from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
from test_bench import has
from test_launcher import machine, program  # noqa: F401 - a fixture

PROGRAM = """
import torch, torch_npu
x = torch.rand({rows}, {cols}, device="npu")
y = torch.cat([x, x]).t().contiguous()
torch._foreach_mul_([x, y], {factor})
print(y.sum().item() > 0)
try:
    torch.ops.aten.add.out(x, y[:1], out=torch.empty(1, device="npu"))
except RuntimeError:
    pass
raise SystemExit(5)
"""


@pytest.mark.skipif(not has("torch", "torch_npu"), reason="this Python has no torch_npu")
def test_calls_are_listed_kept_and_replayed(machine, tmp_path):  # noqa: F811
    rows, cols, factor = random.randint(2, 9), random.randint(2, 9), random.uniform(0.5, 2)
    print("sizes", rows, cols, factor)
    folder, chrome = tmp_path / "calls", tmp_path / "chrome.json"
    code = PROGRAM.format(rows=rows, cols=cols, factor=factor)
    words = [program(), "trace", "-o", str(folder), "--chrome", str(chrome), "--", sys.executable, "-c", code]
    done = subprocess.run(words, env=machine.env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (5, "True\n"), done.stderr
    assert f"float32[{rows},{cols}]" in done.stderr and "aclnnCat" in done.stderr
    records = [json.loads(line) for file in folder.glob("trace-*.jsonl") for line in file.read_text().splitlines()]
    ran = [r["op"] for r in records if "us" in r]
    assert "aclnnCat" in ran and any("ForeachMul" in op for op in ran)
    events = json.loads(chrome.read_text())["traceEvents"]
    assert sorted(e["name"] for e in events) == sorted(ran)

    again = machine("replay", "--times", "2", str(folder))
    assert again.returncode == 0, again.stderr
    assert all(op in again.stdout for op in ran)
    rows_of = again.stdout.splitlines()[1:]
    assert rows_of and not any(row.split()[1] == "-" for row in rows_of), again.stdout
    one = machine("replay", "--only", "aclnnCat", str(folder))
    assert len(one.stdout.splitlines()) == 2


def test_the_commands_exit_status_stands_and_nothing_is_left(machine, tmp_path):  # noqa: F811
    done = machine("trace", "--", "sh", "-c", 'echo "$ANYNPU_TRACE"; exit 7')
    assert done.returncode == 7 and "0 calls" in done.stderr
    import pathlib

    assert done.stdout.strip() and not pathlib.Path(done.stdout.strip()).exists()
    assert machine("trace", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9
    assert machine("trace", "--", "/no/such/program").returncode == 127
    assert machine("trace").returncode == 2


def test_traces_are_not_mixed_and_noise_is_refused(machine, tmp_path):  # noqa: F811
    (tmp_path / "trace-1.jsonl").write_text("noise\n")
    done = machine("trace", "-o", str(tmp_path), "--", "true")
    assert done.returncode == 2 and "trace-1.jsonl" in done.stderr
    for path in (tmp_path / "trace-1.jsonl", tmp_path / "missing"):
        done = machine("replay", str(path))
        assert done.returncode == 2 and path.name in done.stderr
