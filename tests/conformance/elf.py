"""Dynamic tables of shared objects, read with binutils."""
from __future__ import annotations

import functools
import pathlib
import re
import subprocess


@functools.lru_cache(maxsize=None)
def dynamic(path: pathlib.Path) -> dict:
    text = subprocess.run(["readelf", "-W", "-d", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    exports, undefined = set(), set()
    for line in text.splitlines():
        cells = line.split()
        if len(cells) < 8 or not cells[0].rstrip(":").isdigit():
            continue
        name = cells[7].split("@")[0]
        if cells[6] == "UND":
            undefined.add(name)
        elif cells[4] in ("GLOBAL", "WEAK"):
            exports.add(name)
    return {
        "needs": re.findall(r"\(NEEDED\).*\[(.*)\]", text),
        "soname": "".join(re.findall(r"\(SONAME\).*\[(.*)\]", text)),
        "runpath": "".join(re.findall(r"\(RUNPATH\).*\[(.*)\]", text)),
        "exports": exports,
        "undefined": undefined,
    }


def closure(lib64: pathlib.Path, names: list[str]) -> list[pathlib.Path]:
    """The libraries of the tree that are loaded with `names`, in look-up order."""
    found: list[pathlib.Path] = []
    queue = list(names)
    while queue:
        path = lib64 / queue.pop(0)
        if path.exists() and path not in found:
            found.append(path)
            queue += dynamic(path)["needs"]
    return found
