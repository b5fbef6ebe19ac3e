#!/usr/bin/env python3
"""check_generators.py SOURCE: what each generator makes of a small table, word for word, and what it says about faulty ones."""
from __future__ import annotations

import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "gen"))
sys.path.insert(0, str(SOURCE / "ci"))
import arrows  # noqa: E402
import cxx_exports  # noqa: E402
import doctor  # noqa: E402
import entries  # noqa: E402
import errors  # noqa: E402
import headers  # noqa: E402
import prototypes  # noqa: E402
import reference  # noqa: E402
import tree  # noqa: E402
from tables import TableError, read_table  # noqa: E402


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.scratch.name)
        self.addCleanup(self.scratch.cleanup)

    def table(self, name: str, *rows: str) -> pathlib.Path:
        path = self.dir / name
        path.write_text("".join(row.replace("|", "\t") + "\n" for row in rows), encoding="utf-8")
        return path


HEADER = "name|library|prototype|state|header"
ROWS = [
    HEADER,
    "aclA|liba.so|aclError aclA(const aclThing*const list[], int n)|works|a/a.h",
    "aclB|liba.so|void* aclB(void)|works|a/a.h",
    "aclC|liba.so|aclError aclC(dim3 grid)|NotYet|a/a.h",
    "aclD|liba.so|float aclD(float x)|NotYet|a/a.h",
    "aclE|liba.so|aclError aclE(void)|absent|a/a.h",
    "aclF|liba.so|aclnnStatus aclF(int x)|Unsupported: a CPU has no such thing|a/a.h",
    "aclG|liba.so|void aclG(const char* format, ...)|works|a/a.h",
]


class Entries(Case):
    def generate(self) -> pathlib.Path:
        self.table("t.tsv", *ROWS)
        entries.generate("a", prototypes.read_functions(self.dir, ["t"]), self.dir)
        return self.dir

    def test_calls(self) -> None:
        self.assertEqual(
            (self.generate() / "calls" / "a.h").read_text(),
            entries.NOTE + '#pragma once\n\n#include "a/a.h"\n\n#include "base/status/status.h"\n\nnamespace npu::calls {\n\n'
            "Status aclA(const aclThing*const list[], int n);\nvoid* aclB();\n\n}  // namespace npu::calls\n",
        )

    def test_working_functions(self) -> None:
        self.assertEqual(
            (self.generate() / "entries" / "a.cc").read_text(),
            entries.NOTE + '#include "gen/calls/a.h"\n\n#include "base/status/boundary.h"\n\n'
            'extern "C" NPU_EXPORT aclError aclA(const aclThing*const list[], int n) {\n'
            '  return static_cast<aclError>(npu::boundary::Run("aclA", npu::AclCode, [&] { return npu::calls::aclA(list, n); }));\n'
            "}\n"
            'extern "C" NPU_EXPORT void* aclB() {\n'
            '  return npu::boundary::Value<void*>("aclB", [&] { return npu::calls::aclB(); });\n}\n',
        )

    def test_owed_functions(self) -> None:
        self.assertEqual(
            (self.generate() / "entries" / "a_owed.cc").read_text(),
            entries.NOTE + '#include "base/status/boundary.h"\n\n'
            'extern "C" NPU_EXPORT int aclC() { return npu::boundary::Owed("aclC", npu::AclCode); }\n'
            'extern "C" NPU_EXPORT float aclD() {\n  npu::boundary::Owed("aclD", npu::AclCode);\n  return 0;\n}\n'
            'extern "C" NPU_EXPORT int aclF() { return npu::boundary::Unsupported("aclF", "a CPU has no such thing", npu::NnCode); }\n',
        )

    def test_version_script_holds_all_but_the_absent(self) -> None:
        names = "".join(f"    {n};\n" for n in ("aclA", "aclB", "aclC", "aclD", "aclF", "aclG"))
        self.assertEqual((self.generate() / "entries" / "a.map").read_text(), f"{{\n  global:\n{names}  local: *;\n}};\n")

    def test_faults_name_file_and_line(self) -> None:
        self.table("t.tsv", HEADER, "aclA|liba.so|aclError aclB(void)|works|a.h")
        with self.assertRaisesRegex(TableError, r"t\.tsv:2: the prototype of aclA declares aclB"):
            prototypes.read_functions(self.dir, ["t"])
        self.table("t.tsv", HEADER, "aclA|liba.so|aclError aclA(void)|done|a.h")
        with self.assertRaisesRegex(TableError, r"t\.tsv:2: unknown state 'done' for aclA"):
            prototypes.read_functions(self.dir, ["t"])
        self.table("t.tsv", HEADER, "aclA|liba.so|aclError aclA(void)|works|a.h", "aclA|liba.so|aclError aclA(void)|works|a.h")
        with self.assertRaisesRegex(TableError, r"t\.tsv:3: aclA stands also in t\.tsv:2"):
            prototypes.read_functions(self.dir, ["t"])


