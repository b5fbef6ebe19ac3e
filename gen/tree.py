"""The files of an install tree that are not libraries or headers: what clients look for below ASCEND_HOME_PATH.

usage: tree.py TREE_DIR CANN_VERSION ARCHITECTURE
"""
from __future__ import annotations

import pathlib
import sys

from tables import write_if_changed

# Packages whose version.info clients read.
PACKAGES = [
    "runtime", "compiler", "toolkit", "opp", "opp_kernel", "opbase", "ops_math", "ops_nn", "ops_cv", "ops_transformer",
    "ops_legacy", "hccl", "hcomm", "metadef", "ge-executor", "ge-compiler",
]  # fmt: skip

# torch_npu demands runtime and compiler below ASCEND_HOME_PATH, and the directory ASCEND_OPP_PATH names. Each holds a file,
# since wheels carry no empty directories.
VERSIONED = ["runtime", "compiler", "opp", "toolkit"]
EMPTY = ["opp/built-in/op_impl", "opp/vendors", "tools"]

SET_ENV = """# Environment of the software Ascend NPU: source this file (bash, zsh, dash; from another directory in plain sh: set
# ASCEND_HOME_PATH to this directory first).
if [ -n "${BASH_SOURCE:-}" ]; then
  anynpu_self="$BASH_SOURCE"
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval 'anynpu_self="${(%):-%x}"'
else
  anynpu_self=""
fi
if [ -n "$anynpu_self" ]; then
  ASCEND_HOME_PATH="$(cd "$(dirname "$anynpu_self")" && pwd)"
fi
unset anynpu_self
if [ ! -d "${ASCEND_HOME_PATH:-}/lib64" ]; then
  echo "set_env.sh: set ASCEND_HOME_PATH to the directory of this file first" >&2
else
  export ASCEND_HOME_PATH
  export ASCEND_TOOLKIT_HOME="$ASCEND_HOME_PATH"
  export ASCEND_OPP_PATH="$ASCEND_HOME_PATH/opp"
  export ASCEND_AICPU_PATH="$ASCEND_HOME_PATH"
  export TOOLCHAIN_HOME="$ASCEND_HOME_PATH/toolkit"
  export LD_LIBRARY_PATH="$ASCEND_HOME_PATH/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export PYTHONPATH="$ASCEND_HOME_PATH/python/site-packages${PYTHONPATH:+:$PYTHONPATH}"
  export PATH="$ASCEND_HOME_PATH/bin${PATH:+:$PATH}"
fi
"""


def main(tree_dir: str, version: str, arch: str) -> None:
    tree = pathlib.Path(tree_dir)
    write_if_changed(tree / "set_env.sh", SET_ENV)
    info = f"Version={version}\nproduct=AnyNPU\n"
    for place in [f"share/info/{package}" for package in PACKAGES] + VERSIONED:
        write_if_changed(tree / place / "version.info", info)
    for directory in EMPTY:
        write_if_changed(tree / directory / "README", "Nothing is installed here.\n")
    write_if_changed(
        tree / "ascend_toolkit_install.info",
        f"package_name=Ascend-cann-toolkit\nversion={version}\ninnerversion=AnyNPU\narch={arch}\nos=linux\n",
    )
    write_if_changed(tree / "version.cfg", f"toolkit_installed_version=[{version}]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
