"""The types that operators take against those that a 910B takes (abi/dtypes.tsv): nothing that the card takes is refused here, but for
the gaps that type_gaps.tsv names.

For each operator that is tested from its definition and each type, all tensors whose list holds the type get it, in a call that is good
otherwise; outputs are tried with every type of their lists. Run as a program it writes the table anew.
"""
from __future__ import annotations

import itertools
import pathlib
import re
import sys

import pytest
import torch

import driver
import generated

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "gen"))
import parity as table  # noqa: E402
from tables import read_table, write_if_changed  # noqa: E402

GAPS = pathlib.Path(__file__).with_name("type_gaps.tsv")
TORCH = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
         "i64": torch.int64, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "bool": torch.bool, "c64": torch.complex64,
         "c128": torch.complex128}
WORDS = {dtype: word for word, dtype in TORCH.items()}


def card_types() -> dict[str, dict[str, set[str]]]:
    """Function -> parameter -> types on a 910B, with what the host code says beyond the page."""
    found: dict[str, dict[str, set[str]]] = {}
    supported = set()
    for row in read_table(ROOT / "abi" / "dtypes.tsv", ["name", "parameter", "dtypes_910b", "other"]):
        if row["parameter"] == "*":
            if row["dtypes_910b"] == "yes":
                supported.add(row["name"])
            continue
        words = [w for w in table.split(row["dtypes_910b"]) if w in TORCH]
        mask = table.with_code(table.bits(words, row["name"]), table.remark(row["other"], "host code 910b:"), row["name"]) if words else 0
        found.setdefault(row["name"], {})[row["parameter"]] = {w for w in TORCH if mask >> table.TYPES[w] & 1}
    return {name: found[name] for name in supported if name in found}


CARD = card_types()
TESTED = [name for name in generated.GENERATED if name in CARD]


def gaps_of_the_table() -> dict[str, set[str]]:
    return {row["name"]: set(row["types"].split(",")) for row in read_table(GAPS, ["name", "types", "reason"])} if GAPS.exists() else {}


def cast(value, dtype):
    """Small whole numbers of the type: every operator takes them."""
    if isinstance(value, list):
        return [cast(v, dtype) for v in value]
    ones = torch.ones(value.shape, dtype=torch.int32)
    return ones.to(dtype) if dtype != torch.bool else ones.bool()


def is_taken(op: dict, word: str) -> tuple[bool, str]:
    """Whether some call with this type is taken, and the first refusal."""
    lists, why = CARD[op["name"]], ""
    tensors = [p for p in op["params"] if p["kind"] in ("tensor", "tensorlist")]
    chosen = [p["name"] for p in tensors if p["role"] != "out" and word in lists.get(p["name"], ())]
    outputs = [p["name"] for p in tensors if p["role"] == "out"]
    typed = bool(outputs) or any(p["kind"] == "dtype" for p in op["params"])
    results = list(dict.fromkeys([word, "bool", "f32", "i64", "i32", "f64", "c64"])) if typed else [word]
    # How a quotient is rounded decides whether it is an integer, which matters where it must fit into the first operand.
    modes = [0, 1, 2] if any(p["name"] == "mode" and p["kind"] == "int32" for p in op["params"]) else [None]
    for result, mode in itertools.product(results, modes):
        case = generated.good_case(op)
        if mode is not None:
            case.values["mode"] = mode
        for name in chosen:
            if case.values.get(name) is not None:
                case.values[name] = cast(case.values[name], TORCH[word])
        for name in outputs:
            listed = lists.get(name, set())
            if case.values.get(name) is not None and (result in listed or not listed):
                case.values[name] = cast(case.values[name], TORCH[result])
        for p in op["params"]:
            if p["kind"] == "dtype":
                case.values[p["name"]] = TORCH[result]
            elif p["kind"] in ("scalar", "scalarlist") and p["name"] in case.values and case.values[p["name"]] is not None:
                case.values[p["name"]] = [1] * len(case.values[p["name"]]) if p["kind"] == "scalarlist" else 1
        call = generated.execute(case)
        try:
            call.run_once()
            return True, ""
        except driver.CallFailed as failure:
            why = why or failure.text
        finally:
            call.close()
    return False, why


def gaps_of(name: str) -> tuple[set[str], str]:
    op, gaps, reason = generated.OPERATORS[name], set(), ""
    inputs = [p["name"] for p in op["params"] if p["kind"] in ("tensor", "tensorlist") and p["role"] != "out"]
    for word in sorted(set().union(*(CARD[name].get(p, set()) for p in inputs)) if inputs else set()):
        taken, why = is_taken(op, word)
        if not taken:
            gaps.add(word)
            reason = reason or why
    return gaps, reason


@pytest.mark.parametrize("name", TESTED)
def test_takes_what_the_card_takes(name):
    gaps, reason = gaps_of(name)
    known = gaps_of_the_table().get(name, set())
    assert not gaps - known, f"{name} refuses {sorted(gaps - known)}, which a 910B takes: {reason}"
    assert not known - gaps, f"{name} takes {sorted(known - gaps)} now: take it out of {GAPS.name}"


def write_the_table():
    lines = []
    for name in TESTED:
        gaps, reason = gaps_of(name)
        if gaps:
            told = re.search(r"\[AnyNPU\] (.*)", reason)
            lines.append(f"{name}\t{','.join(sorted(gaps))}\t{(told[1] if told else reason)[:160]}\n")
    write_if_changed(GAPS, "name\ttypes\treason\n" + "".join(lines))


if __name__ == "__main__":
    write_the_table()