class Prototypes(unittest.TestCase):
    def test_callbacks_arrays_and_lists(self) -> None:
        parse = lambda text: prototypes.parse(text, "t:1")[2:4]  # noqa: E731
        self.assertEqual(parse("int f(int (*const)(const char*, int) call, int flag)"),
                         ("int (*const call)(const char*, int), int flag", ["call", "flag"]))
        self.assertEqual(parse("int f(int64_t ranges[][2])"), ("int64_t ranges[][2]", ["ranges"]))
        self.assertEqual(parse("int f(void)"), ("", []))
        with self.assertRaisesRegex(TableError, "t:1: parameter without a name"):
            parse("int f(int*)")


class Headers(Case):
    def test_types(self) -> None:
        self.table("enums.tsv", "type|name|value|header|note", "Kind|KIND_A|0|a.h|of things", "Kind|KIND_B|7|a.h|of things")
        self.table("layouts.tsv", "type|kind|size|align|offset|bytes|field|ctype|header|note",
                   "Pair|struct|16|8|0|4|kind|Kind|a.h|two", "Pair|struct|16|8|8|8|value|void *|a.h|two",
                   "Tight|struct|12|1|0|8|id|uint64_t|a.h|", "Tight|struct|12|1|8|4|n|uint32_t|a.h|",
                   "Odd|struct|16|8|0|8|n|size_t|a.h|", "Odd|struct|16|8|8|8|(anonymous union)|Odd::union|a.h|")
        self.table("handles.tsv", "name|kind|c|header|note", "aclThing|pointer|void*|a.h|", "aclOther|incomplete||a.h|")
        types = headers.Types(self.dir)
        self.assertEqual(headers.enum_text("Kind", types.enums["Kind"]),
                         "/* of things */\ntypedef enum Kind {\n  KIND_A = 0,\n  KIND_B = 7,\n} Kind;\n\n")
        self.assertEqual(headers.struct_text(types, "Pair"),
                         "/* two */\ntypedef struct Pair {\n  Kind kind;\n  void * value;\n} Pair;\n\n")
        self.assertEqual(headers.struct_text(types, "Tight"),
                         "typedef struct Tight {\n  uint64_t id;\n  uint32_t n;\n} __attribute__((packed, aligned(1))) Tight;\n\n")
        self.assertEqual(headers.struct_text(types, "Odd"),
                         "typedef struct Odd {\n  size_t n;\n  uint64_t opaque8[1];\n} Odd;\n\n")
        self.assertEqual([headers.handle_text(h) for h in types.handles],
                         ["typedef void* aclThing;\n", "typedef struct aclOther aclOther;\n"])

    def test_a_size_that_cannot_be_is_refused(self) -> None:
        self.table("enums.tsv", "type|name|value|header|note")
        self.table("layouts.tsv", "type|kind|size|align|offset|bytes|field|ctype|header|note",
                   "Pair|struct|16|8|0|8|n|uint32_t|a.h|")
        self.table("handles.tsv", "name|kind|c|header|note")
        with self.assertRaisesRegex(TableError, r"layouts\.tsv:2: Pair\.n: uint32_t is not 8 bytes"):
            headers.struct_text(headers.Types(self.dir), "Pair")

    def test_operators(self) -> None:
        self.table("aclnn.tsv", "name|signature|note", "aclnnAdd|tensor self, scalar? alpha, out tensor out|",
                   "aclnnInplaceAdd|inout tensor selfRef, tensor other|", "aclnnAddRmsNorm|tensor x, double eps|",
                   "aclnnLessScalar|tensor self|")
        files = headers.operator_headers(self.dir, self.dir / "include")
        self.assertEqual(files, ["aclnnop/aclnn_add.h", "aclnnop/aclnn_add_rms_norm.h"])
        text = (self.dir / "include" / "aclnnop" / "aclnn_add.h").read_text()
        self.assertIn("aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* self, const aclScalar* alpha, aclTensor* out, "
                      "uint64_t* workspaceSize, aclOpExecutor** executor);\n", text)
        self.assertIn("aclnnStatus aclnnInplaceAdd(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, "
                      "aclrtStream stream);\n", text)
        self.table("aclnn.tsv", "name|signature|note", "aclnnAdd|tensr self|")
        with self.assertRaisesRegex(TableError, r"aclnn\.tsv:2: unknown kind 'tensr' for parameter 'self' of aclnnAdd"):
            headers.operator_headers(self.dir, self.dir / "include")


