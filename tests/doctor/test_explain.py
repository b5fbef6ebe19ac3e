"""`anynpu explain` as a user calls it."""
from __future__ import annotations

import json
import os
import resource
import subprocess

import pytest


def explain(program, *words, stdin=None, **environment):
    return subprocess.run([program, "explain", *words], input=stdin, capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C", **environment}, timeout=120)


@pytest.mark.parametrize("text", [
    "HCCL_EPERM", "HCCL_EINVAL", "HCCL_EMEM", "hccl_init_comms", "Device backend 'npu' is not available",
    "undefined symbol: _ZN6Ascend10AscendOp10get_op_infoEv", "ollama run --gpus all", "107001", "-8020", "161002", "hccl:9", "EI0019", "ERR02200", "EZ9999",
    "ImportError: libascendcl.so: cannot open shared object file", "RuntimeError: NPU error: ACL_ERROR_INVALID_PARAM", "AttributeError: module 'torch' has no attribute 'npu'",
    "NotImplementedError: The operator [x] is not supported on NPU", "RuntimeError: ACL execute op failed, error code: 500002",
])
def test_the_articles_errors_are_explained_in_both_languages(program, text):
    done = explain(program, "--lang", "both", *([text] if not text.startswith("-") else []), *(["--", text] if text.startswith("-") else []))
    assert done.returncode == 0, done.stdout + done.stderr
    for label in ("why ", "next ", "原因", "处理"):
        assert label in done.stdout, done.stdout


REPORTS = {  # texts of users' reports -> the cause
    "ASCEND_RT_VISIBLE_DEVICES must be set in ascending order, EE1001": "no-device",
    "rtSetDevice failed, ret=107001, invalid device id, input visible devices: 4": "device-id",
    "ImportError: libascend_hal.so: cannot open shared object file": "library-missing",
    "EH9999: Inner Error! ModuleNotFoundError: No module named 'decorator'": "op-compile",
    "ImportError: libtorch_npu.so: undefined symbol: _ZN3atb15CreateOperation": "symbol-missing",
    "hccl_socket listen on port 16666 failed, hcclRet -> 7": "port-in-use",
    "HcclAllreduce error 6, EI0006 socket timeout": "hccl-connect-timeout",
    "hcclCommInitRootInfoConfig error 11": "hccl-connect-timeout",
    "EJ0002: the network port is down": "network-port-down",
    "RuntimeError: Cannot re-initialize NPU in forked subprocess": "fork-start",
    "aicpu exception in RightShift, error code is 507018": "aicpu-fault",
    "aclnnInplaceCopy failed, error code is 561103": "op-internal",
    "Cannot run aclop operators during NPU graph capture": "graph-capture",
    "error: ub overflow": "ub-overflow",
    "Non finite check and unscale on NPU device!": "amp-notice",
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB": "device-oom",
    "expandable_segments cannot be used with max_split_size_mb": "alloc-conf",
    "AssertionError: Torch not compiled with CUDA enabled": "cuda-code",
    "error code is 500002, E40021: failed to compile Conv3D": "op-compile",
    "dcmi module initialize failed. ret is -8005": "driver-handshake",
    "dcmi module initialize failed. ret is -8020": "device-busy",
    "dcmi get health failed, err -8010": "dcmi-message",
    "ValueError: trace file must be a json file": "profiler-files",
    "drvError: internal error 0x7020010": "resource-exhausted",
    "ACL stream synchronize failed, error code:507011": "graph-run",
    "E89999: Inner Error!": "op-internal",
    "RuntimeError: Tensors must be contiguous ERR02002": "not-contiguous",
    "RuntimeError: Expected all tensors to be on the same device ERR01002": "device-mixed",
    "EZ9999: Cannot find bin of op Range": "kernel-missing",
    "ImportError: /usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found": "cxx-library-old",
}


@pytest.mark.parametrize("text", REPORTS)
def test_texts_of_reports_have_their_cause(program, text):
    assert json.loads(explain(program, "--json", text).stdout)["first_cause"]["cause"] == REPORTS[text]


def test_language_follows_the_environment(program):
    assert "原因" in explain(program, "EI0006", LC_ALL="zh_CN.UTF-8").stdout
    assert "why" in explain(program, "EI0006", LC_ALL="en_US.UTF-8").stdout


def test_unknown_things_are_unknown(program):
    assert explain(program, "no such thing at all").returncode == 1
    assert explain(program, "/no/such/file.log").returncode == 1
    assert explain(program).returncode == 64


def test_codes_in_a_question_and_a_file_that_is_not_there(program):
    both = explain(program, "161002 507035").stdout
    assert "161002 " in both and "507035 " in both, both
    assert explain(program, "aclnnStatus 561103").stdout.startswith("561103")
    assert explain(program, "HcclResult 4").stdout.startswith("4 HCCL_E_")
    assert explain(program, "the answer is 42").returncode == 1
    done = explain(program, "nofile.log")
    assert done.returncode == 1 and "nofile.log: No such file" in done.stderr and not done.stdout, done.stdout + done.stderr


def test_what_only_this_software_lacks_is_said_to_be_that(program, tmp_path):
    log = tmp_path / "run.log"
    log.write_text("RuntimeError: NPU function error: aclopCompileAndExecute, error code is 207000\n[Error]: This feature is not supported.\n"
                   "EE1005: [PID: 1] 2026-11-30-22:32:24.498.015 [AnyNPU] Operator Iou (aclopCompileAndExecute) is not implemented in AnyNPU yet. (207000: NotYet)\n")
    assert json.loads(explain(program, "--json", str(log)).stdout)["first_cause"]["cause"] == "simulator-gap"
    log.write_text("RuntimeError: NPU function error: rtCall, error code is 207000\n")
    assert json.loads(explain(program, "--json", str(log)).stdout)["first_cause"]["cause"] == "not-supported"
    assert json.loads(explain(program, "--json", "torch.stft").stdout)["state"] == "native", "the wheel never calls aclStft"


def test_a_foreign_library_is_not_blamed_on_cann(program):
    cause = json.loads(explain(program, "--json", "ImportError: libGL.so.1: cannot open shared object file: No such file or directory").stdout)["first_cause"]
    assert cause["cause"] == "library-foreign"
    assert json.loads(explain(program, "--json", "ImportError: libatb.so: cannot open shared object file").stdout)["first_cause"]["cause"] == "library-missing"


def test_a_folder_of_logs_and_stdin(program, tmp_path):
    (tmp_path / "rank0.log").write_text("2026-11-30 10:30:00 EI0002: wait times out\n")
    (tmp_path / "rank1.log").write_text("2026-11-30 10:00:00 RuntimeError: NPU out of memory. Tried to allocate 2 GiB\n")
    out = json.loads(explain(program, "--json", str(tmp_path)).stdout)
    assert out["first_cause"]["file"].endswith("rank1.log") and out["first_cause"]["cause"] == "device-oom"
    assert "device-oom" in explain(program, "--json", "-", stdin=(tmp_path / "rank1.log").read_text()).stdout


def test_hostile_names_and_unreadable_logs(program, tmp_path):
    (tmp_path / "a\nfirst cause: nothing\x1b[31m|`$(x)`.log").write_bytes(b"\x1b[2J\xff\x00 RuntimeError: NPU out of memory. Tried to allocate 2 GiB\n")
    (tmp_path / "noise.log").write_bytes(os.urandom(100_000))
    (tmp_path / "one line.log").write_bytes(b"x" * 3_000_000)
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "loop.log").symlink_to("loop.log")
    (tmp_path / "nowhere.log").symlink_to("/nowhere/x.log")
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("..")
    done = explain(program, str(tmp_path))
    assert done.returncode == 0 and "NPU out of memory" in done.stdout.splitlines()[0], done.stdout
    assert "\x1b" not in done.stdout and "\x00" not in done.stdout and not any(line.startswith("first cause: nothing") for line in done.stdout.splitlines()), done.stdout
    json.loads(explain(program, "--json", str(tmp_path)).stdout)
    for name in ("loop.log", "nowhere.log", "none.log"):  # told, also beside one that can be read
        done = explain(program, str(tmp_path / "empty.log"), str(tmp_path / name))
        assert done.returncode == 1 and name in done.stderr, (name, done.stderr)
    assert explain(program, str(tmp_path / "pipe.log")).returncode == 1, "a pipe that nobody writes into holds nobody"


