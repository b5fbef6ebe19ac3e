"""abi/dtypes.tsv, abi/combinations.tsv and abi/parity.tsv -> what each chip takes, for parity mode.

  parity/chips.inc   NPU_CHIP_PARAM rows (one a parameter), NPU_CHIP_OP rows (one a function, with its range of parameters) and
                     NPU_CHIP_COMBINATION rows (types that go together)
  parity/limits.inc  NPU_CHIP_LIMIT rows: rule, chip, value

Chips by column: 910b (A2), 910_93 (A3), 310p, 950. Where the page gives another list for A3 it stands in the remarks; what the host code
of the functions accepts or refuses beyond the page ("host code 910b: +x -y") decides, as abi/operators.md says.
"""
from __future__ import annotations

import pathlib
import re
import sys

from tables import TableError, read_table, write_if_changed

TYPES = {"f32": 0, "f16": 1, "i8": 2, "i32": 3, "u8": 4, "i16": 6, "u16": 7, "u32": 8, "i64": 9, "u64": 10, "f64": 11, "bool": 12, "c64": 16,
         "c128": 17, "bf16": 27, "c32": 33}
# Types of a page that no operator here computes with.
OTHER_TYPES = {"i4", "u1", "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2"}
CHIPS = ["910b", "910_93", "310p", "950"]
ON = {"yes": 1, "no": 2, "": 0}
NONE, ANY_RANK = 0xFF, 0
# Wishes of a page of which nobody knows whether a card enforces them.
CONTIGUOUS, NOT_EMPTY = 1, 2
MOST_TOGETHER, MOST_COMBINATIONS = 6, 8


def bits(words: list[str], where: str) -> int:
    value = 0
    for word in words:
        if word in TYPES:
            value |= 1 << TYPES[word]
        elif word not in OTHER_TYPES and word != "none" and not word.startswith("="):
            raise TableError(f"{where}: unknown type {word!r}")
    return value


def split(cell: str) -> list[str]:
    return [w for w in cell.split(",") if w]


def remark(other: str, prefix: str) -> str:
    for part in other.split(";"):
        if part.strip().startswith(prefix):
            return part.strip()[len(prefix):].strip()
    return ""


def with_code(types: int, delta: str, where: str) -> int:
    """Applies '+bf16,+bool -c32' or a plain list (where the page has none)."""
    for word in re.split(r"[ ,]+", delta):
        if not word or word == "agrees" or word.startswith("="):
            continue
        if word[0] == "+":
            types |= bits([word[1:]], where)
        elif word[0] == "-":
            types &= ~bits([word[1:]], where)
        else:
            types |= bits([word], where)
    return types


def rank_bits(cell: str) -> int:
    """Bit r: rank r is taken. 0 when nothing is said or it follows another parameter."""
    value = 0
    for part in cell.split(","):
        part = part.strip()
        match = re.fullmatch(r"(\d+)(?:-(\d+))?|<=(\d+)", part)
        if not match:
            return ANY_RANK
        low, high = (0, int(match[3])) if match[3] else (int(match[1]), int(match[2] or match[1]))
        for rank in range(low, min(high, 15) + 1):
            value |= 1 << rank
    return value


def names_of(signature: str) -> list[str]:
    return [entry.split()[-1] for entry in signature.split(", ") if entry]


def wishes(words: list[str]) -> int:
    return (CONTIGUOUS if "non-contig no" in words or "contig only" in words else 0) | (NOT_EMPTY if "empty no" in words else 0)


def combinations_of(path: str, signatures: dict[str, list[str]]) -> dict[str, list[str]]:
    """Function -> its rows: chips, parameters by index, combinations of their types."""
    found: dict[str, list[str]] = {}
    for row in read_table(path, ["name", "parameters", "chips", "combinations", "source", "date"]):
        where, own = f"{path}:{row['_line']}", signatures.get(row["name"], [])
        parameters, chips = split(row["parameters"]), split(row["chips"])
        lines = [c.split(":") for c in split(row["combinations"])]
        if not own or any(p not in own for p in parameters) or any(c not in CHIPS for c in chips):
            raise TableError(f"{where}: no such function, parameter or chip")
        if len(parameters) > MOST_TOGETHER or not 0 < len(lines) <= MOST_COMBINATIONS or any(len(c) != len(parameters) for c in lines):
            raise TableError(f"{where}: {len(lines)} combinations of {len(parameters)} parameters")
        if not row["source"] or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", row["date"]):
            raise TableError(f"{where}: a fact needs a source and a date")
        for word in {w for c in lines for w in c}:
            bits([word], where)
        types = ", ".join("{" + ", ".join(str(TYPES[w]) for w in c) + "}" for c in lines)
        mask = sum(1 << CHIPS.index(c) for c in chips)
        indexes = "{" + ", ".join(str(own.index(p)) for p in parameters) + "}"
        found.setdefault(row["name"], []).append(f'NPU_CHIP_COMBINATION(({{"{row["name"]}", {mask}, {len(parameters)}, {len(lines)}, {indexes}, {{{types}}}, '
                                                 f'"{row["source"]}"}}))\n')
    return found


