"""The Ray article: discovery, isolation of task and actor, shared cards; docs/guide/en/ray.md is what runs here."""
import importlib.util
import subprocess

import pytest

from conftest import WHEELS, Machine
from guide import Page

PAGE = Page("ray")
RAY_WHEELS = [name for name, python in WHEELS.items()
              if subprocess.run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('ray') is None)"]).returncode == 0]


@pytest.fixture(params=RAY_WHEELS)
def ray_machine(request, tmp_path):
    return Machine(tmp_path, WHEELS[request.param])


@pytest.mark.parametrize("label", ["discover", "isolation", "quarters"])
def test_command(ray_machine, label):
    PAGE.run(label, ray_machine)


def test_counting_device_files_without_the_module(ray_machine):
    """Ray's second way: files in /dev, for programs whose `import acl` fails."""
    done = ray_machine.py("""
        import sys
        sys.modules["acl"] = None  # the import raises
        from ray._private.accelerators import NPUAcceleratorManager
        print("files:", NPUAcceleratorManager.get_current_node_num_accelerators())
    """, cards=3, options=("--dev-nodes",)).ok()
    if "cannot be shown" in done.err:
        pytest.skip("no user or mount namespaces here; a line on stderr says so")
    done.says(r"^files: 3$")
