"""Type and function tables -> the public C headers of an install tree, and a C source that asserts every layout.

usage: headers.py ABI_DIR INCLUDE_DIR ASSERT_FILE
"""
from __future__ import annotations

import collections
import pathlib
import re
import sys

from prototypes import read_functions, split_params
from tables import TableError, read_table, write_if_changed

NOTE = "/* AnyNPU: interface of the software Ascend NPU. Generated from the tables of abi/; Apache-2.0. */\n"

# What a header includes; its own folder counts from the include directory.
INCLUDES = collections.defaultdict(
    lambda: ["acl/acl_base.h"],
    {
        "acl/error_codes/rt_error_codes.h": [],
        "acl/error_codes/ge_error_codes.h": [],
        "acl/acl_base.h": ["acl/error_codes/rt_error_codes.h", "acl/error_codes/ge_error_codes.h"],
        "acl/acl_mdl.h": ["acl/acl_base.h", "acl/acl_rt.h"],
        "acl/acl_op_compiler.h": ["acl/acl_base.h", "acl/acl_op.h"],
        "acl/acl_rt_memory_soma.h": ["acl/acl_rt.h"],
        "acl/acl.h": ["acl/acl_rt.h", "acl/acl_op.h", "acl/acl_mdl.h"],
        "acl/ops/acl_cblas.h": ["acl/acl.h"],
        "aclnn/aclnn_base.h": ["aclnn/acl_meta.h"],
        "hccl/hccl_types.h": [],
        "hccl/hccl.h": ["hccl/hccl_types.h", "acl/acl.h"],
        "hccl/lcal_api.h": ["hccl/hccl_types.h", "acl/acl_base.h"],
        "dcmi_interface_api.h": [],
        "ascend_hal.h": [],
        "profiling/prof_api.h": [],
        "runtime/rt.h": [],
        "mspti/mspti.h": [],
        "securec.h": [],
        "aml/aml_fwk_detect.h": [],
    },
)

SCALARS = {
    "char": 1, "signed char": 1, "unsigned char": 1, "uint8_t": 1, "int8_t": 1, "bool": 1,
    "short": 2, "unsigned short": 2, "uint16_t": 2, "int16_t": 2, "int": 4, "unsigned int": 4, "uint32_t": 4,
    "int32_t": 4, "float": 4, "double": 8, "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8,
    "uint64_t": 8, "int64_t": 8, "size_t": 8,
}  # fmt: skip


class Types:
    """Size and alignment of every type the tables name."""

    def __init__(self, abi: pathlib.Path):
        self.enums: dict[str, list[dict]] = {}
        for row in read_table(abi / "enums.tsv", ["type", "name", "value", "header", "note"]):
            self.enums.setdefault(row["type"], []).append(row)
        self.structs: dict[str, list[dict]] = {}
        for row in read_table(abi / "layouts.tsv", ["type", "kind", "size", "align", "offset", "bytes", "field", "ctype"]):
            if row["kind"] != "object":
                self.structs.setdefault(row["type"], []).append(row)
        self.handles = read_table(abi / "handles.tsv", ["name", "kind", "c", "header", "note"])
        self.alias = {h["name"]: h for h in self.handles}

    def size_align(self, ctype: str) -> tuple[int, int] | None:
        """None when the type is not known by value."""
        ctype = re.sub(r"^((const|enum|struct) )+", "", ctype).strip()
        if ctype.endswith("*"):
            return 8, 8
        if ctype in SCALARS:
            return SCALARS[ctype], SCALARS[ctype]
        if ctype in self.enums:
            return 4, 4
        if ctype in self.structs:
            first = self.structs[ctype][0]
            return int(first["size"]), int(first["align"])
        handle = self.alias.get(ctype)
        if handle and handle["kind"] == "alias":
            return self.size_align(handle["c"])
        if handle and handle["kind"] in ("pointer", "callback"):
            return 8, 8
        return None


def opaque(row: dict, size: int, align: int) -> tuple[str, int]:
    """Bytes of a member whose type is not in the tables: declaration and alignment."""
    name = row["field"] if re.fullmatch(r"\w+", row["field"]) else f"opaque{row['offset']}"
    for width, ctype in ((8, "uint64_t"), (4, "uint32_t"), (2, "uint16_t")):
        if align >= width and int(row["offset"]) % width == 0 and size % width == 0:
            return f"{ctype} {name}[{size // width}];", width
    return f"uint8_t {name}[{size}];", 1


