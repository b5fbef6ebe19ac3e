"""Software Ascend NPUs inside a running Python, for example a notebook:

    import anynpu            # before torch_npu
    import torch, torch_npu

does for this process what `anynpu run` does for a command: it sets the environment and loads our libraries by their paths,
since the search path of a running process cannot be changed. Cards and their kind are chosen by the variables ANYNPU_CARDS,
ANYNPU_SOC, ANYNPU_HBM, ANYNPU_CANN and ANYNPU_MACHINE, set before the import.
"""
import ctypes
import os
import pathlib
import shlex
import subprocess
import sys
import warnings

__all__ = ["tree"]


def _find_tree() -> pathlib.Path:
    for folder in pathlib.Path(__file__).resolve().parents:
        candidate = folder / "share" / "anynpu"
        if (candidate / "lib64" / "libascendcl.so").exists():
            return candidate
    raise ImportError("anynpu: its libraries are missing beside this package; install it again with pip.")


def _environment(tree: pathlib.Path) -> "dict[str, str]":
    """What the launcher would set; one program decides it for both."""
    done = subprocess.run([str(tree / "bin" / "anynpu"), "env"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        raise ImportError(done.stderr.strip() or "anynpu env failed")
    return dict(word.split("=", 1) for line in done.stdout.splitlines() for word in shlex.split(line)[1:])


def _activate(tree: pathlib.Path) -> None:
    libraries = tree / "lib64"
    if str(libraries) in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        return  # started by `anynpu run`, or by a parent that did this
    if "torch_npu" in sys.modules:
        warnings.warn("anynpu was imported after torch_npu, which has already looked for its libraries. Import anynpu first.")
    os.environ.update(_environment(tree))
    python = str(tree / "python" / "site-packages")
    if python not in sys.path:
        sys.path.insert(0, python)
    # Local scope is enough: the loader finds a library that is loaded already by its soname.
    for library in sorted(libraries.glob("*.so")):
        ctypes.CDLL(str(library), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    if "ANYNPU_ANNOUNCED" not in os.environ:
        os.environ["ANYNPU_ANNOUNCED"] = "1"
        print("anynpu: software NPUs; they compute on this computer's processor.", file=sys.stderr)


tree = _find_tree()
_activate(tree)
