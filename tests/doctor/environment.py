"""Environments for the doctor, built in a folder: a root with /proc, /dev, /etc and /usr/local/Ascend, libraries made by the C compiler,
packages as folders with metadata, and variables. `healthy()` is whole; each breaking function takes one thing away.

    env = Environment(folder).healthy()
    env.variables["ASCEND_RT_VISIBLE_DEVICES"] = "1,0"
    done = env.doctor("-q")
"""
from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

# An AscendCL that answers as the variables say, so that a test chooses what the library reports.
ASCENDCL = r"""
#include <stdlib.h>
static int number(const char* name, int otherwise) { const char* v = getenv(name); return v ? atoi(v) : otherwise; }
int aclrtGetDeviceCount(unsigned* count) { if (number("FAKE_CRASH", 0)) abort(); *count = number("FAKE_COUNT", 2); return number("FAKE_CODE", 0); }
const char* aclrtGetSocName(void) { return "Ascend910B4"; }
const char* aclGetRecentErrMsg(void) { return "EE1001: told by the test"; }
int aclrtMalloc(void** p, unsigned long n, int k) { (void)p; (void)n; (void)k; return 0; }
"""
DCMI = r"""
#include <stdlib.h>
int dcmi_init(void) { const char* v = getenv("FAKE_DCMI"); return v ? atoi(v) : 0; }
"""
SMI = """#!/bin/sh
[ -z "$FAKE_SMI_CODE" ] || { echo "dcmi module initialize failed. ret is -8005"; exit $FAKE_SMI_CODE; }
if [ "$2" = -t ] && [ -n "$FAKE_COMPATIBILITY" ]; then
  printf '\tNPU ID                         : %s\n\tCompatibility                  : %s\n' "$5" "$FAKE_COMPATIBILITY"
  exit 0
fi
cat <<'END'
+------------------------------------------------------------------------------------------------+
| npu-smi 25.5.2                   Version: 25.5.2                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
{chips}
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
{processes}
+===========================+===============+====================================================+
END
"""


@functools.lru_cache(maxsize=None)
def library(source: str, *options: str) -> bytes:
    """A shared library, compiled once a run."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "lib.so")
        command = ["cc", "-shared", "-fPIC", "-O0", "-x", "c", "-", "-o", str(out), *options]
        subprocess.run(command, input=source.encode(), check=True, capture_output=True)
        return out.read_bytes()


def for_another_processor(data: bytes) -> bytes:
    """The same ELF file with the other machine's number in its header."""
    other = 183 if struct.unpack_from("<H", data, 18)[0] == 62 else 62
    return data[:18] + struct.pack("<H", other) + data[20:]


@dataclasses.dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def first_line(self) -> str:
        return self.out.split("\n", 1)[0]


