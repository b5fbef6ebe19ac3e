#!/usr/bin/env python3
"""check_tables.py SOURCE: no row, code or variable of the contract was lost, and the tables agree with each other."""
from __future__ import annotations

import collections
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1])
ABI = SOURCE / "abi"
sys.path.insert(0, str(SOURCE / "gen"))
from headers import SCALARS, Types  # noqa: E402
from prototypes import read_functions  # noqa: E402
from tables import read_table  # noqa: E402


class Rows(unittest.TestCase):
    def test_none_was_lost(self) -> None:
        """counts.tsv holds what was collected. Rows may be added; then raise the count."""
        for row in read_table(ABI / "counts.tsv", ["table", "rows"]):
            with self.subTest(row["table"]):
                self.assertGreaterEqual(len(read_table(ABI / row["table"], [])), int(row["rows"]))

    def test_every_table_is_counted(self) -> None:
        counted = {row["table"] for row in read_table(ABI / "counts.tsv", ["table", "rows"])}
        self.assertSetEqual({p.name for p in ABI.glob("*.tsv")} - {"counts.tsv"}, counted)

    def test_keys_are_unique(self) -> None:
        for table, keys in {"aclnn": ["name"], "handles": ["name"], "constants": ["name"], "codes": ["name"], "env": ["name"],
                            "libraries": ["library"], "layouts": ["type", "field"], "enums": ["type", "name"],
                            "dtypes": ["name", "parameter"], "errors": ["code"]}.items():
            seen = collections.Counter(tuple(r[k] for k in keys) for r in read_table(ABI / f"{table}.tsv", keys))
            with self.subTest(table):
                self.assertFalse([k for k, n in seen.items() if n > 1])


class Agreement(unittest.TestCase):
    def test_prototypes_name_known_types_only(self) -> None:
        types = Types(ABI)
        known = set(types.enums) | set(types.structs) | set(types.alias) | set(SCALARS)
        known |= {"void", "const", "unsigned", "signed", "struct", "union", "va_list", "size_t"}
        for f in read_functions(ABI):
            text = re.sub(r"\[[^\]]*\]", "", f.returns + ", " + f.params)
            words = [w for part in text.split(",") for w in re.findall(r"[A-Za-z_]\w*", part)]
            unknown = [w for w in words if w not in known and w not in f.arguments]
            self.assertFalse(unknown, f"{f.place}: {f.name} names {unknown}")

    def test_functions_belong_to_known_libraries(self) -> None:
        libraries = {r["library"] for r in read_table(ABI / "libraries.tsv", ["library"])}
        for f in read_functions(ABI):
            if f.state != "absent":
                self.assertIn(f.library, libraries, f.place)

    def test_our_codes_are_numbers_of_each_interface(self) -> None:
        numbers = {r["code"] for r in read_table(ABI / "codes.tsv", ["code"])}
        hccl = {r["value"] for r in read_table(ABI / "enums.tsv", ["type", "value"]) if r["type"] == "HcclResult"}
        for row in read_table(ABI / "errors.tsv", ["code", "acl", "nn", "hccl", "dcmi"]):
            for column in ("acl", "nn", "dcmi"):
                self.assertIn(row[column], numbers, f"errors.tsv:{row['_line']}: {row['code']}, column {column}")
            self.assertIn(row["hccl"], hccl, f"errors.tsv:{row['_line']}: {row['code']}, column hccl")

    def test_operators_of_dtypes_are_operators(self) -> None:
        operators = {r["name"] for r in read_table(ABI / "aclnn.tsv", ["name"])}
        self.assertFalse({r["name"] for r in read_table(ABI / "dtypes.tsv", ["name"])} - operators)

    def test_variables_the_sources_read_are_listed(self) -> None:
        listed = {r["name"] for r in read_table(ABI / "env.tsv", ["name"])}
        read = set()
        for room in ("base", "tensor", "device", "kernels", "ops", "runtime", "coll", "shim"):
            for file in (SOURCE / room).rglob("*.cc"):
                if not file.stem.endswith("_test"):
                    read |= set(re.findall(r'getenv\("(\w+)"\)', file.read_text(encoding="utf-8")))
        self.assertFalse(read - listed, "add them to abi/env.tsv")


class Texts(unittest.TestCase):
    def test_none_steers_clients_by_accident(self) -> None:
        """torch_npu acts on these words in an error text: out of memory, recovery from device faults."""
        words = re.compile(r'"[^"]*(EL0004|Failed to allocate|reason=\[)')
        found = []
        for room in ("base", "tensor", "device", "kernels", "ops", "runtime", "coll", "shim", "tools"):
            for file in (p for p in (SOURCE / room).rglob("*") if p.suffix in (".cc", ".h") and not p.stem.endswith("_test")):
                for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                    if words.search(line):
                        found.append(f"{file.relative_to(SOURCE)}:{number}")
        self.assertFalse(found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