def test_a_great_log_takes_constant_memory(program, tmp_path):
    """256 MB with the address space limited; ANYNPU_TEST_FULL=1 takes 1 GB (12 MiB of memory, 17 s beside a load of 20)."""
    blocks = 1075 if os.environ.get("ANYNPU_TEST_FULL") else 256
    block = b"2026-11-30 10:00:00 INFO step 100 loss 0.1234 tokens/s 107002.5 and some more words of a usual line\n" * 10000
    read, write = os.pipe()
    process = subprocess.Popen([program, "explain", "--json", "-"], stdin=read, stdout=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20)))
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        for i in range(blocks):
            pipe.write(block)
            if i == 100:
                pipe.write(b"RuntimeError: error code is 207001\n")
    out = json.loads(process.communicate(timeout=600)[0])
    assert out["first_cause"]["code"] == "207001" and out["bytes"] > blocks * 990_000


def test_operators(program):
    done = explain(program, "torch.nn.functional.gelu")
    assert done.returncode == 0 and "native" in done.stdout and "910B f32,f16,bf16" in done.stdout, done.stdout
    for chip in ("910_93", "310P", "950"):
        assert f" {chip} f" in done.stdout, done.stdout
    acos = json.loads(explain(program, "--json", "torch.acos").stdout)["functions"][0]["dtypes"]["input"]
    assert "bf16" in acos["910_93"] and "bf16" not in acos["910B"], "the A3's own list"
    assert explain(program, "torch.no_such_operator").returncode == 1
    svd = json.loads(explain(program, "--json", "torch.linalg.svd").stdout)
    assert [part["name"] for part in svd["parts"]] == ["_linalg_svd"], svd
    assert explain(program, "torch.fft.rfft").returncode == 0
    assert "each with a kernel of its own" not in explain(program, "torch.linalg.solve").stdout