class Environment:
    def __init__(self, folder: pathlib.Path, program: str, python: str):
        self.folder, self.program, self.python = folder, program, python
        self.root = folder / "root"
        self.site = folder / "site"
        self.bin = folder / "bin"
        self.home = self.root / "usr/local/Ascend/ascend-toolkit/latest"
        self.driver = self.root / "usr/local/Ascend/driver"
        self.variables: dict[str, str] = {}
        self.chips = [[0, "910B4", "OK", 2922, 32768], [1, "910B4", "OK", 2922, 32768]]
        self.processes: list[str] = []
        self.scripts: list[str] = []
        for path in (self.root, self.site, self.bin):
            path.mkdir(parents=True)

    # Building.

    def write(self, path: pathlib.Path, content: str | bytes = "") -> pathlib.Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def package(self, name: str, version: str, *, site: pathlib.Path | None = None, cuda: str | None = None, requires: str = "") -> None:
        site = site or self.site
        source = f"__version__ = '{version}'\ncuda = {cuda!r}\n"
        if name in ("torch", "torch_npu"):
            self.write(site / name / "__init__.py", "")
            self.write(site / name / "version.py", source)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (f"Requires-Dist: {requires}\n" if requires else "")
        self.write(site / f"{name}-{version}.dist-info" / "METADATA", metadata)

    def torch(self, version: str, npu: str | None = None, *, requires: bool = True) -> None:
        for old in [*self.site.glob("torch*")]:
            shutil.rmtree(old)
        self.package("torch", version)
        if npu is not None:
            self.package("torch_npu", npu, requires=f"torch=={version.split('+')[0]}" if requires else "")

    def cann(self, version: str) -> None:
        self.write(self.home / "share/info/runtime/version.info", f"Version={version}\n")

    def toolkit(self, home: pathlib.Path) -> None:
        for part in ("runtime", "compiler", "opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b"):
            (home / part).mkdir(parents=True, exist_ok=True)
        self.write(home / "lib64/libascendcl.so", library(ASCENDCL))
        self.write(home.parent / "set_env.sh")

    def proc(self, name: str, text: str) -> None:
        self.write(self.root / "proc" / name, text)

    def shared_memory(self, size: str) -> None:
        self.proc("mounts", f"proc /proc proc rw 0 0\nshm /dev/shm tmpfs rw,nosuid,nodev,size={size} 0 0\n")

    def limits(self, files: int = 65536, processes: int = 65536) -> None:
        self.proc("self/limits", f"Limit                     Soft Limit           Hard Limit           Units\n"
                                 f"Max processes             {processes:<20} {processes:<20} processes\n"
                                 f"Max open files            {files:<20} 1048576              files\n")

    def listening(self, *ports: int) -> None:
        lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
        for i, port in enumerate(ports):
            lines.append(f"   {i}: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 {4000 + i} 1 0")
            pid = self.root / "proc" / str(7000 + i)
            self.write(pid / "comm", "other_job\n")
            (pid / "fd").mkdir(parents=True, exist_ok=True)
            (pid / "fd" / "3").symlink_to(f"socket:[{4000 + i}]")
        self.proc("net/tcp", "\n".join(lines) + "\n")

    def healthy(self, torch: str = "2.9.0+cpu", npu: str | None = "2.9.0.post2", cann: str = "9.0.0") -> "Environment":
        """A whole machine with two cards, CANN, torch and torch_npu."""
        self.toolkit(self.home)
        self.cann(cann)
        self.write(self.driver / "version.info", "Version=25.5.2\n")
        self.write(self.driver / "lib64/libascend_hal.so", library("int hal;"))
        self.write(self.driver / "lib64/driver/libdcmi.so", library(DCMI))
        self.write(self.root / "etc/ascend_install.info", "Driver_Install_Path_Param=/usr/local/Ascend\nDriver_Install_Status=complete\n")
        self.write(self.root / "etc/os-release", 'PRETTY_NAME="Ubuntu 22.04"\n')
        for name in ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc"):
            self.write(self.root / "dev" / name)
        self.proc("modules", "drv_davinci_intf_host 1 0 - Live\n")
        self.shared_memory("16777216k")
        self.limits()
        self.listening()
        self.torch(torch, npu)
        for name in ("attrs", "cffi", "decorator", "protobuf", "psutil", "pyyaml", "scipy", "sympy"):
            self.package(name, "1.0")
        self.package("numpy", "1.26.4")
        self.variables = {
            "ASCEND_HOME_PATH": str(self.home), "ASCEND_TOOLKIT_HOME": str(self.home), "ASCEND_OPP_PATH": str(self.home / "opp"),
            "LD_LIBRARY_PATH": f"{self.home}/lib64:{self.driver}/lib64:{self.driver}/lib64/driver",
        }
        return self

    # Running.

    def smi(self) -> str:
        chips, width = [], 27
        for card, name, health, used, total in self.chips:
            chips.append(f"| {card:<5} {name:<20}| {health:<14}| 89.9        39                0    / 0             |")
            chips.append(f"| 0{'':<{width - 2}}| 0000:41:00.0  | 0           0    / 0          {used:<5}/ {total:<13}|")
            chips.append("+===========================+===============+====================================================+")
        return SMI.replace("{chips}", "\n".join(chips)).replace("{processes}", "\n".join(self.processes) or "| No running processes found in NPU 0 |")

    def environment(self) -> dict[str, str]:
        if not (self.bin / "npu-smi").exists() and "no-smi" not in self.variables:
            self.write(self.bin / "npu-smi", self.smi()).chmod(0o755)
        base = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder), "PYTHONPATH": str(self.site), "LC_ALL": "C"}
        return {**base, **{k: v for k, v in self.variables.items() if k != "no-smi"}}

    def doctor(self, *words: str, cwd: pathlib.Path | None = None) -> Done:
        command = [self.program, "doctor", "--root", str(self.root), "--python", self.python, *words, *self.scripts]
        # From a folder of its own, so that nothing of ours is on the interpreter's path.
        work = cwd or self.folder / "work"
        work.mkdir(exist_ok=True)
        run = subprocess.run(command, capture_output=True, text=True, env=self.environment(), cwd=work, timeout=120)
        return Done(run.returncode, run.stdout, run.stderr)
