"""abi/dtypes.tsv and abi/parity.tsv -> what each chip takes, for parity mode.

  parity/chips.inc   NPU_CHIP_PARAM rows (one a parameter) and NPU_CHIP_OP rows (one a function, with its range of parameters)
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


def chips_of(dtypes: str, aclnn: str) -> str:
    signatures = {r["name"]: names_of(r["signature"]) for r in read_table(aclnn, ["name", "signature"])}
    functions: dict[str, dict[str, str]] = {}
    parameters: dict[str, list[str]] = {}
    for row in read_table(dtypes, ["name", "parameter", "dtypes_910b", "dtypes_310p", "dtypes_950", "rank_limit", "other", "source"]):
        where, name, other = f"{dtypes}:{row['_line']}", row["name"], row["other"]
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
                           f"{rank_bits(row['rank_limit']):#x}"])
        parameters.setdefault(name, []).append(f"NPU_CHIP_PARAM({cells})  // {name} {row['parameter']}\n")
    lines, ops, first = [], [], 0
    for name in sorted(functions):
        row, mine = functions[name], parameters.get(name, [])
        lines += mine
        # Pages of 2026 leave the 310P out of functions that users run there (aclnnAdd among them): its "no" says nothing.
        on = [ON.get(row["dtypes_910b"], 0)] * 2 + [1 if row["dtypes_310p"] == "yes" else 0, ON.get(row["dtypes_950"], 0)]
        source = row["source"].split("; code")[0].replace('"', "'")
        ops.append(f'NPU_CHIP_OP("{name}", {first}, {len(mine)}, {on[0]}, {on[1]}, {on[2]}, {on[3]}, "{source}")\n')
        first += len(mine)
    return ("// Generated by gen/parity.py from abi/dtypes.tsv.\n#ifdef NPU_CHIP_PARAM\n" + "".join(lines) + "#endif\n#ifdef NPU_CHIP_OP\n"
            + "".join(ops) + "#endif\n")


def limits_of(parity: str) -> str:
    lines = []
    for row in read_table(parity, ["rule", "chips", "value", "state", "meaning", "source", "date"]):
        where = f"{parity}:{row['_line']}"
        if row["state"] not in ("checked", "unknown", "unreachable", "always"):
            raise TableError(f"{where}: state is {row['state']!r}")
        if not row["source"] or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", row["date"]):
            raise TableError(f"{where}: a fact needs a source and a date")
        if row["state"] == "checked" and row["value"].isdigit():
            for chip in row["chips"].split(","):
                if chip not in CHIPS:
                    raise TableError(f"{where}: unknown chip {chip!r}")
                lines.append(f'NPU_CHIP_LIMIT("{row["rule"]}", {CHIPS.index(chip)}, {row["value"]}, "{row["source"]}, {row["date"]}")\n')
    return "// Generated by gen/parity.py from abi/parity.tsv.\n" + "".join(lines)


def main(dtypes: str, aclnn: str, parity: str, out_dir: str) -> None:
    out = pathlib.Path(out_dir) / "parity"
    write_if_changed(out / "chips.inc", chips_of(dtypes, aclnn))
    write_if_changed(out / "limits.inc", limits_of(parity))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except TableError as error:
        sys.exit(str(error))
