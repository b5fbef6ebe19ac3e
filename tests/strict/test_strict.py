"""`anynpu run --strict`: seeded bugs are found with what is needed to mend them, programs without are left in peace.

  ANYNPU_PROGRAM   the launcher (default: the newest build tree's bin/anynpu)
"""
from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import uuid

import pytest
from built import find_program as program

FOUND = 86  # exit code of a program with findings that would have ended well

# case: kind of the finding, and words that must stand in it: who did it, with what, and the cure
BUGS = {
    "copies-what-was-never-written": ("use before write", "aclrtMemcpy", r"\(src\)", "Fill src first"),
    "adds-what-is-half-written": ("use before write", "aclnnAdd", r"\(other\)", r"byte 2048 of them", "on stream"),
    "reads-a-copy-of-what-was-never-written": ("use before write", "aclrtMemcpy", r"\(src\)"),
    "copies-from-freed-memory": ("use after free", "aclrtMemcpy", "freed by aclrtFree", "Keep the allocation"),
    "frees-between-plan-and-launch": ("use after free", "aclnnAdd", r"\(self\)", "freed by aclrtFree", "on stream"),
    "frees-what-a-stream-uses": ("freed in use", "aclrtFree", "aclrtMemsetAsync", "Synchronise stream"),
    "frees-twice": ("use after free", "aclrtFree", "freed already", "freed by aclrtFree"),
    "fills-beyond-the-end": ("out of bounds", "aclrtMemset", "1000 bytes"),
    "tensor-larger-than-its-memory": ("out of bounds", "aclnnAdd", "self", "1000 bytes"),
    "custom-kernel-writes-beyond": ("out of bounds", "aclnnCustScale", "y: 0 bytes behind its end", "on stream"),
    "custom-kernel-writes-before": ("out of bounds", "aclnnCustScale", "y: 4 bytes before its start", "on stream"),
    "custom-kernel-reads-far": ("out of bounds", "aclnnCustScale", "behind an allocation", "At work"),
    "host-reads-device-memory": ("host use of device memory", "Host code", "aclrtMemcpy"),
    "host-function-writes-device-memory": ("host use of device memory", "Host code", "aclrtMemcpy"),
    "works-on-the-wrong-device": ("wrong device", "aclrtMemsetAsync", "memory of card 1", "on stream"),
    "forgets-to-free": ("leak", "3 allocations with 12288 bytes", "Call aclrtFree"),
}
DIES = {"custom-kernel-reads-far", "host-reads-device-memory", "host-function-writes-device-memory"}


def cases_program() -> str:
    build = pathlib.Path(program()).resolve().parent.parent.parent
    return str(build / "tests" / "strict" / "strict_cases")


def names(group: str) -> list[str]:
    lines = subprocess.run([cases_program(), "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[1] for line in lines if line.split()[0] == group]


def run(*command: str, option: str = "--strict", env: dict | None = None) -> subprocess.CompletedProcess:
    machine = "s" + uuid.uuid4().hex[:8]
    words = [program(), "run", "-q", "-n", "2", "--hbm", "1G", "--machine", machine]
    if option:
        words.append(option)
    return subprocess.run([*words, "--", *command], capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})})


def findings(text: str) -> list[str]:
    return re.split(r"(?=^anynpu strict: finding)", text, flags=re.M)[1:]


def test_every_case_is_known():
    assert sorted(BUGS) == sorted(names("memory"))
    assert len(names("race")) >= 10 and len(names("ordered")) >= 10


@pytest.mark.parametrize("case", BUGS)
def test_bug_is_found(case):
    kind, *words = BUGS[case]
    done = run(cases_program(), case)
    found = [f for f in findings(done.stderr) if f": {kind}\n" in f]
    assert found, done.stderr
    for word in words:
        assert re.search(word, found[0]), f"no {word!r} in\n{found[0]}"
    assert re.search(r"allocation: \d+ bytes at 0x[0-9a-f]+ on card", found[0]), found[0]
    assert "allocated by aclrtMalloc" in found[0] and "strict_cases" in found[0], found[0]
    assert "remedy: " in found[0]
    if case in DIES:
        assert done.returncode in (-signal.SIGSEGV, 128 + signal.SIGSEGV), done.returncode
    else:
        assert done.returncode == FOUND, done.stderr


@pytest.mark.parametrize("case", names("race") if os.path.exists(cases_program()) else [])
def test_race_is_found(case):
    done = run(cases_program(), case)
    found = [f for f in findings(done.stderr) if ": wrong stream order\n" in f]
    assert len(found) == 1, done.stderr
    assert "nothing orders the two" in found[0] and "remedy: " in found[0] and "stream" in found[0]
    assert done.returncode == FOUND


@pytest.mark.parametrize("case", names("ordered") if os.path.exists(cases_program()) else [])
def test_ordered_program_is_left_in_peace(case):
    done = run(cases_program(), case)
    assert not findings(done.stderr), done.stderr
    assert done.returncode == 0 and "no findings" in done.stderr


def test_off_nothing_is_said():
    done = run(cases_program(), "forgets-to-free", option="")
    assert done.returncode == 0 and "strict" not in done.stderr


def test_warn_leaves_the_exit_code():
    done = run(cases_program(), "forgets-to-free", option="--strict=warn")
    assert done.returncode == 0 and findings(done.stderr)


def test_python_is_named(tmp_path):
    """A tensor that is read before it is written: the line of the script stands in the report, for the use and for its memory."""
    path = tmp_path / "reads_too_early.py"
    path.write_text("""import torch, torch_npu
x = torch.empty(1000, device="npu:0")
y = torch.ones(1000, device="npu:0")
z = x + y
torch.npu.synchronize()
""")
    done = run(sys.executable, str(path))
    found = [f for f in findings(done.stderr) if ": use before write\n" in f]
    assert found, done.stderr[-4000:]
    assert "aclnnAdd" in found[0] and f"{path}:4 in <module>" in found[0] and f"{path}:2 in <module>" in found[0], found[0]
    assert done.returncode == FOUND
