"""Slices of the other tests in modes of their own, each in a process of its own: memory that ends at a wall, and a card."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import driver
import generated

HERE = pathlib.Path(__file__).parent


def run_slice(cases: int, files: list[str], options: list[str], **settings: str) -> None:
    environment = os.environ | {"ANYNPU_SEED": str(generated.SEED), "ANYNPU_CASES": str(cases)} | settings
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-x", *options, *(str(HERE / f) for f in files)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=280)
    assert done.returncode == 0, f"{settings}, ANYNPU_SEED={generated.SEED}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"


def test_no_operator_reads_past_its_tensors() -> None:
    """A page nobody may touch lies behind every tensor: reading one byte more ends the process with the test's name."""
    run_slice(2, ["generated.py", "test_products.py", "test_attention.py"], ["-k", "not refuses"], ANYNPU_TEST_GUARD="pages")


@pytest.mark.skipif(driver.BACKEND == "device", reason="this run is on a card already")
def test_a_card_gives_the_same(tmp_path) -> None:
    """Operators through libascendcl: device memory, a stream, the card's threads. One operator in seven, drawn by the seed."""
    names = generated.GENERATED[generated.SEED % 7::7]
    ids = [f"{HERE / 'generated.py'}::test_agrees_with_torch[{name}]" for name in names]
    run_slice(2, [], [*ids, *(f"{HERE / 'test_products.py'}::{t}" for t in ("test_matmul", "test_convolution", "test_max_pool"))],
              ANYNPU_TEST_BACKEND="device", ANYNPU_MACHINE=f"conformance-{os.getpid()}")