class Others(Case):
    def test_errors(self) -> None:
        table = self.table("errors.tsv", "code|acl|nn|hccl|dcmi|meaning", "Ok|0|0|0|0|fine", "Bad|1|2|3|-4|not fine")
        faults = self.table("fault_errors.tsv", "code|acl|nn|hccl|dcmi|meaning", "Lost|5|6|7|-8|gone")
        errors.main(str(table), str(faults), str(self.dir))
        self.assertEqual((self.dir / "errors.inc").read_text(),
                         "NPU_ERROR(Ok, 0, 0, 0, 0)\nNPU_ERROR(Bad, 1, 2, 3, -4)\nNPU_ERROR(Lost, 5, 6, 7, -8)\n")
        self.assertIn("constexpr Code kLost = static_cast<Code>(2);  // gone\n", (self.dir / "fault_errors.h").read_text())
        self.assertIn("  kOk,  // fine\n  kBad,  // not fine\n", (self.dir / "errors.h").read_text())

    def test_reference_pages_are_what_the_tables_say(self) -> None:
        reference.main(str(SOURCE), "--check")

    def test_cxx_exports(self) -> None:
        self.table("ge.tsv", "mangled|library", "_ZN2ge1bEv|libg.so", "_ZN2ge1aEv|libg.so", "_ZN2ge1aEv|libg.so")
        self.table("atb.tsv", "mangled|library")
        cxx_exports.main(str(self.dir), str(self.dir))
        self.assertEqual((self.dir / "libg.so.map").read_text(), "{\n  global:\n    _ZN2ge1aEv;\n    _ZN2ge1bEv;\n  local: *;\n};\n")

    def test_tree(self) -> None:
        tree.main(str(self.dir), "8.5.0", "aarch64")
        self.assertIn("Version=8.5.0\n", (self.dir / "share" / "info" / "runtime" / "version.info").read_text())
        for folder in ("runtime", "compiler", "opp"):
            self.assertTrue((self.dir / folder).is_dir())

    def test_tables_refuse_what_does_not_fit(self) -> None:
        with self.assertRaisesRegex(TableError, r"t\.tsv:2: 3 cells, but the header has 2"):
            read_table(self.table("t.tsv", "a|b", "1|2|3"), ["a"])
        with self.assertRaisesRegex(TableError, r"t\.tsv:1: missing column 'c'"):
            read_table(self.table("t.tsv", "a|b"), ["c"])


class Arrows(Case):
    def check(self, arrows_block: str, **files: str) -> list[str]:
        for name, text in files.items():
            path = self.dir / name.replace("__", "/").replace("_h", ".h").replace("_cc", ".cc")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return arrows.forbidden(self.dir, arrows.read_arrows(f"```arrows\n{arrows_block}\n```\n"))

    def test_a_forbidden_edge_is_named(self) -> None:
        faults = self.check("ops → base\nruntime → base", ops__a_cc='#include "base/x.h"\n#include "runtime/y.h"\n')
        self.assertEqual(faults, ["ops/a.cc:2: ops may not include runtime (runtime/y.h)"])

    def test_tests_and_inner_rooms(self) -> None:
        faults = self.check("tools → base\ntools/launch → device", tools__launch__a_cc='#include "device/x.h"\n',
                            tools__b_cc='#include "device/x.h"\n', tools__b_test_cc="")
        self.assertEqual(faults, ["tools/b.cc:1: tools may not include device (device/x.h)"])

    def test_cycles_are_found(self) -> None:
        self.assertEqual(arrows.find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), ["a", "b", "c", "a"])
        self.assertIsNone(arrows.find_cycle({"a": {"b", "c"}, "b": {"c"}}))



class Doctor(Case):
    """gen/doctor.py with the real tables, of which one is replaced."""

    def generate(self, name: str = "", *rows: str) -> str:
        data = self.dir / "data"
        shutil.copytree(SOURCE / "tools/doctor/data", data, dirs_exist_ok=True)
        if name:
            self.table(f"data/{name}.tsv", *rows)
        doctor.main(str(data), str(SOURCE / "abi"), str(SOURCE / "ops"), str(self.dir / "out"))
        return (self.dir / "out/data.cc").read_text(encoding="utf-8")

    def test_texts_are_escaped_and_operators_found(self) -> None:
        source = self.generate("families", "prefix|part_en|part_zh|cause|source|date", 'E1|a "quoted" \\ part??|图|success|s|2026-01-02')
        self.assertIn('"E1\\ta \\"quoted\\" \\\\ part\\?\\?\\t图\\tsuccess\\ts\\t2026-01-02\\n"', source)
        self.assertIn("aclnnGelu\\tyes\\t", source)

    def test_faults_are_named(self) -> None:
        header = "pattern|cause|what_en|what_zh|source|date"
        for row, fault in (
            ("x|no-such-cause|a|b|s|2026-01-02", "texts.tsv:2: no cause 'no-such-cause'"),
            ("x|success||b|s|2026-01-02", "texts.tsv:2: what_en is empty"),
            ("x|success|a|b|s|yesterday", "texts.tsv:2: date 'yesterday'"),
        ):
            with self.assertRaises(TableError) as caught:
                self.generate("texts", header, row)
            self.assertIn(fault, str(caught.exception))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
