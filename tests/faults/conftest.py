"""A client in Python that loads the libraries by path: no wheel of others is needed.

Environment:
  ANYNPU_TREE   the install tree (default: the newest build tree's)
"""
from __future__ import annotations

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "gen"))


@pytest.fixture(scope="session")
def tree() -> pathlib.Path:
    if os.environ.get("ANYNPU_TREE"):
        return pathlib.Path(os.environ["ANYNPU_TREE"])
    found = sorted(ROOT.glob("build/*/tree/set_env.sh"), key=lambda p: p.stat().st_mtime)
    if not found:
        pytest.exit("No install tree: build first, or set ANYNPU_TREE.", returncode=3)
    return found[-1].parent
