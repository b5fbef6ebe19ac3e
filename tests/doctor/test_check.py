"""`anynpu check`: whole on software cards, with faults that it has to name, and against libraries of another maker as a real machine has them."""
from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import uuid

import pytest

from environment import library

PARTS = ["devices", "memory", "operators", "collectives", "monitor", "exporter"]


@pytest.fixture
def machine(program):
    """A kept machine of two cards."""
    name = "c" + uuid.uuid4().hex[:8]
    subprocess.run([program, "up", "-n", "2", "--machine", name], check=True, capture_output=True)
    yield name
    subprocess.run([program, "clear", "--all", "--machine", name], capture_output=True)
    subprocess.run([program, "down", "--machine", name], capture_output=True)


def check(program, *words, **environment):
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND", "LD_LIBRARY", "ANYNPU"))}
    done = subprocess.run([program, "check", "--json", *words], capture_output=True, text=True, env={**plain, **environment}, timeout=600)
    return done, json.loads(done.stdout) if done.stdout.startswith("{") else None


def failed(report) -> dict[str, str]:
    return {item["name"]: item["detail"] for part in report["parts"] for item in part["items"] if item["verdict"] == "failed"}


def test_the_whole_installation_has_the_full_score(program, machine):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    exporter = subprocess.Popen([program, "exporter", "--machine", machine, "--listen", f"127.0.0.1:{port}", "--trainer", "off"], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            time.sleep(0.1)
        done, report = check(program, "--machine", machine, "--exporter-port", str(port))
    finally:
        exporter.terminate()
        exporter.wait()
    assert done.returncode == 0 and report["score"] == 100, done.stdout + done.stderr
    assert [part["part"] for part in report["parts"]] == PARTS
    passed = {part["part"]: [i["name"] for i in part["items"] if i["verdict"] == "passed"] for part in report["parts"]}
    names = {re.sub(r" \(.*", "", name) for name in passed["operators"]}
    assert len(names) >= 200, f"{len(names)} operators"
    for halves in ("float16", "bfloat16"):
        assert sum(f"({halves})" in name for name in passed["operators"]) >= 40
    for name in ("aclnnSoftmaxBackward", "aclnnLayerNormBackward", "aclnnConvolutionBackward", "aclnnNLLLossBackward", "aclnnEmbeddingDenseBackward",
                 "aclnnFlashAttentionScore (bfloat16)", "aclnnFlashAttentionScoreGrad (float16)"):
        assert name in passed["operators"], name
    assert all(passed[part] for part in PARTS), passed
    notes = {part["part"]: part["note"] for part in report["parts"]}
    assert notes["devices"].startswith("2 x ") and notes["collectives"] == "2 cards"


def test_what_fails_is_named_and_counts(program, machine):
    subprocess.run([program, "inject", "call", "--call", "aclnnAbsGetWorkspaceSize", "--nth", "1", "--code", "561103", "--machine", machine], check=True, capture_output=True)
    done, report = check(program, "--machine", machine, "--only", "operators")
    assert done.returncode == 1 and report["score"] < 100, done.stdout
    assert list(failed(report)) == ["aclnnAbs"] and "561103" in failed(report)["aclnnAbs"]


def test_a_lost_card_is_found_by_the_parts_that_use_it(program, machine):
    subprocess.run([program, "inject", "card-lost", "--card", "1", "--machine", machine], check=True, capture_output=True)
    done, report = check(program, "--machine", machine, "--only", "devices", "--only", "collectives", "--only", "monitor")
    assert done.returncode == 1
    for part in report["parts"]:
        assert any(i["verdict"] == "failed" for i in part["items"]), part


def test_libraries_of_another_maker_are_called_as_any_program_calls_them(program, tmp_path):
    """An installed toolkit is examined as it is; what its library lacks is named, and a part that crashes is a finding."""
    home = tmp_path / "toolkit"
    (home / "lib64").mkdir(parents=True)
    source = """
        #include <stdlib.h>
        int aclInit(const char* f) { (void)f; return 0; }
        int aclFinalize(void) { return 0; }
        int aclrtGetDeviceCount(unsigned* n) { if (getenv("CRASH")) abort(); *n = 1; return 0; }
        int aclrtSetDevice(int d) { (void)d; return 507899; }
        const char* aclGetRecentErrMsg(void) { return "EL0004: the driver of the test does not answer"; }
        const char* aclrtGetSocName(void) { return "Ascend910B2"; }
    """
    (home / "lib64" / "libascendcl.so").write_bytes(library(source))
    variables = {"ASCEND_HOME_PATH": str(home), "LD_LIBRARY_PATH": str(home / "lib64")}
    done, report = check(program, "--only", "devices", "--only", "memory", "--only", "operators", **variables)
    assert done.returncode == 1 and report["score"] < 100, done.stdout
    text = json.dumps(failed(report))
    assert "507899" in text and "does not answer" in text, text
    done, report = check(program, "--only", "devices", CRASH="1", **variables)
    assert done.returncode == 1 and "signal" in json.dumps(failed(report)), done.stdout
    (home / "lib64" / "libascendcl.so").write_text("no library")
    done, report = check(program, "--only", "devices", **variables)
    assert done.returncode == 1 and "libascendcl.so" in json.dumps(failed(report)), done.stdout


def test_words_that_are_none(program):
    done, _ = check(program, "--only", "everything")
    assert done.returncode == 2 and "operators" in done.stderr
