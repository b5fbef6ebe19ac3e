"""Runs one operator after the other in a process of its own. Jobs come as JSON lines on standard input, answers leave as
JSON lines on file descriptor 3; what torch and torch_npu print on standard error is read back for the fallback notice."""
from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings


class Stderr:
    """What has been written to standard error since the last look."""

    def __init__(self, path: str):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(self.fd, 2)

    def take(self) -> str:
        size = os.fstat(self.fd).st_size
        if size == 0:
            return ""
        text = os.pread(self.fd, size, 0).decode(errors="replace")
        os.ftruncate(self.fd, 0)
        return text


def main() -> None:
    answers = os.fdopen(3, "w", buffering=1)
    stderr = Stderr(sys.argv[1])
    import torch
    import torch_npu  # noqa: F401

    import chance
    import database
    import runner
    from fallback import Fallbacks
    from samples import title

    torch.set_num_threads(1)
    torch.set_warn_always(True)
    warnings.simplefilter("ignore")
    torch.zeros(1, device="npu").cpu()
    table = {}
    for op in database.operators():
        table.setdefault(title(op), op)
    chance.free_seeds()

    fallbacks = Fallbacks(stderr)

    def say(**message):
        answers.write(json.dumps(message) + "\n")

    say(ready=True)
    for line in sys.stdin:
        job = json.loads(line)
        began = time.monotonic()
        fallbacks.new_job(job["op"] + job["dtype"])
        try:
            run = runner.Runner(table[job["op"]], getattr(torch, job["dtype"]), job["seed"], job["limit"])
        except Exception as e:  # torch cannot make the samples
            say(r=[-1, "samples", "unusable", f"{type(e).__name__}: {str(e)[:300]}", "", []])
            say(done=0)
            continue
        try:
            count, index, kind = 0, -1, ""
            for index, kind, work in run.cases():
                count += 1
                if [index, kind] <= job["after"]:
                    continue
                if time.monotonic() - began > job["seconds"]:
                    say(r=[index, kind, "cut", f"time limit of {job['seconds']} s", "", []])
                    break
                say(at=[index, kind])
                status, detail = work()
                fell = fallbacks.of(work) if status in ("pass", "loose", "wrong") else []
                say(r=[index, kind, status, detail, run.text, fell])
            say(done=count)
        except Exception:  # a fault of this program, which must not look like a result
            say(r=[index, kind, "check", traceback.format_exc()[-400:], run.text, []])
            say(done=0)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
