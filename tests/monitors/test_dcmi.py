"""Every function of libdcmi.so: wrong ids, null results and a plain call; nothing crashes, refusals have the driver's codes."""
from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT, program

# One argument a parameter: ids as given, pointers to a room of 8 KiB or null, other numbers 1.
CALLER = """
import ctypes, json, sys
lib = ctypes.CDLL("libdcmi.so")
lib.dcmi_init()
out = {}
for name, kinds, ids, null in json.load(sys.stdin):
    room, args, next_id = [], [], list(ids)
    for kind in kinds:
        if kind == "id":
            args.append(ctypes.c_int(next_id.pop(0)))
        elif kind == "pointer":
            block = ctypes.create_string_buffer(8192)
            ctypes.memmove(block, (ctypes.c_int * 1)(100), 4)  # a time in ms, or a size, where the call reads one
            room.append(block)
            args.append(None if null else block)
        else:
            args.append(ctypes.c_int(100))
    out[json.dumps([name, ids, null])] = getattr(lib, name)(*args)
print(json.dumps(out))
"""


def functions() -> list[tuple[str, list[str], str]]:
    found = []
    with open(ROOT / "abi/dcmi.tsv", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            # Passing a struct by value or a callback wants its own test; the reset is tested with npu-smi.
            if row["library"] != "libdcmi.so" or row["name"].startswith("dcmiv2_") or re.search(r"subscribe|_reset|rescan|set_", row["name"]):
                continue
            inside = row["prototype"].split("(", 1)[1].rstrip(")")
            kinds = []
            for parameter in ([] if inside in ("", "void") else inside.split(",")):
                name = parameter.split()[-1].lstrip("*")
                kinds.append("pointer" if "*" in parameter else "id" if re.fullmatch(r"(card|device)_id\d?", name) else "number")
            found.append((row["name"], kinds, row["state"]))
    return found


def call(machine, wanted: list) -> dict:
    done = subprocess.run([program(), "run", "-q", *machine.options, "--", sys.executable, "-c", CALLER], input=json.dumps(wanted), env=machine.env,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return {tuple(map(str, json.loads(key))): code for key, code in json.loads(done.stdout).items()}


@pytest.mark.parametrize("soc", ["Ascend910B4", "Ascend910_9391", "Ascend310P3"])
def test_every_function_survives_bad_arguments(make_machine, soc):
    machine = make_machine("--soc", soc)
    table = functions()
    assert len(table) > 75
    wrong = [(name, kinds, [99, 0, 99, 0], False) for name, kinds, _ in table if "id" in kinds]
    for (name, *_), code in call(machine, wrong).items():
        state = next(s for n, _, s in table if n == name)
        assert code == (-8001 if state == "works" else -8255), (name, code)
    null = [(name, kinds, [0, 0, 0, 0], True) for name, kinds, _ in table if "pointer" in kinds]
    for (name, *_), code in call(machine, null).items():
        state = next(s for n, _, s in table if n == name)
        assert code == (-8001 if state == "works" else -8255), (name, code)


def test_every_function_answers_or_refuses_on_a_910b(machine):
    table = functions()
    plain = [(name, kinds, [1, 0, 0, 0], False) for name, kinds, _ in table]
    refused = set()
    for (name, *_), code in call(machine, plain).items():
        state = next(s for n, _, s in table if n == name)
        assert code in (0, -8255, -8001), (name, code)
        if code == -8255:
            refused.add(name)
        elif state != "works":
            raise AssertionError((name, code))
    # Of those that work somewhere, a 910B refuses these.
    works = {n for n, _, s in table if s == "works"}
    assert refused & works <= {"dcmi_get_device_info", "dcmi_get_device_memory_info_v3", "dcmi_get_memory_info", "dcmi_get_netdev_brother_device",
                               "dcmi_get_product_type", "dcmi_get_device_sensor_info", "dcmi_get_device_utilization_rate", "dcmi_get_device_frequency",
                               "dcmi_get_device_ecc_info"}
