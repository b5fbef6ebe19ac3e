"""C prototypes as the tables write them, taken apart: what the generators of headers and entries share."""
from __future__ import annotations

import dataclasses
import pathlib
import re

from tables import TableError, read_table

FUNCTION_TABLES = ["acl", "hccl", "dcmi", "tdt", "profiling", "csec"]
STATES = ["works", "NotYet", "Unsupported", "absent"]

# Return types that are a status, and the function that turns our code into their number.
STATUS_TYPES = {
    "aclError": "AclCode",
    "aclnnStatus": "NnCode",
    "HcclResult": "HcclCode",
    "HcommResult": "HcclCode",
    "drvError_t": "AclCode",
}


@dataclasses.dataclass
class Function:
    name: str
    returns: str
    params: str  # as in C, "" when there are none
    arguments: list[str]  # names of the parameters
    variadic: bool
    library: str
    header: str
    state: str  # one of STATES
    why: str  # reason, for Unsupported
    place: str  # file and line of the row, for messages

    @property
    def status(self) -> str | None:
        """Name of the function that translates our code, None when the function returns something else."""
        if self.returns in STATUS_TYPES:
            return STATUS_TYPES[self.returns]
        if self.returns == "int" and self.library == "libdcmi.so":
            return "DcmiCode"
        if self.returns == "int32_t" and self.library in ("libruntime.so", "libprofapi.so", "libascend_ml.so"):
            return "AclCode"
        return None


def split_params(text: str) -> list[str]:
    """Splits at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts


def parse(prototype: str, place: str) -> tuple[str, str, str, list[str], bool]:
    """(name, return type, parameters, argument names, variadic)"""
    m = re.fullmatch(r"(.*?)\b(\w+)\((.*)\)", prototype)
    if not m:
        raise TableError(f"{place}: not a prototype: {prototype!r}")
    returns, name, params = m.group(1).strip(), m.group(2), m.group(3).strip()
    if params in ("", "void"):
        return name, returns, "", [], False
    parts, names = split_params(params), []
    variadic = parts[-1] == "..."
    for i, part in enumerate(parts[:-1] if variadic else parts):
        callback = re.fullmatch(r"(.*)\(\*\s*(const)?\)\((.*)\) (\w+)", part)  # "int (*const)(int) f" -> C
        if callback:
            parts[i] = f"{callback[1]}(*{'const ' if callback[2] else ''}{callback[4]})({callback[3]})"
            names.append(callback[4])
            continue
        last = re.search(r"(\w+)(\[[^\]]*\])*$", part)
        if not last:
            raise TableError(f"{place}: parameter without a name: {part!r}")
        names.append(last.group(1))
    return name, returns, ", ".join(parts), names, variadic


def read_functions(abi: pathlib.Path, tables: list[str] = FUNCTION_TABLES) -> list[Function]:
    functions: list[Function] = []
    seen: dict[str, str] = {}
    for table in tables:
        path = abi / f"{table}.tsv"
        for row in read_table(path, ["name", "library", "prototype", "state", "header"]):
            place = f"{path.name}:{row['_line']}"
            state, _, why = row["state"].partition(":")
            if state not in STATES:
                raise TableError(f"{place}: unknown state {row['state']!r} for {row['name']}; use one of {STATES}")
            name, returns, params, arguments, variadic = parse(row["prototype"], place)
            if name != row["name"]:
                raise TableError(f"{place}: the prototype of {row['name']} declares {name}")
            if name in seen:
                raise TableError(f"{place}: {name} stands also in {seen[name]}")
            seen[name] = place
            functions.append(
                Function(name, returns, params, arguments, variadic, row["library"], row["header"], state, why.strip(), place)
            )
    return functions