def member(types: Types, row: dict, struct_align: int) -> tuple[str, int]:
    m = re.fullmatch(r"(.*?)((?:\[\d+\])*)", row["ctype"])
    base, dims = m.group(1).strip(), re.findall(r"\[(\d+)\]", m.group(2))
    size = int(row["bytes"])
    known = types.size_align(base)
    if known is None:
        return opaque(row, size, struct_align)
    count = 1
    for d in dims:
        count *= int(d)
    if known[0] * count != size:
        raise TableError(f"layouts.tsv:{row['_line']}: {row['type']}.{row['field']}: {row['ctype']} is not {size} bytes")
    return f"{base} {row['field']}{m.group(2)};", known[1]


def struct_text(types: Types, name: str) -> str:
    rows = types.structs[name]
    kind, size, align = rows[0]["kind"], int(rows[0]["size"]), int(rows[0]["align"])
    lines, end, natural, largest = [], 0, True, 1
    for row in rows:
        text, a = member(types, row, align)
        lines.append(f"  {text}\n")
        largest = max(largest, a)
        if kind == "struct":
            natural = natural and int(row["offset"]) == -(-end // a) * a
            end = int(row["offset"]) + int(row["bytes"])
        else:
            end = max(end, int(row["bytes"]))
    natural = natural and largest == align and -(-end // align) * align == size
    attribute = "" if natural else f" __attribute__((packed, aligned({align})))"
    note = f"/* {rows[0]['note']} */\n" if rows[0]["note"] else ""
    return f"{note}typedef {kind} {name} {{\n{''.join(lines)}}}{attribute} {name};\n\n"


def enum_text(name: str, rows: list[dict]) -> str:
    note = f"/* {rows[0]['note'].replace('**', '')} */\n" if rows[0]["note"] else ""
    return f"{note}typedef enum {name} {{\n" + "".join(f"  {r['name']} = {r['value']},\n" for r in rows) + f"}} {name};\n\n"


def handle_text(row: dict) -> str:
    note = f" /* {row['note']} */" if row["note"] else ""
    if row["kind"] == "incomplete":
        return f"typedef struct {row['name']} {row['name']};{note}\n"
    if row["kind"] == "callback":
        return f"typedef {row['c'].replace('(*)', '(*' + row['name'] + ')', 1)};{note}\n"
    return f"typedef {row['c']} {row['name']};{note}\n"


def define(name: str, value: str, meaning: str = "") -> str:
    value = f"({value})" if value.startswith("-") else value + ("ULL" if int(value.rstrip("UL"), 0) > 0xFFFFFFFF else "")
    if re.fullmatch(r"0x[0-9a-fA-F]{8}|[0-9]{10}", value) and int(value, 0) > 0x7FFFFFFF:
        value += "U"
    return f"#define {name} {value}{f' /* {meaning} */' if meaning else ''}\n"


def by_value_order(types: Types, names: list[str]) -> list[str]:
    """A struct after those it holds by value."""
    done: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        for row in types.structs[name]:
            base = re.sub(r"(\[\d+\])+$|^struct ", "", row["ctype"]).strip()
            if base in names and base != name:
                visit(base)
            pointee = re.sub(r"^const ", "", base.rstrip("* "))
            if pointee in names and pointee != name:
                visit(pointee)
        done.append(name)

    for name in names:
        visit(name)
    return done


def write_header(path: pathlib.Path, includes: list[str], body: str) -> None:
    guard = "ANYNPU_" + re.sub(r"\W", "_", str(path.name)).upper() + "_"
    lines = "".join(f'#include "{i}"\n' for i in includes)
    write_if_changed(
        path,
        f"{NOTE}#ifndef {guard}\n#define {guard}\n\n#include <stdarg.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n{lines}\n"
        f"#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{body}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
    )


def interface_headers(abi: pathlib.Path, types: Types, include: pathlib.Path) -> list[str]:
    text: dict[str, list[str]] = collections.defaultdict(lambda: [""] * 6)
    for row in read_table(abi / "constants.tsv", ["name", "value", "header", "group"]):
        text[row["header"]][0] += define(row["name"], row["value"], "")
    for row in read_table(abi / "codes.tsv", ["family", "code", "name", "meaning", "header"]):
        text[row["header"]][0] += define(row["name"], row["code"], row["meaning"])
    for name, rows in types.enums.items():
        text[rows[0]["header"]][1] += enum_text(name, rows)
    for row in types.handles:
        text[row["header"]][4 if row["kind"] == "callback" else 2] += handle_text(row)
    by_header: dict[str, list[str]] = {}
    for name, rows in types.structs.items():
        by_header.setdefault(rows[0]["header"], []).append(name)
    for header, names in by_header.items():
        for name in by_value_order(types, names):
            text[header][3] += struct_text(types, name)
    for f in read_functions(abi):
        if f.state != "absent":
            text[f.header][5] += f"{f.returns} {f.name}({f.params or 'void'});\n"
    for header, parts in sorted(text.items()):
        write_header(include / header, INCLUDES[header], "\n".join(p for p in parts if p))
    return sorted(text)


KINDS = {
    "tensor": "aclTensor*", "tensorlist": "aclTensorList*", "scalar": "aclScalar*", "scalarlist": "aclScalarList*",
    "intarray": "aclIntArray*", "boolarray": "aclBoolArray*", "floatarray": "aclFloatArray*", "string": "char*",
    "dtype": "aclDataType", "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint32": "uint32_t", "uint64": "uint64_t", "float": "float", "double": "double",
}  # fmt: skip


ABSENT = ["aclnnLessScalar"]  # exported by no CANN; torch_npu would compute greater-or-equal wrongly with it


def snake(name: str) -> str:
    """aclnnAddRmsNorm -> aclnn_add_rms_norm"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def operator_params(row: dict, place: str) -> list[str]:
    params = []
    for entry in split_params(row["signature"]):
        words = entry.split()
        role = words.pop(0) if words[0] in ("out", "inout") else ""
        kind, stars = re.fullmatch(r"(\w+?)\??(\**)", words[0]).groups()
        if kind not in KINDS:
            raise TableError(f"{place}: unknown kind {words[0]!r} for parameter {words[-1]!r} of {row['name']}")
        const = "const " if KINDS[kind].endswith("*") and not role else ""
        params.append(f"{const}{KINDS[kind]}{stars} {words[-1]}")
    return params


def operator_functions(rows: dict[str, dict], name: str) -> str:
    """Declarations of a row: the two phases, or the one function of a helper."""
    row, place = rows[name], f"aclnn.tsv:{rows[name]['_line']}"
    phase_one = ["uint64_t* workspaceSize", "aclOpExecutor** executor"]
    same = re.fullmatch(r"\(same as (\w+)\)", row["signature"])
    if same:
        return f"aclnnStatus {name}({', '.join(operator_params(rows[same[1]], place) + phase_one)});\n"
    params = [] if row["signature"] == "(no parameters)" else operator_params(row, place)
    if "not two-phase" in row["note"]:
        return f"aclnnStatus {name}({', '.join(params) or 'void'});\n"
    return (
        f"aclnnStatus {name}GetWorkspaceSize({', '.join(params + phase_one)});\n"
        f"aclnnStatus {name}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);\n\n"
    )


def operator_headers(abi: pathlib.Path, include: pathlib.Path) -> list[str]:
    """aclnnop/aclnn_add.h holds aclnnAdd and its forms aclnnAdds, aclnnInplaceAdd, aclnnInplaceAdds."""
    rows = {r["name"]: r for r in read_table(abi / "aclnn.tsv", ["name", "signature", "note"])}
    files: dict[str, list[str]] = {}
    for name, row in rows.items():
        if row["signature"] == "" or not name.startswith("aclnn") or name in ABSENT:
            continue
        base = name.replace("aclnnInplace", "aclnn", 1)
        if base.endswith("s") and base[:-1] in rows:
            base = base[:-1]
        files.setdefault(snake(base), []).append(name)
    for file, names in sorted(files.items()):
        body = "".join(operator_functions(rows, name) for name in names)
        write_header(include / "aclnnop" / f"{file}.h", ["aclnn/aclnn_base.h"], body)
    return [f"aclnnop/{f}.h" for f in sorted(files)]


def assertions(types: Types, headers: list[str]) -> str:
    """One source, valid as C11 and as C++, that includes every header and checks every layout and enum value."""
    out = [NOTE] + [f'#include "{h}"\n' for h in headers]
    out.append("#ifdef __cplusplus\n#define CHECK(c) static_assert(c, #c)\n#define ALIGNOF alignof\n#else\n")
    out.append("#define CHECK(c) _Static_assert(c, #c)\n#define ALIGNOF _Alignof\n#endif\n")
    for name, rows in types.structs.items():
        out.append(f"CHECK(sizeof({name}) == {rows[0]['size']});\nCHECK(ALIGNOF({name}) == {rows[0]['align']});\n")
        for row in rows:
            field = row["field"] if re.fullmatch(r"\w+", row["field"]) else f"opaque{row['offset']}"
            out.append(f"CHECK(offsetof({name}, {field}) == {row['offset']});\n")
            out.append(f"CHECK(sizeof((({name}*)0)->{field}) == {row['bytes']});\n")
    for name, rows in types.enums.items():
        out.append(f"CHECK(sizeof({name}) == 4);\n")
    return "".join(out)


def main(abi_dir: str, include_dir: str, assert_file: str) -> None:
    abi, include = pathlib.Path(abi_dir), pathlib.Path(include_dir)
    types = Types(abi)
    headers = interface_headers(abi, types, include) + operator_headers(abi, include)
    write_if_changed(assert_file, assertions(types, headers))


if __name__ == "__main__":
    main(*sys.argv[1:])
