"""The doctor on environments that a script builds. ANYNPU_PROGRAM is the launcher; without it the newest build's is taken."""
from __future__ import annotations

import pathlib
import venv

import pytest
from built import find_program

from environment import Environment


@pytest.fixture(scope="session")
def program() -> str:
    return find_program()


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> str:
    """An interpreter without packages: those of a test stand on PYTHONPATH."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def env(tmp_path: pathlib.Path, program: str, python: str) -> Environment:
    return Environment(tmp_path, program, python)
