"""The tables of tools/doctor/data, and what operators are, -> gen/doctor/data.cc: one text a table, parsed when it is first asked for.

    doctor.py DATA_FOLDER ABI_FOLDER OPS_FOLDER OUT_FOLDER

Every table is checked here, so that a program never meets a row without a cause, a source or a date.
"""
from __future__ import annotations

import pathlib
import re
import sys

from tables import TableError, read_table, write_if_changed

BILINGUAL_CAUSE = ["why_en", "next_en", "why_zh", "next_zh"]
# table -> (columns, columns that make a row unique, columns that may be empty)
TABLES = {
    "causes": (["key", "kind", *BILINGUAL_CAUSE, "source", "date"], ["key"], []),
    "codes": (["family", "code", "name", "cause", "what_en", "what_zh", "source", "date"], ["family", "code", "name"], []),
    "texts": (["pattern", "cause", "what_en", "what_zh", "source", "date"], ["pattern"], []),
    "families": (["prefix", "part_en", "part_zh", "cause", "source", "date"], ["prefix"], []),
    "err_modules": (["code", "name", "part_en", "part_zh", "source", "date"], ["code"], []),
    "err_codes": (["code", "cause", "what_en", "what_zh", "source", "date"], ["code"], []),
    "aliases": (["name", "operators", "source", "date"], ["name"], []),
    "torch_operators": (["namespace", "name", "kernel", "source", "date"], ["namespace", "name"], []),
    "matrix": (["torch_npu", "torch", "cann", "source", "date"], ["torch_npu"], []),
    "pythons": (["torch", "pythons", "source", "date"], ["torch"], []),
    "hdk": (["cann", "drivers", "source", "date"], ["cann"], []),
    "settings": (["name", "kind", "lowest", "highest", "values", "meaning", "source", "date"], ["name"], ["lowest", "highest", "values"]),
}
KINDS = {"root", "fault", "echo", "shell", "note"}
DATE = re.compile(r"^20\d\d-\d\d-\d\d$")
OPERATOR = re.compile(r"^\s*NPU_OP\((\w+)\)", re.M)
CHUNK = 8000  # characters of one string literal; compilers limit their length


def check(name: str, path: pathlib.Path, rows: list[dict[str, str]], columns: list[str], unique: list[str], optional: list[str]) -> None:
    seen: dict[tuple[str, ...], str] = {}
    for row in rows:
        where = f"{path}:{row['_line']}"
        for column in columns:
            if not row[column] and column not in optional:
                raise TableError(f"{where}: {column} is empty")
        if not DATE.match(row["date"]):
            raise TableError(f"{where}: date {row['date']!r} is not YYYY-MM-DD")
        key = tuple(row[c] for c in unique)
        if key in seen:
            raise TableError(f"{where}: {' '.join(key)} stands already in line {seen[key]}")
        seen[key] = row["_line"]
        if name == "causes" and row["kind"] not in KINDS:
            raise TableError(f"{where}: kind {row['kind']!r}; known are {sorted(KINDS)}")


def literal(text: str) -> str:
    """C++ string literals, as raw bytes; escaped so that any compiler takes them."""
    out = []
    for at in range(0, len(text), CHUNK):
        piece = text[at : at + CHUNK].replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("?", "\\?")
        out.append('    "' + piece.replace("\n", '\\n"\n    "') + '"')
    return "\n".join(out)


def operators(abi: pathlib.Path, ops: pathlib.Path) -> tuple[str, str]:
    """Two texts: one line a two-phase function (name, whether it is defined here, tier, torch names), and its parameters' types."""
    defined = {name for source in sorted(ops.rglob("*.cc")) for name in OPERATOR.findall(source.read_text(encoding="utf-8"))}
    functions = ["name\tdefined\ttier\ttorch"]
    for row in read_table(abi / "aclnn.tsv", ["name", "torch", "tier"]):
        here = "yes" if re.sub(r"^aclnn", "", row["name"]) in defined else "no"
        # What the wheel does not name it cannot call: such a function says nothing about what becomes of torch's operator.
        torch = "" if "not named in the 2.13.0 wheel" in (row["note"] or "") else row["torch"]
        functions.append(f"{row['name']}\t{here}\t{row['tier']}\t{torch}")
    types = ["name\tparameter\tdtypes_910b\tdtypes_a3\tdtypes_310p\tdtypes_950"]
    for row in read_table(abi / "dtypes.tsv", ["name", "parameter", "dtypes_910b", "dtypes_310p", "dtypes_950", "other"]):
        other = re.search(r"(?:^|; )A3(?: differs)?: ([\w,=]+)", row["other"])  # else the A2's list holds for both
        types.append("\t".join([row["name"], row["parameter"], row["dtypes_910b"], other[1] if other else row["dtypes_910b"], row["dtypes_310p"], row["dtypes_950"]]))
    return "\n".join(functions) + "\n", "\n".join(types) + "\n"


def main(data: str, abi: str, ops: str, out: str) -> None:
    texts: dict[str, str] = {}
    causes: set[str] = set()
    for name, (columns, unique, optional) in TABLES.items():
        path = pathlib.Path(data) / f"{name}.tsv"
        rows = read_table(path, columns)
        check(name, path, rows, columns, unique, optional)
        if name == "causes":
            causes = {row["key"] for row in rows}
        elif "cause" in columns:
            for row in rows:
                if row["cause"] not in causes:
                    raise TableError(f"{path}:{row['_line']}: no cause {row['cause']!r} in causes.tsv")
        texts[name] = path.read_text(encoding="utf-8")
    texts["functions"], texts["dtypes"] = operators(pathlib.Path(abi), pathlib.Path(ops))
    body = "".join(f"const std::string_view {name} =\n{literal(text)};\n" for name, text in texts.items())
    write_if_changed(
        pathlib.Path(out) / "data.cc",
        "// Generated by gen/doctor.py from tools/doctor/data, abi/aclnn.tsv, abi/dtypes.tsv and the NPU_OP( lines of ops/.\n"
        f'#include "tools/doctor/data.h"\n\nnamespace npu::doctor::data {{\n{body}}}  // namespace npu::doctor::data\n',
    )


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except TableError as fault:
        sys.exit(str(fault))
