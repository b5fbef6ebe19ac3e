#!/usr/bin/env python3
"""check_headers.py TREE ASSERTIONS: the public headers serve C and C++ programs by themselves.

Each header compiles alone as C11 and as C++11 with -Wall -Wextra -Werror, every size and offset of the tables holds, and a
program that uses nothing else links against the libraries and runs.
"""
from __future__ import annotations

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE, ASSERTIONS = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
INCLUDE = TREE / "include"
STRICT = ["-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
LANGUAGES = {"c": ["-std=c11"], "c++": ["-std=c++11"]}
COMPILERS = [(c, cxx) for c, cxx in (("gcc", "g++"), ("clang", "clang++")) if shutil.which(c) and shutil.which(cxx)]

PROGRAM = r"""
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"

int main(void) {
  char jit[256];
  aclDataBuffer* buffer = aclCreateDataBuffer(jit, sizeof jit);
  if (aclGetDataBufferSizeV2(buffer) != sizeof jit || aclDestroyDataBuffer(buffer) != ACL_SUCCESS) return 1;
  if (aclGetCompileopt(ACL_OP_JIT_COMPILE, jit, aclGetCompileoptSize(ACL_OP_JIT_COMPILE)) != ACL_SUCCESS) return 2;
  if (aclUpdateDataBuffer(NULL, NULL, 0) != ACL_ERROR_INVALID_PARAM) return 3;
  if (strstr(aclGetRecentErrMsg(), "aclUpdateDataBuffer") == NULL) return 4;
  printf("%s %s\n", aclrtGetSocName(), jit);
  return 0;
}
"""


def compile_text(compiler: str, language: str, text: str, *flags: str) -> subprocess.CompletedProcess:
    command = [compiler, "-x", language, *LANGUAGES[language], *STRICT, *flags, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


class Headers(unittest.TestCase):
    def test_each_compiles_alone(self) -> None:
        headers = [h.relative_to(INCLUDE).as_posix() for h in sorted(INCLUDE.rglob("*.h"))]
        self.assertGreater(len(headers), 100)
        self.assertGreater(sum(h.startswith("aclnnop/") for h in headers), 100)
        # Whether a header includes what it needs does not hang on the language: those of the operators, made from one pattern, take
        # turns. All of them together are compiled in both languages below.
        languages = list(zip(LANGUAGES, COMPILERS[0]))
        cases = [(language, compiler, h) for turn, (language, compiler) in enumerate(languages) for number, h in enumerate(headers)
                 if not h.startswith("aclnnop/") or number % 2 == turn]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            runs = threads.map(lambda c: compile_text(c[1], c[0], f'#include "{c[2]}"\n', "-fsyntax-only"), cases)
            for (language, _, header), run in zip(cases, runs):
                with self.subTest(f"{language}: {header}"):
                    self.assertEqual(run.returncode, 0, run.stderr[:2000])

    def test_layouts_hold(self) -> None:
        """All headers together, the operators' as well, in both languages and with every compiler that is there."""
        text = ASSERTIONS.read_text(encoding="utf-8")
        self.assertGreater(text.count("CHECK("), 800)
        for pair in COMPILERS:
            for language, compiler in zip(LANGUAGES, pair):
                with self.subTest(f"{compiler}"):
                    run = compile_text(compiler, language, text, "-fsyntax-only")
                    self.assertEqual(run.returncode, 0, run.stderr[:2000])

    def test_a_wrong_layout_would_be_noticed(self) -> None:
        text = ASSERTIONS.read_text(encoding="utf-8").replace("sizeof(aclrtMemLocation) == 8", "sizeof(aclrtMemLocation) == 12")
        self.assertNotEqual(compile_text(COMPILERS[0][0], "c", text, "-fsyntax-only").returncode, 0)

    def test_programs_link_and_run(self) -> None:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(TREE / "lib64")}
        for language, compiler in zip(LANGUAGES, COMPILERS[0]):
            with self.subTest(language), tempfile.TemporaryDirectory() as scratch:
                program = f"{scratch}/program"
                libraries = [f"-L{TREE}/lib64", "-lascendcl", "-lacl_op_compiler", f"-Wl,-rpath-link,{TREE}/anynpu/lib"]
                source = pathlib.Path(scratch, "program." + ("c" if language == "c" else "cc"))
                source.write_text(PROGRAM, encoding="utf-8")
                built = subprocess.run([compiler, *LANGUAGES[language], *STRICT, source, "-o", program, *libraries],
                                       capture_output=True, text=True)
                self.assertEqual(built.returncode, 0, built.stderr)
                run = subprocess.run([program], capture_output=True, text=True, env=environment, timeout=60)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertRegex(run.stdout, r"^Ascend\w+(-1)? disable\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
