#!/usr/bin/env python3
"""check_exports.py SOURCE TREE: the libraries of an install tree against the tables.

Exports equal the table's rows that are not absent; sonames are the vendor's; private libraries are found by RUNPATH; every
symbol that torch_npu wheels need when they are loaded resolves; what clients test by existence exists or does not.
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import unittest

SOURCE, TREE = (pathlib.Path(p) for p in sys.argv[1:3])
LIB64 = TREE / "lib64"
sys.path.insert(0, str(SOURCE / "gen"))
from prototypes import read_functions  # noqa: E402
from tables import read_table  # noqa: E402

from elf import closure, dynamic  # noqa: E402

ABI = SOURCE / "abi"
# libopapi exports what the operator families define; its own check stands with the operators.
OPERATOR_LIBRARIES = ["libopapi.so"]


def expected_exports() -> dict[str, set[str]]:
    wanted = {row["library"]: set() for row in read_table(ABI / "libraries.tsv", ["library"])}
    for f in read_functions(ABI):
        if f.state != "absent":
            wanted.setdefault(f.library, set()).add(f.name)
    for table in ("ge", "atb"):
        for row in read_table(ABI / f"{table}.tsv", ["mangled", "library"]):
            wanted.setdefault(row["library"], set()).add(row["mangled"])
    for name in ("libfmk_parser.so", "libascend_protobuf.so"):  # wanted as files only
        wanted[name] = set()
    return wanted


class Exports(unittest.TestCase):
    maxDiff = None

    def test_equal_the_tables(self) -> None:
        for library, wanted in sorted(expected_exports().items()):
            with self.subTest(library):
                self.assertSetEqual(dynamic(LIB64 / library)["exports"], wanted)

    def test_no_library_without_a_table(self) -> None:
        present = {p.name for p in LIB64.glob("*.so*")}
        self.assertSetEqual(present - set(OPERATOR_LIBRARIES), set(expected_exports()))

    def test_the_second_dcmi_has_both_generations(self) -> None:
        first = {f.name for f in read_functions(ABI) if f.library == "libdcmi.so" and f.state != "absent"}
        second = {row["name"] for row in read_table(ABI / "dcmi950.tsv", ["name", "state", "as"])}
        self.assertSetEqual(dynamic(TREE / "lib64-950" / "libdcmi.so")["exports"], first | second)

    def test_names_that_would_mislead_clients_are_absent(self) -> None:
        names = set().union(*(dynamic(p)["exports"] for p in LIB64.glob("*.so")))
        self.assertNotIn("aclnnLessScalar", names)
        self.assertNotIn("aclnnLessScalarGetWorkspaceSize", names)
        self.assertFalse([n for n in names if n.startswith("dcmiv2_")])
        for library in ("libmspti.so", "libms_tools_ext.so"):  # clients act on their existence
            self.assertFalse((LIB64 / library).exists(), library)

    def test_nothing_of_ours_but_the_tables_is_visible(self) -> None:
        for path in LIB64.glob("*.so"):
            with self.subTest(path.name):
                self.assertFalse([n for n in dynamic(path)["exports"] if n.startswith(("_ZN3npu", "_ZNK3npu"))])
        core = dynamic(TREE / "anynpu" / "lib" / "libnpu_core.so")["exports"]
        strangers = [n for n in core if "3npu" not in n]
        self.assertFalse(strangers, "libnpu_core.so shows names outside npu::")


class Linking(unittest.TestCase):
    def test_sonames_are_file_names(self) -> None:
        for path in LIB64.glob("*.so"):
            with self.subTest(path.name):
                self.assertEqual(dynamic(path)["soname"], path.name)

    def test_private_libraries_are_found_by_runpath(self) -> None:
        for path in LIB64.glob("*.so"):
            with self.subTest(path.name):
                if "libnpu_core.so" in dynamic(path)["needs"]:
                    self.assertIn("$ORIGIN/../anynpu/lib", dynamic(path)["runpath"])
        self.assertFalse(list(LIB64.glob("libnpu_*")), "lib64 is for vendor names only")

    def test_immediate_binding_finds_everything(self) -> None:
        for path in LIB64.glob("*.so"):
            with self.subTest(path.name):
                run = subprocess.run(["ldd", "-r", path], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
                self.assertNotIn("undefined symbol", run.stdout + run.stderr)
                self.assertNotIn("not found", run.stdout)


class LookUps(unittest.TestCase):
    def test_names_are_found_where_clients_look(self) -> None:
        """torch_npu looks some names up in another library than the one that has them: it must be a dependency."""
        looked = 0
        for table in ("acl", "hccl", "profiling"):
            for row in read_table(ABI / f"{table}.tsv", ["name", "state", "library", "library_note"]):
                if row["state"] != "absent":
                    for library in re.findall(r"looks it up in (lib\w+\.so)", row["library_note"]):
                        looked += 1
                        found = any(row["name"] in dynamic(p)["exports"] for p in closure(LIB64, [library]))
                        self.assertTrue(found, f"{row['name']} is not found in {library}")
        self.assertGreater(looked, 0)


class Wheels(unittest.TestCase):
    def setUp(self) -> None:
        table = pathlib.Path(__file__).with_name("wheel_symbols.tsv")
        self.rows = read_table(table, ["kind", "object", "name", "releases"])

    def test_the_list_covers_the_releases(self) -> None:
        releases = {r for row in self.rows for r in row["releases"].split(",")}
        wanted = "2.1.0.post12 2.5.1 2.6.0 2.7.1 2.8.0 2.9.0.post2 2.10.0 2.11.0 2.12.0 2.13.0 2.14.0".split()
        self.assertSetEqual(releases, set(wanted))

    def test_needed_libraries_exist(self) -> None:
        for row in self.rows:
            if row["kind"] == "needs":
                self.assertTrue((LIB64 / row["name"]).exists(), f"{row['object']} needs {row['name']} ({row['releases']})")

    def test_needed_symbols_resolve(self) -> None:
        """In what the object itself names and its dependencies: no help from what others may have loaded. An object that
        names none of ours (libnpu_profiler) is loaded by libtorch_npu and sees what that names."""
        needs: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if row["kind"] == "needs":
                for release in row["releases"].split(","):
                    needs.setdefault((release, row["object"]), []).append(row["name"])
        missing = []
        for row in self.rows:
            if row["kind"] != "symbol":
                continue
            for release in row["releases"].split(","):
                libraries = closure(LIB64, needs.get((release, row["object"])) or needs[release, "libtorch_npu"])
                if not any(row["name"] in dynamic(p)["exports"] for p in libraries):
                    missing.append(f"{release} {row['object']}: {row['name']}")
        self.assertFalse(missing[:8], f"{len(missing)} symbols of wheels do not resolve")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