def chips_of(dtypes: str, aclnn: str, combinations: str) -> str:
    signatures = {r["name"]: names_of(r["signature"]) for r in read_table(aclnn, ["name", "signature"])}
    together = combinations_of(combinations, signatures)
    depending: set[str] = set()  # functions of which the pages say more about types than the lists do
    functions: dict[str, dict[str, str]] = {}
    parameters: dict[str, list[str]] = {}
    for row in read_table(dtypes, ["name", "parameter", "dtypes_910b", "dtypes_310p", "dtypes_950", "rank_limit", "other", "source"]):
        where, name, other = f"{dtypes}:{row['_line']}", row["name"], row["other"]
        if "conditional type rules" in other or "type combinations in the" in other:
            depending.add(name)
        if row["parameter"] == "*":
            functions[name] = row
            continue
        words = re.split(r"; *", other)
        if "scalar" in words or "scalarlist" in words or row["parameter"] not in signatures.get(name, []):
            continue  # torch passes numbers as double, int64 or bool whatever the operator wants
        own = signatures[name]
        role = "out" if "out" in words else "inout" if "inout" in words else "in"
        a2 = split(row["dtypes_910b"])
        a3_page = remark(other, "A3 differs:") or remark(other, "A3:")
        a3 = split(a3_page.replace(" ", "")) if a3_page and all(w in TYPES or w in OTHER_TYPES for w in split(a3_page.replace(" ", ""))) else a2
        lists = [a2, a3, split(row["dtypes_310p"]), split(row["dtypes_950"])]
        masks, same = [], []
        for chip, listed in zip(CHIPS, lists):
            delta = remark(other, "host code 950:" if chip == "950" else "host code 910b:") if chip != "310p" else ""
            mask = bits(listed, where)
            # Without a list of the page a plain list of the code stands for it; signs alone say nothing then.
            masks.append(with_code(mask, delta, where) if mask or (delta and delta[0] not in "+-=") else 0)
            equal = [w[1:] for w in listed if w.startswith("=") and w[1:] in own]
            same.append(own.index(equal[0]) if equal and role == "in" else NONE)
        cells = ", ".join([str(own.index(row["parameter"])), *(f"{m:#x}" for m in masks), *(str(s) for s in same),
                           f"{rank_bits(row['rank_limit']):#x}", str(wishes(words))])
        parameters.setdefault(name, []).append(f"NPU_CHIP_PARAM({cells})  // {name} {row['parameter']}\n")
    lines, ops, first = [], [], 0
    for name in sorted(functions):
        row, mine = functions[name], parameters.get(name, [])
        lines += mine
        # Pages of 2026 leave the 310P out of functions that users run there (aclnnAdd among them): its "no" says nothing.
        on = [ON.get(row["dtypes_910b"], 0)] * 2 + [1 if row["dtypes_310p"] == "yes" else 0, ON.get(row["dtypes_950"], 0)]
        source = row["source"].split("; code")[0].replace('"', "'")
        more = int(name in depending and name not in together)
        ops.append(f'NPU_CHIP_OP("{name}", {first}, {len(mine)}, {on[0]}, {on[1]}, {on[2]}, {on[3]}, {more}, "{source}")\n')
        first += len(mine)
    rows = [line for name in sorted(together) for line in together[name]]
    return ("// Generated by gen/parity.py from abi/dtypes.tsv and abi/combinations.tsv.\n#ifdef NPU_CHIP_PARAM\n" + "".join(lines)
            + "#endif\n#ifdef NPU_CHIP_OP\n" + "".join(ops) + "#endif\n#ifdef NPU_CHIP_COMBINATION\n" + "".join(rows) + "#endif\n")


def limits_of(parity: str) -> str:
    lines = []
    for row in read_table(parity, ["rule", "chips", "value", "state", "meaning", "source", "date"]):
        where = f"{parity}:{row['_line']}"
        if row["state"] not in ("checked", "doubtful", "unknown", "unreachable", "always"):
            raise TableError(f"{where}: state is {row['state']!r}")
        if not row["source"] or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", row["date"]):
            raise TableError(f"{where}: a fact needs a source and a date")
        if row["state"] == "checked" and row["value"].isdigit():
            for chip in row["chips"].split(","):
                if chip not in CHIPS:
                    raise TableError(f"{where}: unknown chip {chip!r}")
                lines.append(f'NPU_CHIP_LIMIT("{row["rule"]}", {CHIPS.index(chip)}, {row["value"]}, "{row["source"]}, {row["date"]}")\n')
    return "// Generated by gen/parity.py from abi/parity.tsv.\n" + "".join(lines)


def main(dtypes: str, aclnn: str, combinations: str, parity: str, out_dir: str) -> None:
    out = pathlib.Path(out_dir) / "parity"
    write_if_changed(out / "chips.inc", chips_of(dtypes, aclnn, combinations))
    write_if_changed(out / "limits.inc", limits_of(parity))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except TableError as error:
        sys.exit(str(error))
