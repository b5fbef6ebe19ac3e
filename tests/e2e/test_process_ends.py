"""A Python process that used a card ends, whichever way it ends: no crash, no hang, the expected code."""
import signal
import textwrap
import time

import pytest

WAYS = {
    "normal": "pass",
    "sys.exit in a thread": "import threading, sys; t = threading.Thread(target=sys.exit); t.start(); t.join()",
    "os._exit": "import os; os._exit(0)",
    "SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    # Any thread may take the signal; Python's main thread learns of it between two of its own steps.
    # A suite that a shell started in the background hands on an ignored SIGINT, so the program asks for Python's own handler.
    "SIGINT": "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)\nfor _ in range(1000): time.sleep(0.01)",
    "call from atexit after finalize": "import atexit; acl = torch_npu.npu; atexit._run_exitfuncs(); torch.npu.device_count()",
    "work still queued": "y = x\nfor _ in range(50): y = y * 1.0001",
}


@pytest.mark.parametrize("way", list(WAYS))
def test_python_process_ends(machine213, way):
    """The limit tells an end from a hang on a busy host; how long an end takes is measured in shim/acl/exit_test.cc."""
    code = f"""
        import os, sys, time
        import torch, torch_npu
        x = torch.ones(1000, device="npu:0")
        (x + x).sum().item()
        print("END", time.monotonic(), flush=True)
    """
    done = machine213.py(textwrap.dedent(code) + WAYS[way] + "\n")
    ended = time.monotonic()
    expected = {"SIGTERM": (-signal.SIGTERM, 128 + signal.SIGTERM), "SIGINT": (-signal.SIGINT, 1, 130)}.get(way, (0,))
    assert done.code in expected, done.tail()
    assert "Segmentation" not in done.err and "core dumped" not in done.err
    took = ended - float(done.out.split("END", 1)[1].split()[0])
    assert took < 300.0, f"{way}: {took:.2f} s from the last statement to the end\n{done.tail()}"
