"""Wrong definitions fail to compile and say why; the same definition without the fault compiles.

And: an operator is added by touching two files, a kernel pack's list and a family file, in a scratch copy of the sources.
"""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ANYNPU_BUILD", ROOT / "build" / "dev"))

PROLOGUE = """
#include "gen/abi/add.h"
#include "gen/abi/exp.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"
namespace npu::ops {
using abi::Add, abi::Exp;
Status Nothing(const Call&) { return {}; }
"""
GOOD = """NPU_OP(Exp) = Op<Exp>().Rules(rule::SameShape(Exp::self, Exp::out), rule::SameDtype(Exp::self, Exp::out)).Like("torch.exp(self)").Does(Nothing);"""
# what is wrong, the good text, the faulty text, what the compiler must mention
FAULTS = {
    "parameter misspelt": ("Exp::self,", "Exp::slef,", "slef"),
    "output without a shape": ("rule::SameShape(Exp::self, Exp::out), ", "", "every_output_needs_a_shape_rule"),
    "output without a type": (", rule::SameDtype(Exp::self, Exp::out)", "", "every_output_needs_a_dtype_rule"),
    "no function": (".Does(Nothing)", "", "operator_needs_Does"),
    "no judge": ('.Like("torch.exp(self)")', "", "operator_needs_Like"),
    "parameter never used": (GOOD, """NPU_OP(Add) = Op<Add>().Rules(rule::Broadcast(Add::self, Add::other, Add::out), rule::SameDtype(Add::self, Add::out)).Like("x").Does(Nothing);""",
                             "every_parameter_is_used_by_a_rule_or_by_Uses"),
    "a number where a tensor is meant": (GOOD, """NPU_OP(Add) = Op<Add>().Rules(rule::Broadcast(Add::self, Add::alpha, Add::out), rule::SameDtype(Add::self, Add::out)).Uses(Add::other).Like("x").Does(Nothing);""",
                                         "ScalarIn"),
}


def command_of(file: str) -> list[str]:
    """How the build compiles a source, without output options."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        if entry["file"].endswith(file):
            words = shlex.split(entry["command"])
            words = words[1:] if "ccache" in words[0] else words
            at = words.index("-o")
            return [w for i, w in enumerate(words) if i not in (at, at + 1) and w not in ("-c", entry["file"])]
    raise LookupError(file)


def compiles(text: str, directory: pathlib.Path) -> tuple[bool, str]:
    source = directory / "definition.cc"
    source.write_text(text)
    done = subprocess.run([*command_of("ops/elementwise/unary.cc"), "-fsyntax-only", str(source)], capture_output=True, text=True, cwd=BUILD)
    return done.returncode == 0, done.stderr


def test_good_definition_compiles(tmp_path):
    ok, text = compiles(PROLOGUE + GOOD + "}", tmp_path)
    assert ok, text


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_a_compile_error(fault, tmp_path):
    good, bad, mention = FAULTS[fault]
    assert good in GOOD
    ok, text = compiles(PROLOGUE + GOOD.replace(good, bad) + "}", tmp_path)
    assert not ok, f"{fault}: accepted"
    assert mention in text, text


def test_unknown_operator_is_named(tmp_path):
    (tmp_path / "x.cc").write_text("NPU_OP(Ad) = nothing;\n")
    done = subprocess.run([sys.executable, str(ROOT / "gen/aclnn.py"), str(ROOT / "abi/aclnn.tsv"), str(tmp_path / "gen"), str(tmp_path)],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "no row for Ad" in done.stderr and "did you mean Add" in done.stderr, done.stderr


def test_adding_an_operator_touches_two_files(tmp_path):
    copy = tmp_path / "source"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build", ".git", ".venv"), symlinks=True)
    pack, family = copy / "kernels/simd/unary_ops.inc", copy / "ops/elementwise/activation.cc"
    pack.write_text(pack.read_text() + 'NPU_UNARY(FastGelu, kFloats, 8, "ulp", a / (T(1) + std::exp(T(-1.702) * a)))\n')
    family.write_text(family.read_text().replace(
        "namespace npu::ops {\n",
        'namespace npu::ops {\nNPU_OP(FastGelu) = Unary<abi::FastGelu>(simd::kFastGelu, abi::FastGelu::self, abi::FastGelu::out).Like("self * torch.sigmoid(1.702 * self)");\n', 1))
    gen = tmp_path / "gen"
    subprocess.run([sys.executable, "gen/aclnn.py", "abi/aclnn.tsv", str(gen), "ops"], check=True, cwd=copy)
    assert "aclnnFastGelu" in (gen / "aclnn/exports.txt").read_text().split()
    # The definition compiles against the copy and refers to the kernel; the pack defines it.
    words = [w.replace(f"-I{ROOT}", f"-I{copy}", 1) if w == f"-I{ROOT}" else w for w in command_of("ops/elementwise/activation.cc")]
    done = subprocess.run([*words, "-fsyntax-only", str(family)], capture_output=True, text=True, cwd=BUILD)
    assert done.returncode == 0, done.stderr
    words = [w if w != f"-I{ROOT}" else f"-I{copy}" for w in command_of("kernels/simd/unary.cc")]
    done = subprocess.run([*words, "-fsyntax-only", str(copy / "kernels/simd/unary.cc")], capture_output=True, text=True, cwd=BUILD)
    assert done.returncode == 0, done.stderr
