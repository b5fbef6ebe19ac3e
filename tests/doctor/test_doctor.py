"""40 broken environments and 10 healthy ones: the doctor names the cause in its first line, and says nothing about the healthy ones."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from environment import ASCENDCL, PYTHON, Environment, for_another_processor, library

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
FAULTS: dict[str, tuple] = {}  # name of the case -> (breaking function, check, words of the cause)


def fault(check: str, *words: str):
    """Declares a way to break a healthy environment: which check has to name it, and what its first line has to say."""
    def declare(function):
        FAULTS[function.__name__] = (function, check, words)
        return function
    return declare


def variables(env: Environment, **values: str) -> None:
    env.variables.update(values)


# Machine and driver.

@fault("nouveau-loaded", "nouveau")
def nouveau(env): env.proc("modules", "nouveau 1 0 - Live\ndrv_davinci_intf_host 1 0 - Live\n")


@fault("shm-small", "/dev/shm", "64 MiB")
def small_shared_memory(env): env.shared_memory("65536k")


@fault("ulimit-files", "256 files")
def few_files(env): env.limits(files=256)


@fault("ulimit-processes", "100 processes")
def few_processes(env): env.limits(processes=100)


@fault("container-without-devices", "--gpus")
def container_without_cards(env):
    env.write(env.root / ".dockerenv")
    shutil.rmtree(env.root / "dev")


@fault("driver-missing", "/usr/local/Ascend/driver")
def driver_not_mounted(env):
    env.write(env.folder / "other/libascend_hal.so", library("int hal;"))
    shutil.rmtree(env.driver)
    env.variables["LD_LIBRARY_PATH"] += f":{env.folder}/other"


@fault("driver-incomplete", "Driver_Install_Status=start")
def driver_half_installed(env): env.write(env.root / "etc/ascend_install.info", "Driver_Install_Path_Param=/usr/local/Ascend\nDriver_Install_Status=start\n")


@fault("nodes-missing", "/dev/davinci_manager")
def manager_node_missing(env): (env.root / "dev/davinci_manager").unlink()


@fault("node-permission", "davinci0")
def node_is_no_node(env):
    # Root may open everything; a link to nowhere cannot be opened by anybody.
    (env.root / "dev/davinci0").unlink()
    (env.root / "dev/davinci0").symlink_to("/nowhere/davinci0")


@fault("driver-library-missing", "libascend_hal.so")
def hal_missing(env): (env.driver / "lib64/libascend_hal.so").unlink()


@fault("dcmi-fails", "-8005")
def driver_does_not_answer(env): variables(env, FAKE_DCMI="-8005")


@fault("npu-smi-fails", "dcmi module initialize failed")
def smi_fails(env): variables(env, FAKE_SMI_CODE="187")


@fault("cards-without-driver", "1 Ascend card is on the PCI bus")
def card_without_driver(env):
    shutil.rmtree(env.driver)
    (env.root / "etc/ascend_install.info").unlink()
    shutil.rmtree(env.root / "dev")
    env.write(env.root / "sys/bus/pci/devices/0000:41:00.0/vendor", "0x19e5\n")
    env.write(env.root / "sys/bus/pci/devices/0000:41:00.0/class", "0x120000\n")


@fault("kernel-modules-missing", "built for kernel 5.15.0-60-generic and this one is 5.15.0-119-generic")
def kernel_updated(env):
    env.proc("modules", "nvme 1 0 - Live\n")
    env.proc("sys/kernel/osrelease", "5.15.0-119-generic\n")
    env.write(env.root / "lib/modules/5.15.0-60-generic/updates/drv_davinci_intf_host.ko")
    (env.root / "lib/modules/5.15.0-119-generic/updates").mkdir(parents=True)


@fault("kernel-modules-missing", "none of its modules")
def modules_not_loaded(env): env.proc("modules", "nvme 1 0 - Live\n")


@fault("firmware-mismatch", "7.9.0.5.220", "[7.0.0,7.8.99]")
def firmware_too_new(env):
    env.write(env.driver / "version.info", "Version=25.5.2\ncompatible_version_fw=[7.0.0,7.8.99]\n")
    env.write(env.driver.parent / "firmware/version.info", "Version=7.9.0.5.220\n")


@fault("firmware-mismatch", "NOK")
def firmware_refused(env): variables(env, FAKE_COMPATIBILITY="NOK")


@fault("driver-too-old", "24.1.rc2", "CANN 9.0.0", "25.0")
def driver_of_another_year(env): env.write(env.driver / "version.info", "Version=24.1.rc2\n")


@fault("card-unhealthy", "card 1", "Alarm")
def unhealthy_card(env): env.chips[1][2] = "Alarm"


@fault("hbm-taken", "30000 of 32768", "train_old")
def memory_taken(env):
    env.chips[0][3] = 30000
    env.processes = ["| 0       0                 | 4711          | train_old                | 27000                   |"]


# The toolkit.

@fault("set-env-not-sourced", "environment is not set")
def not_sourced(env):
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"):
        del env.variables[name]
    env.variables["LD_LIBRARY_PATH"] = f"{env.driver}/lib64"


@fault("cann-missing", "libascendcl.so cannot be found")
def no_cann(env):
    not_sourced(env)
    shutil.rmtree(env.home)


@fault("home-path-wrong", "does not exist")
def home_wrong(env): variables(env, ASCEND_HOME_PATH=str(env.home) + "-old", ASCEND_TOOLKIT_HOME=str(env.home) + "-old")


@fault("home-path-wrong", "compiler")
def home_incomplete(env): shutil.rmtree(env.home / "compiler")


@fault("opp-path-missing", "ASCEND_OPP_PATH is not set")
def opp_unset(env): del env.variables["ASCEND_OPP_PATH"]


@fault("homes-differ", "two set_env.sh")
def two_set_env(env):
    other = env.root / "usr/local/Ascend/other/latest"
    env.toolkit(other)
    variables(env, ASCEND_TOOLKIT_HOME=str(other))


@fault("library-missing", "libascendcl.so is not on the loader's path")
def library_path_lost(env): variables(env, LD_LIBRARY_PATH=f"{env.driver}/lib64")


@fault("library-of-another-toolkit", "lists another installation first")
def another_toolkit_first(env):
    other = env.root / "usr/local/Ascend/other/latest"
    env.toolkit(other)
    env.variables["LD_LIBRARY_PATH"] = f"{other}/lib64:" + env.variables["LD_LIBRARY_PATH"]


@fault("stub-library-first", "100039")
def stub_first(env):
    env.write(env.home / "devlib/libascendcl.so", library(ASCENDCL))
    env.variables["LD_LIBRARY_PATH"] = f"{env.home}/devlib:" + env.variables["LD_LIBRARY_PATH"]


@fault("library-architecture", "this machine is")
def foreign_library(env): env.write(env.home / "lib64/libascendcl.so", for_another_processor(library(ASCENDCL)))


@fault("library-unloadable", "undefined symbol: function_of_another_release")
def abi_of_library(env):
    env.write(env.home / "lib64/libascendcl.so", library("void function_of_another_release(void); void f(void) { function_of_another_release(); }", "-Wl,-z,now"))


@fault("library-unloadable", "signal")
def crashing_library(env): variables(env, FAKE_CRASH="1")


@fault("kernels-missing", "Cannot find bin of op")
def no_kernels(env): shutil.rmtree(env.home / "opp/built-in/op_impl/ai_core/tbe/kernel")


@fault("ascend-home-order", "$ASCEND_HOME was empty")
def home_after_path(env): env.variables["LD_LIBRARY_PATH"] = "/runtime/lib64:" + env.variables["LD_LIBRARY_PATH"]


@fault("no-card-visible", "507899", "ACL_ERROR_RT_DRV_INTERNAL_ERROR")
def driver_error(env): variables(env, FAKE_CODE="507899")


# Python.

@fault("python-missing", "not found")
def no_python(env): env.python = str(env.folder / "no-python")


@fault("torch-missing", "torch is not installed")
def no_torch(env):
    for old in env.site.glob("torch*"):
        shutil.rmtree(old)


@fault("torch-npu-missing", "has no attribute 'npu'")
def no_torch_npu(env): env.torch("2.9.0+cpu")


@fault("cuda-torch", "CUDA build")
def cuda_build(env):
    env.torch("2.9.0+cu128", "2.9.0.post2")
    env.write(env.site / "torch/version.py", "__version__ = '2.9.0+cu128'\ncuda: str = '12.8'\n")


@fault("two-torches", "stands 2 times")
def two_torches(env):
    env.package("torch", "2.9.0+cpu", site=env.folder / "second")
    variables(env, PYTHONPATH=f"{env.site}:{env.folder}/second")


@fault("module-shadowed", "torch_npu.py")
def shadowed(env): env.write(env.folder / "work/torch_npu.py", "print('mine')\n")


@fault("torch-mismatch", "built for torch 2.9.0, but torch is 2.8.0")
def versions_apart(env):
    env.torch("2.8.0+cpu")
    env.package("torch_npu", "2.9.0.post2", requires="torch==2.9.0")


@fault("python-mismatch", "is made for Python")
def python_too_new(env):
    env.torch("2.2.0", "2.2.0")
    env.cann("8.0.RC1")


@fault("cann-mismatch", "CANN 7.0.0 is set up")
def cann_too_old(env): env.cann("7.0.0")


@fault("torch-npu-elsewhere", "an update of one leaves the other behind")
def apart(env):
    (env.folder / "second").mkdir()
    for name in ("torch_npu", "torch_npu-2.9.0.post2.dist-info"):
        shutil.move(env.site / name, env.folder / "second" / name)
    variables(env, PYTHONPATH=f"{env.site}:{env.folder}/second")


@fault("wheel-architecture", "this machine is")
def foreign_wheel(env): env.write(env.site / "torch_npu/lib/libtorch_npu.so", for_another_processor(library("int x;")))


@fault("abi-mismatch", "aclrtFunctionOfTomorrow")
def abi_of_wheel(env):
    env.write(env.site / "torch_npu/lib/libtorch_npu.so", library("int aclrtFunctionOfTomorrow(void); int aclrtMalloc(void**, unsigned long, int); int f(void) { void* p; return aclrtFunctionOfTomorrow() + aclrtMalloc(&p, 1, 0); }"))


@fault("numpy-too-new", "NumPy 2.1.0")
def new_numpy(env):
    if PYTHON not in ("3.8", "3.9", "3.10", "3.11"):
        pytest.skip("torch 2.1 has no wheel for this Python, which is another fault")
    env.torch("2.1.0", "2.1.0")
    env.cann("7.0.0")
    shutil.rmtree(env.site / "numpy-1.26.4.dist-info")
    env.package("numpy", "2.1.0")


@fault("compiler-packages-missing", "decorator", "EH9999")
def compiler_packages(env):
    for name in ("decorator", "sympy"):
        shutil.rmtree(env.site / f"{name}-1.0.dist-info")


@fault("autoload-off", "TORCH_DEVICE_BACKEND_AUTOLOAD=0")
def autoload_off(env): variables(env, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


# Variables, network, tuning.

@fault("visible-empty", "Ray")
def visible_empty(env): variables(env, **{VISIBLE: ""})


@fault("visible-malformed", "0, 1")
def visible_malformed(env): variables(env, **{VISIBLE: "0, 1"})


@fault("visible-unordered", "1,0", "207004")
def visible_unordered(env): variables(env, **{VISIBLE: "1,0"})


@fault("visible-beyond-cards", "names card 9")
def visible_beyond(env): variables(env, **{VISIBLE: "0,9"})


@fault("cuda-visible-only", "no effect on NPUs")
def cuda_visible(env): variables(env, CUDA_VISIBLE_DEVICES="0")


@fault("local-rank-beyond-cards", "LOCAL_RANK is 4")
def rank_beyond_cards(env): variables(env, LOCAL_RANK="4")


@fault("rank-beyond-world", "RANK=2 and WORLD_SIZE=2")
def rank_beyond_world(env): variables(env, RANK="2", WORLD_SIZE="2")


@fault("setting-out-of-range", "HCCL_CONNECT_TIMEOUT=60", "120 to 7200")
def short_timeout(env): variables(env, HCCL_CONNECT_TIMEOUT="60")


@fault("interface-missing", "HCCL_SOCKET_IFNAME==nosuch0")
def no_interface(env): variables(env, HCCL_SOCKET_IFNAME="=nosuch0")


@fault("port-taken", "port 60003", "other_job (pid 7000)")
def port_60003(env): env.listening(60003)


@fault("port-taken", "port 16666", "other_job")
def port_16666(env): env.listening(16666)


@fault("rendezvous-incomplete", "MASTER_PORT is not")
def no_master_port(env): variables(env, MASTER_ADDR="127.0.0.1")


@fault("rank-table-missing", "RANK_TABLE_FILE")
def no_rank_table(env): variables(env, RANK_TABLE_FILE=str(env.folder / "none.json"))


@fault("alloc-conf", "max_split_size_mb")
def alloc_conf(env): variables(env, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True,max_split_size_mb:64")


@fault("alloc-conf", "garbage")
def alloc_conf_unreadable(env): variables(env, PYTORCH_NPU_ALLOC_CONF="garbage")


@fault("alloc-conf", "max_split_size_mb:5")
def alloc_conf_small(env): variables(env, PYTORCH_NPU_ALLOC_CONF="max_split_size_mb:5")


@fault("saturation-refused", "INF_NAN_MODE_ENABLE=0")
def saturation(env): variables(env, INF_NAN_MODE_ENABLE="0")


@fault("log-folder", "does not exist")
def no_log_folder(env): variables(env, ASCEND_PROCESS_LOG_PATH=str(env.folder / "logs/plog"))


@fault("launch-blocking", "waits for each operator")
def blocking(env): variables(env, ASCEND_LAUNCH_BLOCKING="1")


@fault("log-verbose", "PROFILING_MODE=true")
def profiling_left_on(env): variables(env, PROFILING_MODE="true")


@fault("omp-threads", "OMP_NUM_THREADS=4000")
def many_threads(env): variables(env, OMP_NUM_THREADS="4000", LOCAL_WORLD_SIZE="8")


# Scripts.

@fault("script-unreadable", "cannot be read")
def unreadable_script(env): env.scripts = [str(env.folder / "none.sh")]


@fault("launcher-in-launcher", "mpirun starts torch.distributed.run")
def npu_torchrun(env):
    script = env.write(env.folder / "npu_torchrun.sh", "#!/bin/bash\nexport ASCEND_HOME=/usr/local/Ascend\nmpirun -n $1 \\\n  --allow-run-as-root \\\n  python -m torch.distributed.run \\\n  --nproc_per_node=$1 $6\n")
    env.scripts = [str(script)]


@fault("script-home-order", "before it is set")
def script_order(env): env.scripts = [str(env.write(env.folder / "env.sh", "export LD_LIBRARY_PATH=$ASCEND_HOME/runtime/lib64:$LD_LIBRARY_PATH\nexport ASCEND_HOME=/usr/local/Ascend\n"))]


@fault("script-nccl", "nccl")
def nccl(env): env.scripts = [str(env.write(env.folder / "train.py", "import torch\ntorch.distributed.init_process_group(backend='nccl')\n"))]


@fault("dataloader-workers", "num_workers=4000")
def many_workers(env): env.scripts = [str(env.write(env.folder / "train.py", "import torch\nloader = DataLoader(d, num_workers=4000, prefetch_factor=4)\n"))]


@fault("dataloader-workers", "in each of 4000 ranks")
def workers_of_all_ranks(env):
    variables(env, LOCAL_WORLD_SIZE="4000", OMP_NUM_THREADS="1")
    env.scripts = [str(env.write(env.folder / "train.py", "import torch\nloader = DataLoader(d, num_workers=1, prefetch_factor=4)\n"))]


@fault("dataloader-workers", "prefetch_factor=5000")
def much_prefetched(env): env.scripts = [str(env.write(env.folder / "train.py", f"import torch\nloader = DataLoader(d, num_workers=1, prefetch_factor=5000)\n"))]


# Several at once: the first line names the lowest, all are reported.
SEVERAL = {
    "sourced_nothing_and_wrong_torch": ["not_sourced", "versions_apart"],
    "driver_and_list": ["hal_missing", "visible_unordered"],
    "container_and_shm": ["container_without_cards", "small_shared_memory"],
    "foreign_library_and_cuda_torch": ["foreign_library", "cuda_build"],
    "no_torch_npu_and_settings": ["no_torch_npu", "short_timeout"],
    "health_and_list": ["unhealthy_card", "visible_malformed"],
    "two_variables_and_port": ["alloc_conf", "short_timeout", "port_60003"],
    "home_wrong_and_blocking": ["home_wrong", "blocking"],
    "wheel_and_threads": ["foreign_wheel", "many_threads"],
    "rendezvous_and_script": ["no_master_port", "npu_torchrun", "profiling_left_on"],
}

HEALTHY = {
    "plain": lambda env: None,
    "firmware_in_range": lambda env: (env.write(env.driver / "version.info", "Version=25.5.2\ncompatible_version_fw=[7.0.0,7.8.99]\n"), variables(env, FAKE_COMPATIBILITY="OK"),
                                      env.write(env.driver.parent / "firmware/version.info", "Version=7.8.99.5.220\n")),
    "newer_driver": lambda env: env.write(env.driver / "version.info", "Version=26.2.rc1\n"),
    "torch_2_14": lambda env: (env.torch("2.14.0+cpu"), env.cann("9.2.0"), env.package("torch_npu", "2.14.0", requires="torch==2.14.0.*")),
    "visible_list": lambda env: variables(env, **{VISIBLE: "0,1"}),
    "one_card_visible": lambda env: variables(env, **{VISIBLE: "1"}, LOCAL_RANK="0"),
    "torchrun": lambda env: variables(env, MASTER_ADDR="127.0.0.1", MASTER_PORT="29500", RANK="1", WORLD_SIZE="2", LOCAL_RANK="1"),
    "hccl_settings": lambda env: variables(env, HCCL_CONNECT_TIMEOUT="600", HCCL_SOCKET_IFNAME="lo", HCCL_IF_IP="127.0.0.1", HCCL_NPU_SOCKET_PORT_RANGE="16666-16700"),
    "moved_port": lambda env: (env.listening(60003), variables(env, HCCL_IF_BASE_PORT="61000")),
    "torch_2_13": lambda env: (env.torch("2.13.0+cpu", "2.13.0"), env.cann("9.1.0"), env.package("torch_npu", "2.13.0", requires="torch==2.13.0.*")),
    "allocator": lambda env: variables(env, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True"),
    "good_scripts": lambda env: setattr(env, "scripts", [str(env.write(env.folder / "run.sh", "# mpirun with torchrun is wrong\nsource set_env.sh\ntorchrun --nproc_per_node=2 train.py\n")),
                                                         str(env.write(env.folder / "train.py", "import torch\ninit_process_group('hccl')\nDataLoader(d, num_workers=1, prefetch_factor=4)\n"))]),
    "home_of_links": lambda env: (env.write(env.folder / "lib64/libascendcl.so", library(ASCENDCL)), shutil.rmtree(env.home / "lib64"), (env.home / "lib64").symlink_to(env.folder / "lib64"),
                                  variables(env, LD_LIBRARY_PATH=f"{env.folder}/lib64:{env.driver}/lib64:{env.driver}/lib64/driver")),
    "module_acl_of_the_toolkit": lambda env: (env.write(env.home / "python/site-packages/acl.py"), variables(env, PYTHONPATH=f"{env.home}/python/site-packages:{env.site}")),
    "container_with_cards": lambda env: env.write(env.root / ".dockerenv"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_first_line_names_the_cause(env, name):
    breaks, check, words = FAULTS[name]
    breaks(env.healthy())
    done = env.doctor()
    assert re.match(rf"(error|warning): {check}: ", done.first_line), done.out + done.err
    for word in words:
        assert word in done.first_line, done.first_line
    assert done.code == (2 if done.first_line.startswith("error") else 1), done.out


@pytest.mark.parametrize("name", SEVERAL)
def test_several_faults_are_all_reported(env, name):
    env.healthy()
    for one in SEVERAL[name]:
        FAULTS[one][0](env)
    done = env.doctor("--json")
    found = [f["check"] for f in json.loads(done.out)["findings"]]
    assert set(FAULTS[one][1] for one in SEVERAL[name]) <= set(found), done.out
    assert found[0] == FAULTS[SEVERAL[name][0]][1], found


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_is_silent(env, name):
    HEALTHY[name](env.healthy())
    done = env.doctor("--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_every_check_is_broken_by_some_case(program):
    listed = subprocess.run([program, "doctor", "--list", "--json"], capture_output=True, text=True, check=True)
    names = {check["check"] for check in json.loads(listed.stdout)}
    assert names == {check for _, check, _ in FAULTS.values()}


def test_docs_list_the_checks(program):
    listed = subprocess.run([program, "doctor", "--list", "--markdown"], capture_output=True, text=True, check=True).stdout
    guide = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs/guide/doctor.md").read_text(encoding="utf-8")
    assert listed in guide, "docs/guide/doctor.md: the list between the markers is not that of `anynpu doctor --list --markdown`"


def test_fix_does_what_it_shows_and_only_when_asked(env):
    env.healthy()
    FAULTS["visible_unordered"][0](env)
    FAULTS["no_log_folder"][0](env)
    before = sorted(str(p) for p in env.folder.rglob("*"))
    env.doctor()
    work = env.folder / "work"
    assert sorted(str(p) for p in env.folder.rglob("*") if p not in (work, env.bin / "npu-smi")) == before, "nothing may change unasked"
    done = env.doctor("--fix", "-q")
    script = work / "anynpu-doctor-fix.sh"
    assert f"export {VISIBLE}='0,1'" in done.out and (env.folder / "logs/plog").is_dir()
    shell = subprocess.run(["sh", "-c", f". {script}; printf %s ${VISIBLE}"], capture_output=True, text=True, env=env.environment())
    assert shell.stdout == "0,1"
    script.write_text("mine\n")
    env.doctor("--fix", "-q")
    assert script.read_text() == "mine\n", "a file that is not the doctor's stays"


def test_redact_takes_out_names_and_secrets(env):
    env.healthy()
    variables(env, TORCH_API_TOKEN="s3cr3t-value", MASTER_ADDR="203.0.113.77", MASTER_PORT="29500", USER="somebody-here",
              ANYNPU_NOTE="tcp://198.51.100.4:29500 127.0.0.1 9.1.0.1", ASCEND_LICENSE_KEY="k3y-value")
    variables(env, ANYNPU_FOLDER="/home/another-user/lib")
    host = os.uname().nodename
    for form in ("--markdown", "--json"):
        shown = env.doctor(form).out
        assert "203.0.113.77" in shown and str(env.folder) in shown and "s3cr3t-value" not in shown
        hidden = env.doctor(form, "--redact").out
        assert "127.0.0.1" in hidden and "9.1.0.1" in hidden and "k3y-value" not in shown
        assert "another-user" in shown and "another-user" not in hidden
        assert re.search(rf"\b{re.escape(host)}\b", shown) and not re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])", hidden), "a host's name of two letters too"
        for word in ("203.0.113.77", "198.51.100.4", str(env.folder), "s3cr3t-value", "k3y-value", "somebody-here", *([host] if len(host) > 2 else [])):
            assert word not in hidden, word
    json.loads(env.doctor("--json", "--redact").out)


def test_hostile_names_and_broken_files_end_nothing(env):
    env.healthy()
    bad = "a\nb\x1b[31m|`$(x)`'\""
    variables(env, LD_LIBRARY_PATH=f"{env.folder}/{bad}:" + env.variables["LD_LIBRARY_PATH"], HCCL_BUFFSIZE="9" * 400, OMP_NUM_THREADS="-1", RANK="x", LOCAL_WORLD_SIZE="")
    env.proc("net/tcp", "\x00\xff garbage\n" * 50)
    env.write(env.home / "lib64/libascendcl.so", library(ASCENDCL)[:100])
    env.write(env.site / "torch_npu/lib/libtorch_npu.so", library(ASCENDCL)[:3000])
    for form in ("--json", "--markdown", "-q"):
        done = env.doctor(form)
        assert done.code in (1, 2), done.err


def test_a_hanging_program_is_left(env):
    env.healthy()
    env.write(env.bin / "npu-smi", "#!/bin/sh\nexec sleep 600\n").chmod(0o755)
    done = env.doctor("-q")
    assert "npu-smi-fails" in done.first_line and "10 s" in done.first_line


def test_a_program_that_closes_its_output_and_goes_on_is_left(env):
    env.healthy()
    env.write(env.bin / "npu-smi", "#!/bin/sh\nexec sleep 600 >&-\n").chmod(0o755)
    done = env.doctor("-q")
    assert "npu-smi-fails" in done.first_line and "10 s" in done.first_line


def test_the_software_machine_is_examined_as_run_sets_it_up(program, tmp_path):
    if not (pathlib.Path(program).parent.parent / "lib64/libascendcl.so").exists():
        pytest.skip("the program stands outside an install tree")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND", "LD_LIBRARY", "ANYNPU"))}
    done = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True, env={**plain, "ANYNPU_MACHINE": f"doctor-{os.getpid()}", "ANYNPU_CARDS": "3"}, timeout=120)
    shown = json.loads(done.stdout)
    assert shown["portrait"]["toolkit"]["CANN"].startswith("9.1.0 (software"), done.stdout
    assert shown["portrait"]["toolkit"]["cards by AscendCL"] == "3 (code 0)"
    assert {f["layer"] for f in shown["findings"]} <= {"machine", "python", "network"}, shown["findings"]


def test_matrix_says_where_it_comes_from(program):
    out = subprocess.run([program, "doctor", "--matrix"], capture_output=True, text=True, check=True).stdout
    for version in ("2.1.0", "2.5.1", "2.9.0.post2", "2.13.0", "2.14.0"):
        assert re.search(rf"^{re.escape(version)} ", out, re.M), version
    minors = {int(m) for m in re.findall(r"^2\.(\d+)\.", out, re.M)}
    assert minors == set(range(1, 15)), "2.1 to 2.14"
    assert re.search(r"^9\.1 +25\.2,", out, re.M), "drivers of a CANN release"
