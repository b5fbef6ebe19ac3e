"""Every object of the torch_npu wheel loads with immediate binding on our libraries, and two cards are there.

Environment: ANYNPU_PYTHON (default: the one that runs pytest) and ANYNPU_PYTHON_29 as for tests/e2e; ANYNPU_PYTHON_25, a Python
3.11 with torch 2.5.1 and torch_npu 2.5.1. Wheels whose Python is not named are not collected.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid

import pytest
from built import find_tree

PYTHONS = {"2.13": os.environ.get("ANYNPU_PYTHON", sys.executable)}
for _name, _variable in (("2.9", "ANYNPU_PYTHON_29"), ("2.5", "ANYNPU_PYTHON_25")):
    if os.environ.get(_variable):
        PYTHONS[_name] = os.environ[_variable]

LOAD = """
import ctypes, glob, json, os
import torch, torch_npu
folder = os.path.dirname(torch_npu.__file__)
loaded, failed = [], {}
# _torchair first: _abi_compat_ge_apis uses symbols of the object that loads it.
for file in sorted(glob.glob(folder + "/**/*.so", recursive=True), key=lambda f: (not f.endswith("_torchair.so"), f)):
    try:
        ctypes.CDLL(file, mode=os.RTLD_NOW)
        loaded.append(os.path.basename(file))
    except OSError as error:
        failed[os.path.basename(file)] = str(error)
print(json.dumps({"version": torch_npu.__version__, "cards": torch.npu.device_count(), "loaded": loaded, "failed": failed}))
"""


@pytest.mark.parametrize("wheel", PYTHONS)
def test_import(wheel):
    """Through set_env.sh, as a shell user would."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ANYNPU_", "ASCEND_", "PYTHONPATH"))}
    environment |= {"ANYNPU_MACHINE": "t" + uuid.uuid4().hex[:8], "PROGRAM": LOAD, "PYTHON": PYTHONS[wheel]}
    command = f'. {find_tree()}/set_env.sh && exec "$PYTHON" -c "$PROGRAM"'
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["version"].startswith(wheel)
    assert said["failed"] == {}
    assert {"libtorch_npu.so", "libop_plugin_atb.so", "_torchair.so"} <= set(said["loaded"])
    assert said["cards"] == 2
