"""A client in Python that loads the libraries by path: no wheel of others is needed.

Environment:
  ANYNPU_TREE   the install tree (default: the newest build tree's)
"""
from __future__ import annotations

import pathlib
import sys

import pytest
from built import ROOT, find_tree

sys.path.insert(0, str(ROOT / "gen"))


@pytest.fixture(scope="session")
def tree() -> pathlib.Path:
    return find_tree()
