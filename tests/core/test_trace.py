"""The trace of operators: what a line says about a call, and that each process writes its own file."""
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

CALLS = """
import sys
sys.path.insert(0, {conformance!r})
import torch
from aclnn_call import Failure, lib
a, b = torch.rand({rows}, {cols}), torch.rand({cols}, {rows}).t()
lib("aclnnAdd", self=a, other=b, alpha={alpha}, out=torch.empty({rows}, {cols}))
try:
    lib("aclnnAdd", self=a, other=torch.rand({rows} + 1, {cols} + 1), alpha=1, out=a)
except Failure as failure:
    print(failure.text)
"""


def lines_of(folder: pathlib.Path, code: str) -> tuple[list[dict], str]:
    env = os.environ | {"ANYNPU_TRACE": str(folder), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    files = list(folder.glob("trace-*.jsonl"))
    assert len(files) == 1
    return [json.loads(line) for line in files[0].read_text().splitlines()], done.stdout


def test_a_line_holds_the_call(tmp_path):
    rows, cols, alpha = random.randint(2, 9), random.randint(2, 9), random.randint(2, 9)
    print("sizes", rows, cols, alpha)
    code = CALLS.format(conformance=str(ROOT / "tests" / "conformance"), rows=rows, cols=cols, alpha=alpha)
    (*rans, refused), text = lines_of(tmp_path, code)
    ran = rans[0]  # the caller makes each call that is accepted again, with other workers
    assert ran["op"] == refused["op"] == "aclnnAdd"
    assert ran["us"] > 0 and ran["ts_us"] <= refused["ts_us"] and ran["kernel"].lower().endswith("add")
    args = {arg.pop("name"): arg for arg in ran["args"]}
    assert args["self"] == {"kind": "tensor", "role": "in", "dtype": "float32", "shape": [rows, cols]}
    assert args["other"] == {"kind": "tensor", "role": "in", "dtype": "float32", "shape": [rows, cols], "strides": [1, rows]}
    assert args["alpha"] == {"kind": "scalar", "role": "in", "dtype": "int64", "value": alpha}
    assert args["out"]["role"] == "out"
    assert refused["refused"] and refused["refused"] in text


def test_without_the_variable_nothing_is_written(tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "ANYNPU_TRACE"} | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    code = CALLS.format(conformance=str(ROOT / "tests" / "conformance"), rows=2, cols=3, alpha=1)
    subprocess.run([sys.executable, "-c", code], env=env, check=True, cwd=tmp_path, capture_output=True)
    assert not list(tmp_path.iterdir())
