#!/usr/bin/env python3
"""Checks the #include lines of the rooms against the arrows of docs/architecture.md.

    arrows.py [SOURCE]

Prints each include that no arrow allows, a cycle among the arrows if there is one, and each thread that is not started through
base/os/thread.h. A room may include itself; tests beside
the code (x_test.cc) and benches may include everything. "A B → C D" gives C and D to A and B; "everything" is every room.
"""
from __future__ import annotations

import pathlib
import re
import sys

# Threads of ours block signals: they start through base/os/thread.h, which has the one std::thread(…).
THREAD = re.compile(r"\bstd::j?thread\s*[({]|\bpthread_create\b")
STARTS_THREADS = "base/os/thread.cc"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_arrows(text: str) -> dict[str, set[str]]:
    block = re.search(r"^```arrows\n(.*?)^```", text, re.M | re.S)
    if not block:
        raise SystemExit("docs/architecture.md: no arrows block")
    arrows: dict[str, set[str]] = {}
    for line in block.group(1).splitlines():
        if line.strip():
            left, _, right = line.partition("→")
            for room in left.split():
                arrows.setdefault(room, set()).update(re.sub(r"\(.*", "", right).split())
    return arrows


def find_cycle(arrows: dict[str, set[str]]) -> list[str] | None:
    def walk(room: str, path: list[str]) -> list[str] | None:
        if room in path:
            return path[path.index(room) :] + [room]
        for target in sorted(arrows.get(room, ())):
            cycle = walk(target, path + [room])
            if cycle:
                return cycle
        return None

    return next((c for c in (walk(room, []) for room in sorted(arrows)) if c), None)


def room_of(path: str, rooms: set[str]) -> str | None:
    """The longest room name that is a folder of `path`: tools/launch before tools."""
    parts = path.split("/")
    for length in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[:length])
        if name in rooms:
            return name
    return None


def forbidden(source: pathlib.Path, arrows: dict[str, set[str]]) -> list[str]:
    rooms = set(arrows) | set().union(*arrows.values()) - {"everything"}
    faults = []
    for file in sorted(p for room in rooms for p in (source / room).rglob("*") if p.suffix in (".h", ".cc", ".c", ".inc")):
        name = file.relative_to(source).as_posix()
        room = room_of(name, rooms)
        allowed = arrows.get(room, set())
        if file.stem.endswith(("_test", "_bench")) or "everything" in allowed:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            match = INCLUDE.match(line)
            target = room_of(match.group(1), rooms) if match else None
            if THREAD.search(line) and name != STARTS_THREADS:
                faults.append(f"{name}:{number}: threads start through base/os/thread.h")
            if target and target != room and target not in allowed:
                faults.append(f"{name}:{number}: {room} may not include {target} ({match.group(1)})")
    return faults


def main(source: str = ".") -> int:
    root = pathlib.Path(source)
    arrows = read_arrows((root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    cycle = find_cycle(arrows)
    faults = ([f"cycle: {' → '.join(cycle)}"] if cycle else []) + forbidden(root, arrows)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
