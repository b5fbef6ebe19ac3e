"""Worker processes, their jobs and the file of results."""
from __future__ import annotations

import fnmatch
import json
import os
import pathlib
import queue
import random
import select
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
MOST_DEATHS = 12  # of one operator and type; behind them the rest is left out and said to be


class Store:
    """results.jsonl: one line for each operator and type that is done."""

    def __init__(self, folder: pathlib.Path, fresh: bool):
        self.folder, self.path, self.lock = folder, folder / "results.jsonl", threading.Lock()
        if fresh:
            self.path.unlink(missing_ok=True)
        self.seed = next((r["seed"] for r in self.read() if "seed" in r), None)

    def read(self) -> list[dict]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]

    def use_seed(self, seed: int, limit: int) -> None:
        if self.seed is None:
            self.add({"seed": seed, "limit": limit})

    def add(self, row: dict) -> None:
        with self.lock, self.path.open("a") as f:
            f.write(json.dumps(row) + "\n")

    def done(self) -> set[tuple[str, str]]:
        return {(r["op"], r["dtype"]) for r in self.read() if "op" in r}


def database() -> tuple[str, list[tuple[str, list[str]]]]:
    """torch's version, and the operators with their data types."""
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    out = subprocess.run([sys.executable, "-W", "ignore", str(HERE / "database.py")], env=environment, stdout=subprocess.PIPE, check=True).stdout
    torch_version, names = json.loads(out.splitlines()[-1])
    return torch_version, names


def wanted(name: str, only: list[str] | None) -> bool:
    if not only:
        return True
    return any(name.split(".", 1)[0] == o or fnmatch.fnmatchcase(name, o) for o in only)


def run_all(asked, store: Store, dtypes: list[str]) -> None:
    version, known_names = database()
    store.add({"torch": version})
    names = [(n, d) for n, d in known_names if wanted(n, asked.only)]
    if asked.choose:
        names = random.Random(asked.seed).sample(names, min(asked.choose, len(names)))
    done = store.done()
    todo: queue.Queue = queue.Queue()
    for dtype in dtypes:
        for name, known in dict(names).items():
            if dtype in known and (name, dtype) not in done:
                todo.put((name, dtype))
    total, began = todo.qsize(), time.monotonic()

    def serve(slot: int) -> None:
        worker = Worker(store.folder / f"stderr.{slot}", asked)
        while not (asked.budget and time.monotonic() - began > asked.budget):
            try:
                name, dtype = todo.get_nowait()
            except queue.Empty:
                break
            row = worker.job(name, dtype)
            store.add(row)
            line = ", ".join(f"{k} {v}" for k, v in sorted(row["counts"].items()) if v)
            if not asked.quiet or set(row["counts"]) - {"pass", "loose"}:
                print(f"[{total - todo.qsize()}/{total}] {name} {dtype}: {line}", flush=True)
        worker.end()

    threads = [threading.Thread(target=serve, args=(i,)) for i in range(asked.processes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


class Died(Exception):
    pass


class Worker:
    def __init__(self, stderr: pathlib.Path, asked):
        self.stderr, self.asked, self.process = stderr, asked, None

    def start(self) -> None:
        mine, theirs = os.pipe()
        # Without the queue thread an error belongs to the call that made it.
        environment = dict(os.environ, TASK_QUEUE_ENABLE="0", ASCEND_LAUNCH_BLOCKING="1", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")

        def give():
            os.dup2(theirs, 3)
            os.setpgid(0, 0)

        self.process = subprocess.Popen([sys.executable, str(HERE / "worker.py"), str(self.stderr)], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, env=environment, preexec_fn=give, pass_fds=(3, theirs), text=True)
        os.close(theirs)
        self.answers, self.rest = mine, b""
        if "ready" not in self.next(600):
            raise RuntimeError(f"the worker did not start; see {self.stderr}")

    def next(self, seconds: float) -> dict:
        until = time.monotonic() + seconds
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], max(0, until - time.monotonic()))
            if not ready:
                self.kill()
                raise Died(f"hangs: no answer for {seconds:.0f} s")
            data = os.read(self.answers, 65536)
            if not data:
                code = self.process.wait()
                self.process = None
                how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                raise Died(f"{how}: {self.last_words()}")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def last_words(self) -> str:
        try:
            return " ".join(self.stderr.read_text(errors="replace").split())[-300:]
        except OSError:
            return ""

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def end(self) -> None:
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def job(self, name: str, dtype: str) -> dict:
        began = time.monotonic()
        counts: dict[str, int] = {}
        findings: dict[tuple, dict] = {}

        def note(index, kind, status, detail, sample, fallbacks):
            if status in ("pass", "loose") and fallbacks:
                status = "cpu"
                detail = "fell back: " + " ".join(fallbacks)
            counts[status] = counts.get(status, 0) + 1
            if status == "pass":
                return
            key = (status, kind, "".join(c for c in detail if not c.isdigit())[:60])
            found = findings.setdefault(key, {"status": status, "kind": kind, "detail": detail, "sample": sample, "index": index,
                                              "count": 0, "fallbacks": fallbacks})
            found["count"] += 1

        after, deaths = [-1, ""], 0
        while True:
            at = after
            try:
                if self.process is None:
                    self.start()
                job = {"op": name, "dtype": dtype, "seed": self.asked.seed, "limit": self.asked.limit, "after": after,
                       "seconds": self.asked.seconds}
                self.process.stdin.write(json.dumps(job) + "\n")
                self.process.stdin.flush()
                while True:
                    message = self.next(self.asked.hang)
                    if "at" in message:
                        at = message["at"]
                    elif "r" in message:
                        note(*message["r"])
                        at = message["r"][:2]
                    elif "done" in message:
                        break
                break
            except (Died, BrokenPipeError) as e:
                deaths += 1
                note(at[0], at[1], "crash", str(e), "", [])
                if at == after or deaths >= MOST_DEATHS:
                    note(at[0], at[1], "cut", f"given up behind {deaths} crashes", "", [])
                    break
                after = at
        return {"op": name, "dtype": dtype, "counts": counts, "findings": list(findings.values()),
                "seconds": round(time.monotonic() - began, 2)}
