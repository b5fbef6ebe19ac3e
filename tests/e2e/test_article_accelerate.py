"""The Accelerate article, command by command, with its outputs: docs/guide/en/accelerate.md is what runs here."""
import re

import pytest
from guide import Page

PAGE = Page("accelerate")


def test_accelerate_env(machine):
    PAGE.run("env", machine)


@pytest.mark.parametrize("label", ["launch", "launch-bf16"])
def test_launch(machine, label):
    done = PAGE.run(label, machine)
    assert float(re.search(r"final_loss=([\d.]+)", done.out).group(1)) < 10, done.tail()
    assert len(re.findall("final_loss", done.out)) == 1


@pytest.mark.parametrize("label", ["single", "prepare", "gather", "empty", "dispatch"])
def test_command(machine, label):
    PAGE.run(label, machine)
