"""`anynpu bench`: what it says when something is missing, and that its figures are figures. None of them is judged."""
from __future__ import annotations

import json
import math
import os
import pathlib
import random
import subprocess
import sys

import pytest
from test_launcher import machine, program  # noqa: F401 - a fixture

FOLDER = pathlib.Path(program()).resolve().parents[1] / "anynpu" / "bench"
sys.path.insert(0, str(FOLDER))


def has(*modules: str) -> bool:
    import importlib.util

    return all(importlib.util.find_spec(m) for m in modules)


def test_a_python_that_is_not_there_is_named(machine):  # noqa: F811
    done = machine("bench", "--python", "/no/such/python", "ops")
    assert done.returncode == 2 and "/no/such/python" in done.stderr and "--python" in done.stderr


def test_a_python_without_torch_is_named(machine, tmp_path):  # noqa: F811
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # no site-packages
    bare.chmod(0o755)
    for what in ("steps", "ops"):
        done = machine("bench", "--python", str(bare), what)
        assert done.returncode == 1 and f"{bare} has no torch and no torch_npu" in done.stderr


@pytest.mark.parametrize("words, named", [(["nonsense"], "nonsense"), (["ops", "--only", "no such operator"], "no such operator"),
                                          (["--rounds", "0"], "--rounds"), (["steps", "--queue", "3"], "3"), (["steps", "ops"], "ops is a run of its own")])
def test_wrong_words_are_refused_by_name(machine, words, named):  # noqa: F811
    done = machine("bench", "--python", sys.executable, *words)
    assert done.returncode == 2 and named in done.stderr


def test_names_of_the_list_are_accepted_by_only(machine):  # noqa: F811
    import ops

    names = machine("bench", "--python", sys.executable, "ops", "--list").stdout.splitlines()
    assert len(names) > 40 and len(set(names)) == len(names)
    assert all(case.name in names for case in ops.CASES)
    name = random.choice(names)
    print("name", name)
    assert {case.name for case in ops.chosen([name])} == {name}


def test_small_adds_have_times(machine):  # noqa: F811
    done = machine("bench", "--python", sys.executable, "adds", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "both phases" in done.stdout and "µs" in done.stdout


def test_peaks_are_measured(machine):  # noqa: F811
    size = random.randint(1, 64) << 16
    done = subprocess.run([str(FOLDER / "bin" / "bench_peak"), str(size)], capture_output=True, text=True, timeout=60)
    peaks = json.loads(done.stdout)
    assert peaks["threads"] == len(os.sched_getaffinity(0)) and peaks["gflops"] > 0
    assert list(peaks["copy_gbs"]) == [str(size)] and peaks["copy_gbs"][str(size)] > 0


@pytest.mark.skipif(not has("torch", "torch_npu"), reason="this Python has no torch_npu")
def test_an_operator_has_a_row_with_a_ratio(machine, tmp_path):  # noqa: F811
    file = tmp_path / "figures.json"
    done = subprocess.run([program(), "bench", "--python", sys.executable, "ops", "--only", "cat", "--rounds", "1", "--seconds", "0.02",
                           "--json", str(file)], env=machine.env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(file.read_text())["rows"]
    assert row["op"] == "cat" and row["npu_s"] > 0 and row["ratio"] == row["cpu_s"] / row["npu_s"] and row["share"] > 0
    assert "Geometric mean" in done.stdout


def test_arithmetic_of_the_report():
    import report

    rng = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    values = [rng.uniform(0.1, 10) for _ in range(rng.randint(3, 30))]
    assert math.isclose(report.geometric_mean(values) ** len(values), math.prod(values), rel_tol=1e-9)
    assert sum(v < report.of_round(values) for v in values) == len(values) // 4
    factor = rng.uniform(0.2, 5)
    assert math.isclose(report.ratio([factor * v for v in values], values), factor)
    assert report.duration(0.0123) == "12.3 ms" and report.duration(4.56e-6) == "4.56 µs" and report.duration(None) == "–"
