"""What the tests run against: the launcher and the install tree of the newest build, or those that the environment names.

  ANYNPU_PROGRAM   the launcher
  ANYNPU_TREE      the install tree
"""
from __future__ import annotations

import functools
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _newest(variable: str, pattern: str) -> pathlib.Path:
    found = sorted(ROOT.glob(pattern), key=lambda p: p.stat().st_mtime)
    if not found:
        pytest.exit(f"Nothing is built: build first, or set {variable}.", returncode=3)
    return found[-1]


@functools.cache
def find_program() -> str:
    return os.environ.get("ANYNPU_PROGRAM") or str(_newest("ANYNPU_PROGRAM", "build/*/tree/bin/anynpu"))


@functools.cache
def find_tree() -> pathlib.Path:
    named = os.environ.get("ANYNPU_TREE")
    return pathlib.Path(named) if named else _newest("ANYNPU_TREE", "build/*/tree/set_env.sh").parent
