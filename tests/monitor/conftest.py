from __future__ import annotations

import pytest
from live import Exporter, Machine


@pytest.fixture
def machine(tmp_path):
    """Two idle cards."""
    m = Machine(tmp_path, 2)
    yield m
    m.close()


@pytest.fixture
def exporter(machine):
    return Exporter(machine)
