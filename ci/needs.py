"""Prints the code of each room, and the highest glibc and libstdc++ versions that each library and program of an install tree wants.

    python3 ci/needs.py build/release/tree
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import sys


def highest(text: str, family: str) -> str:
    versions = {tuple(map(int, v.split("."))) for v in re.findall(rf"\b{family}_(\d+(?:\.\d+)*)", text)}
    return ".".join(map(str, max(versions))) if versions else "-"


def print_rooms(build: pathlib.Path) -> None:
    """Code and constants of the objects that go into libraries, without debug information."""
    print(f"{'room':<36}{'objects':>8}{'KiB':>8}")
    for folder in sorted(build.glob("**/CMakeFiles/npu_*.dir")) + sorted(build.glob("**/CMakeFiles/lib_*.dir")):
        objects = [str(f) for f in folder.rglob("*.o")]
        if objects:
            total = subprocess.run(["size", "-t", *objects], capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
            print(f"{folder.name.split('.')[0].removeprefix('npu_'):<36}{len(objects):>8}{(int(total[0]) + int(total[1])) // 1024:>8}")


def main(tree: str) -> None:
    print_rooms(pathlib.Path(tree).resolve().parent)
    files = [f for f in sorted(pathlib.Path(tree).rglob("*")) if f.is_file() and f.open("rb").read(4) == b"\x7fELF"]
    print(f"{'file':<36}{'GLIBC':>8}{'GLIBCXX':>10}{'CXXABI':>10}{'KiB':>8}")
    for file in files:
        text = subprocess.run(["readelf", "-V", "--wide", str(file)], capture_output=True, text=True, check=True).stdout
        text = text[text.find("Version needs"):]
        row = [highest(text, family) for family in ("GLIBC", "GLIBCXX", "CXXABI")]
        print(f"{str(file.relative_to(tree)):<36}{row[0]:>8}{row[1]:>10}{row[2]:>10}{file.stat().st_size // 1024:>8}")


if __name__ == "__main__":
    main(sys.argv[1])
