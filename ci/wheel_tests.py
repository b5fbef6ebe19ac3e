"""Runs the pytest folders of tests/, as many files at a time as there are processors, and prints a line per folder.

    python3 ci/wheel_tests.py RESULTS [--room NAME]... [-k EXPRESSION] [--python PYTHON]

RESULTS gets a JUnit file and the output of each pytest process. Folders in WHOLE are one process each: their files share what
is dear to make, or look back at each other. Everywhere else a file is. Exit status 1: a process left no record.
"""
from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

from summary import outcome_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
WHOLE = {"conformance"}  # its last file asks what the others have called
# Four ranks that train while a Prometheus looks for the slow one: nothing else may slow them.
ALONE = {"monitor/test_live.py"}
# What takes longest begins first, so that the end finds no processor idle.
LONG = ["e2e/test_guide.py", "e2e/test_training.py", "e2e/test_sharded.py", "e2e/test_article_accelerate.py", "pack/test_wheel.py", "conformance"]
HANG_S = 900  # a test that has not ended by then hangs; a machine ten times slower is no hang
LINES_OF_A_FAILURE = 150


class Unit:
    """One pytest process: a file or a folder of tests."""

    def __init__(self, name: str):
        self.name, self.room = name, name.split("/")[0]
        self.stem = name.replace("/", "--").removesuffix(".py")
        self.process: subprocess.Popen | None = None
        self.began = self.seconds = 0.0

    def start(self, results: pathlib.Path, python: str, expression: str | None) -> None:
        self.log, self.record = results / f"{self.stem}.log", results / f"{self.stem}.xml"
        words = [python, "-m", "pytest", f"tests/{self.name}", "-q", "-p", "no:cacheprovider", f"--timeout={HANG_S}", "--tb=short",
                 "-o", "python_files=test_*.py generated.py", "-o", "junit_family=xunit1", f"--junitxml={self.record}"]
        self.began = time.monotonic()
        with open(self.log, "w") as log:
            # A session of its own: a signal to it or from it meets nobody else.
            self.process = subprocess.Popen([*words, *(["-k", expression] if expression else [])], cwd=ROOT, stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def ended(self) -> bool:
        if self.process.poll() is None:
            return False
        self.seconds = time.monotonic() - self.began
        return True

    def counts(self) -> collections.Counter:
        if not self.record.exists():
            return collections.Counter()
        return collections.Counter(outcome_of(case) for case in ElementTree.parse(self.record).getroot().iter("testcase"))

    def left_a_record(self) -> bool:
        # 1: some test failed, which the record tells; 5: the expression chose none.
        return self.process.returncode in (0, 1, 5)

    def failures(self) -> list[str]:
        """What pytest says of its failures, without the progress before it."""
        lines = self.log.read_text(errors="replace").splitlines()
        first = next((i for i, line in enumerate(lines) if re.match(r"=+ (FAILURES|ERRORS) =+$", line)), 0)
        shown = lines[first:]
        return shown if len(shown) <= LINES_OF_A_FAILURE else [*shown[:LINES_OF_A_FAILURE], f"... all of it is in {self.log}"]


def units_of(rooms: list[str]) -> list[Unit]:
    found = []
    for folder in sorted((ROOT / "tests").iterdir()):
        files = sorted(folder.glob("test_*.py"))
        if files and (not rooms or folder.name in rooms):
            found += [folder.name] if folder.name in WHOLE else [f"{folder.name}/{file.name}" for file in files]
    return [Unit(name) for name in sorted(found, key=lambda name: LONG.index(name) if name in LONG else len(LONG))]


def say_room(units: list[Unit]) -> None:
    counts = sum((unit.counts() for unit in units), collections.Counter())
    if not counts:
        return  # the expression chose none
    words = ", ".join(f"{counts[what]} {what}" for what in ("passed", "failed", "skipped") if counts[what] or what == "passed")
    print(f"    {'tests/' + units[0].room:<20} {words:<38} {sum(unit.seconds for unit in units):5.0f} s", flush=True)


def run(units: list[Unit], everything: list[Unit], at_once: int, start) -> None:
    """Runs `units` of `everything`; says of each room how it went as soon as its last process has ended."""
    waiting, running = collections.deque(units), []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(waiting.popleft())
                start(running[-1])
            time.sleep(0.1)
            for unit in [unit for unit in running if unit.ended()]:
                running.remove(unit)
                of_room = [other for other in everything if other.room == unit.room]
                if all(other.seconds for other in of_room):
                    say_room(of_room)
    finally:
        for unit in running:
            os.killpg(unit.process.pid, signal.SIGTERM)
            unit.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--room", action="append", default=[])
    parser.add_argument("-k", dest="expression")
    parser.add_argument("--python", default=sys.executable, help="has the wheels and pytest")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ.setdefault("ANYNPU_SEED", str(random.randrange(1, 1_000_000)))
    print(f"    seed {os.environ['ANYNPU_SEED']} (repeat with ANYNPU_SEED={os.environ['ANYNPU_SEED']})", flush=True)

    units = units_of(words.room)
    start = lambda unit: unit.start(words.results, words.python, words.expression)
    run([unit for unit in units if unit.name not in ALONE], units, len(os.sched_getaffinity(0)), start)
    run([unit for unit in units if unit.name in ALONE], units, 1, start)
    for unit in units:
        if unit.counts()["failed"] or not unit.left_a_record():
            print(f"\n---- tests/{unit.name}", *unit.failures(), sep="\n")
    lost = [unit for unit in units if not unit.left_a_record()]
    for unit in lost:
        print(f"tests/{unit.name} ended with {unit.process.returncode} and without a record")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
