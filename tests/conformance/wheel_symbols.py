#!/usr/bin/env python3
"""What torch_npu wheels want of our libraries when they are loaded.

    wheel_symbols.py WHEEL... > tests/conformance/wheel_symbols.tsv

Reads the dynamic tables of every object in the given .whl files (binutils' readelf). Rows of the table:

    needs   OBJECT  LIBRARY  RELEASES      the object names this library, which is no part of torch or the system
    symbol  OBJECT  SYMBOL   RELEASES      the object has it undefined (not weak) and only such a library can define it

Symbols of the system carry a version and are skipped; those of Python and torch are told by their names. With `pip download
--no-deps --only-binary=:all: --platform manylinux_2_28_x86_64 --python-version 3.11 torch_npu==VERSION` a wheel is had without
installing it.
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp)\.so|ld-linux|lib(torch|c10)")
# torch, Python and the C++ library itself. What is left of mangled names belongs to ge:: and atb::.
FOREIGN = re.compile(r"^(_?Py|THP|_?thp|aoti_|ParameterClass$|pthread_|dl(open|sym|close|error)$|_Z(?!N?K?(2ge|3atb)))|^(__|_Unwind|_ITM)")


def dynamic(path: pathlib.Path) -> tuple[set[str], set[str], set[str]]:
    """(needed libraries, undefined names without version, defined names)"""
    text = subprocess.run(["readelf", "-W", "-d", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    undefined, defined = set(), set()
    for line in text.splitlines():
        cells = line.split()
        if len(cells) < 8 or not cells[0].rstrip(":").isdigit():
            continue
        bind, index, name = cells[4], cells[6], cells[7]
        if index != "UND":
            defined.add(name.split("@")[0])
        elif bind == "GLOBAL" and "@" not in name:
            undefined.add(name)
    return needed, undefined, defined


def read_wheel(wheel: pathlib.Path) -> tuple[str, dict[tuple[str, str], set[str]]]:
    release = wheel.name.split("-")[1]
    found: dict[tuple[str, str], set[str]] = {}
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if ".so" in pathlib.Path(n).name]
        objects = {pathlib.Path(n).name.split(".")[0]: dynamic(pathlib.Path(archive.extract(n, scratch))) for n in names}
    own_files = {pathlib.Path(n).name for n in names}
    own_symbols = set().union(*(defined for _, _, defined in objects.values()))
    for name, (needed, undefined, _) in objects.items():
        found["needs", name] = {n for n in needed - own_files if not SYSTEM.search(n)}
        found["symbol", name] = {s for s in undefined - own_symbols if not FOREIGN.match(s)}
    return release, found


def version_key(release: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", release)]


def main(wheels: list[str]) -> None:
    releases: dict[tuple[str, str, str], set[str]] = {}
    for wheel in sorted(wheels):
        release, found = read_wheel(pathlib.Path(wheel))
        for (kind, obj), values in found.items():
            for value in values:
                releases.setdefault((kind, obj, value), set()).add(release)
    print("kind\tobject\tname\treleases")
    for (kind, obj, value), seen in sorted(releases.items()):
        print(f"{kind}\t{obj}\t{value}\t{','.join(sorted(seen, key=version_key))}")


if __name__ == "__main__":
    main(sys.argv[1:])
