"""Adds up JUnit files of ctest and pytest: a line per room with its time, then the line that closes a run.

    python3 ci/summary.py DIR [EXTRA_FAILURES...]

Each EXTRA_FAILURES names a stage that failed without writing a file (a build, a check); it counts as one failure.
"""
from __future__ import annotations

import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def room_of(file: pathlib.Path, case: ElementTree.Element) -> str:
    """ctest names its tests room.Suite.Test; pytest's file is named after its room, or room--file."""
    return case.get("name", "").split(".")[0] if file.stem.startswith("ctest") else file.stem.split("--")[0]


def outcome_of(case: ElementTree.Element) -> str:
    skipped = case.find("skipped")
    # ctest also says "skipped" of a program that is not there, which is no choice of the test's.
    lost = skipped is not None and "Unable to find executable" in (skipped.get("message") or "")
    if lost or case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    return "skipped" if skipped is not None or case.get("status") in ("notrun", "disabled") else "passed"


def main(directory: str, lost: list[str]) -> int:
    seconds: dict[str, float] = collections.Counter()
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    failures = [f"{stage} (stage)" for stage in lost]
    for file in sorted(pathlib.Path(directory).glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            room = room_of(file, case)
            seconds[room] += float(case.get("time") or 0)
            outcome = outcome_of(case)
            if outcome == "failed":
                failures.append(f"{room}: {case.get('classname', '')} {case.get('name')}")
            counts[room][outcome] += 1
    print(f"\n{'room':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>10}")
    for room in sorted(counts):
        c = counts[room]
        print(f"{room:<16}{c['passed']:>8}{c['failed']:>8}{c['skipped']:>9}{seconds[room]:>10.1f}")
    for failure in failures:
        print(f"FAILED {failure}")
    total = sum(counts.values(), collections.Counter())
    failed = len(failures)
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {failed} failed{skipped}")
    return 1 if failed or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
