"""Tables of mangled names -> one version script a library.

usage: cxx_exports.py ABI_DIR OUT_DIR
"""
from __future__ import annotations

import pathlib
import sys

from tables import read_table, write_if_changed

TABLES = ["ge", "atb"]


def main(abi_dir: str, out_dir: str) -> None:
    names: dict[str, set[str]] = {}
    for table in TABLES:
        for row in read_table(pathlib.Path(abi_dir) / f"{table}.tsv", ["mangled", "library"]):
            names.setdefault(row["library"], set()).add(row["mangled"])
    for library, symbols in names.items():
        lines = "".join(f"    {s};\n" for s in sorted(symbols))
        write_if_changed(pathlib.Path(out_dir) / f"{library}.map", f"{{\n  global:\n{lines}  local: *;\n}};\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
