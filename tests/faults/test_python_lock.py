"""Functions of the client want Python's lock; a thread that synchronises must never stand in their way."""
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import uuid


# ctypes takes the lock for the callback and lets go of it for the call that synchronises, as torch_npu does.
PROGRAM = """
    import ctypes, random, sys, threading
    acl = ctypes.CDLL(sys.argv[1] + "/lib64/libascendcl.so")
    seed = random.randrange(1 << 30)
    print("seed", seed)
    random.seed(seed)
    def ok(code):
        assert code == 0, code
    def pointer():
        return ctypes.c_void_p()
    ok(acl.aclrtSetDevice(0))
    streams = [pointer() for _ in range(3)]
    for s in streams:
        ok(acl.aclrtCreateStream(ctypes.byref(s)))
    block = pointer()
    ok(acl.aclrtMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20), 0))
    called, expected = [], 0
    lock = threading.Lock()
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def function(data):
        with lock:
            called.append(data)
            sum(range(random.randrange(2000)))
    # A thread that serves callbacks, as torch_npu's does.
    context, ready, stop = pointer(), threading.Event(), threading.Event()
    ok(acl.aclrtGetCurrentContext(ctypes.byref(context)))
    ids = []
    def serve():
        ok(acl.aclrtSetCurrentContext(context))
        ids.append(threading.get_native_id())
        ready.set()
        while not stop.is_set():
            acl.aclrtProcessReport(20)
    server = threading.Thread(target=serve)
    server.start()
    ready.wait()
    ok(acl.aclrtSubscribeReport(ctypes.c_uint64(ids[0]), streams[2]))
    busy = threading.Thread(target=lambda: [sum(range(3000)) for _ in iter(stop.is_set, True)])
    busy.start()
    for round in range(200):
        for _ in range(random.randrange(1, 4)):
            s = random.choice(streams)
            ok(acl.aclrtMemsetAsync(block, ctypes.c_size_t(1 << 20), 1, ctypes.c_size_t(random.randrange(1, 1 << 20)), s))
            if s is streams[2]:
                ok(acl.aclrtLaunchCallback(function, ctypes.c_void_p(round + 1), random.randrange(2), s))
            else:
                ok(acl.aclrtLaunchHostFunc(s, function, ctypes.c_void_p(round + 1)))
            expected += 1
        if random.random() < 0.5:
            ok(acl.aclrtSynchronizeDevice())
        else:
            for s in streams:
                ok(acl.aclrtSynchronizeStream(s))
    ok(acl.aclrtUnSubscribeReport(ctypes.c_uint64(ids[0]), streams[2]))
    stop.set()
    server.join()
    busy.join()
    assert len(called) == expected, (len(called), expected)
    print("called", expected)
"""


def test_a_callback_takes_the_lock_while_the_main_thread_synchronises(tree):
    environment = os.environ | {"ANYNPU_MACHINE": "t" + uuid.uuid4().hex[:8]}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), str(tree)], env=environment, capture_output=True, text=True,
                          timeout=100)  # the end of a hang
    assert done.returncode == 0 and "called" in done.stdout, done.stdout + done.stderr
