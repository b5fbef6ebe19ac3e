"""What the wheel holds: a tree that runs from any folder, libraries that share no symbol with torch's."""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

import pytest
from test_launcher import program

SYSTEM = {"libc", "libm", "libdl", "librt", "libpthread", "libstdc++", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}
# What the libraries of anynpu-monitor take from the system, with its security updates (docs/decisions/dependencies.md).
SECURITY = {"libssl", "libcrypto", "libz"}
MONITORS = ("libcpp-httplib", "libprometheus-cpp-core", "libyaml-cpp", "libbrotli")


def may_need(library, line, name, tree) -> bool:
    """Whether a library of an installed tree may need what a line of ldd says."""
    ours = library.name.startswith(MONITORS)
    bundled = ours and any(tree.glob(f"anynpu/lib/{name}.so*"))  # found by the program's RPATH
    return str(tree) in line or bundled or name in SYSTEM or ours and name in SECURITY or name.startswith("linux-vdso")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> pathlib.Path:
    """The build, installed into a folder as a wheel would be."""
    build = pathlib.Path(program()).resolve().parents[2]
    if not (build / "cmake_install.cmake").exists() or not shutil.which("cmake"):
        pytest.skip("the program was not built here")
    prefix = tmp_path_factory.mktemp("installed")
    done = subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return prefix


def clean() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANYNPU_", "ASCEND_", "LD_LIBRARY", "PYTHONPATH"))}
    return env | {"ANYNPU_MACHINE": "t" + uuid.uuid4().hex[:8]}


def test_an_installed_tree_needs_only_the_system(installed):
    tree = installed / "share" / "anynpu"
    libraries = [*tree.glob("lib64/*.so"), *tree.glob("anynpu/lib/*.so*")]
    assert libraries
    for library in libraries:
        lines = subprocess.run(["ldd", str(library)], capture_output=True, text=True, env=clean()).stdout.splitlines()
        assert any(line.split()[0].startswith("libc.so") for line in lines), f"ldd says nothing of {library}: {lines}"
        for line in lines:
            name = line.split()[0].rsplit("/", 1)[-1].split(".so")[0]
            assert "not found" not in line, f"{library}: {line}"
            assert may_need(library, line, name, tree), f"{library} needs {line}"


def test_an_installed_program_finds_its_tree(installed):
    for words in (["run", "-q", "-n", "3", "--", "npu-smi", "info", "-l"], ["smi", "info", "-l"]):
        done = subprocess.run([str(installed / "bin" / "anynpu"), *words], capture_output=True, text=True,
                              env=clean() | {"ANYNPU_CARDS": "3"}, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "Total Count                    : 3" in done.stdout
    alone = subprocess.run([str(installed / "bin" / "npu-smi"), "info", "-l"], capture_output=True, text=True, env=clean())
    assert "Total Count                    : 2" in alone.stdout, alone.stdout


def test_no_folder_of_the_tree_is_empty():
    tree = pathlib.Path(program()).resolve().parents[1]
    folders = [d for d in tree.rglob("*") if d.is_dir()]
    assert tree / "lib64" in folders
    empty = [str(d) for d in folders if not any(d.iterdir())]
    assert not empty, "a wheel drops empty folders"


def test_no_symbol_is_shared_with_torch_and_one_openmp_runtime(tmp_path):
    code = """
import torch, torch_npu
x = torch.ones(8, device="npu:0")
assert (x + x).sum().item() == 16
maps = open("/proc/self/maps").read()
import re
print("OPENMP", *sorted(set(re.findall(r"\\S+/lib(?:gomp|iomp5|omp)[^/]*\\.so\\S*", maps))))
"""
    env = clean() | {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(tmp_path / "bind")}
    done = subprocess.run([program(), "run", "-q", "--", sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.split("OPENMP", 1)[1].split()) <= 1, done.stdout
    tree = str(pathlib.Path(program()).resolve().parents[1]) + "/"
    crossing, served = set(), 0
    binding = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \S+ symbol `([^']+)'")
    for file in tmp_path.glob("bind.*"):
        with file.open(errors="replace") as lines:
            for line in lines:
                if tree not in line or not (found := binding.search(line)):
                    continue
                source, target, symbol = found.groups()
                if "/torch/" in line:
                    crossing.add((source, target, symbol))
                served += "/torch_npu/" in source and target.startswith(tree)
    assert served > 50, f"the linker's record shows {served} symbols of torch_npu served by our libraries"
    assert not crossing, sorted(crossing)[:20]
