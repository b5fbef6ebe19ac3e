"""The launcher and npu-smi as programs: environment, machines, exit status, speed limits that are printed and not timed."""
from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import uuid

import pytest
from built import find_program as program

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path):
    """Runs `anynpu` with a machine of its own and a clean environment."""
    name = "t" + uuid.uuid4().hex[:8]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANYNPU_", "ASCEND_", "LD_LIBRARY", "PYTHONPATH"))}
    env |= {"ANYNPU_MACHINE": name, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*words: str, **more) -> subprocess.CompletedProcess:
        return subprocess.run([program(), *words], env=env | more, capture_output=True, text=True, timeout=300)

    run.name, run.env = name, env
    yield run
    subprocess.run([program(), "down", "--machine", name], env=env, capture_output=True, timeout=300)


def test_exit_status_and_output_are_the_commands(machine):
    done = machine("run", "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert machine("run", "--", "/no/such/program").returncode == 127
    assert machine("run", "--", "/etc/passwd").returncode == 126
    assert machine("run").returncode == 2


def test_software_is_said_once_on_stderr(machine):
    done = machine("run", "--", program(), "run", "--", "true")
    assert done.returncode == 0 and done.stdout == ""
    assert len(re.findall("software", done.stderr)) == 1, done.stderr
    assert machine("run", "-q", "--", "true").stderr == ""


def test_words_of_the_command_stay_its_own(machine):
    done = machine("run", "-n", "3", "--", "sh", "-c", 'echo "$ANYNPU_CARDS $@"', "sh", "-n", "--soc", "--", "x")
    assert done.stdout == "3 -n --soc -- x\n"
    assert machine("run", "-n", "3", "echo", "-n", "a", "--", "--soc").stdout == "a -- --soc"
    assert machine("trace", "echo", "-n", "a", "--", "b").stdout.startswith("a -- b")


@pytest.mark.parametrize("option, value", [("-n", "0"), ("-n", "65"), ("-n", "two"), ("--soc", "Ascend1"), ("--hbm", "12Q"),
                                           ("--cann", "1.2.3"), ("--machine", "../x")])
def test_bad_options_are_refused_by_name(machine, option, value):
    done = machine("run", option, value, "--", "true")
    assert done.returncode == 2
    assert value in done.stderr, done.stderr


@pytest.mark.parametrize("words", [("--hmb", "2G", "--", "true"), ("--bogus", "true"), ("--bogus",)])
@pytest.mark.parametrize("command", ["run", "trace"])
def test_unknown_options_are_refused_by_name(machine, command, words):
    done = machine(command, *words)
    assert done.returncode == 2 and words[0] in done.stderr, done.stderr


def test_another_number_of_cards_is_an_error_while_the_machine_is_used(machine):
    holder = subprocess.Popen([program(), "run", "-n", "2", "--", "sh", "-c", "echo up; read line"], env=machine.env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert holder.stdout.readline() == "up\n"
        refused = machine("run", "-n", "4", "--", "true")
        assert refused.returncode == 2
        assert "2" in refused.stderr and "4" in refused.stderr and machine.name in refused.stderr
        assert machine("run", "--", "true").returncode == 0
    finally:
        holder.communicate("\n", timeout=30)
    assert machine("run", "-n", "4", "--", "true").returncode == 0


def test_up_keeps_a_machine_and_down_lets_it_go(machine):
    assert machine("up", "-n", "5").returncode == 0
    assert "Total Count                    : 5" in machine("smi", "info", "-l").stdout
    assert machine("down", "--machine", machine.name).returncode == 0
    assert "Total Count                    : 2" in machine("smi", "info", "-l").stdout
    # The same without its name, which up did not need either.
    assert machine("up", "-n", "5").returncode == 0
    assert machine("down").returncode == 0
    assert "Total Count                    : 2" in machine("smi", "info", "-l").stdout


def test_env_gives_a_shell_what_run_gives_a_command(machine):
    text = machine("env", "--soc", "Ascend910B3").stdout
    exported = dict(w.split("=", 1) for line in text.splitlines() for w in shlex.split(line)[1:])
    inside = machine("run", "--soc", "Ascend910B3", "--", "env").stdout.splitlines()
    for name, value in exported.items():
        assert f"{name}={value}" in inside, name


def test_chosen_cann_version_stands_in_the_version_files(machine):
    for version in ("9.1.0", "8.5.0"):
        home = machine("run", "--cann", version, "-q", "--", "sh", "-c", "echo $ASCEND_HOME_PATH").stdout.strip()
        files = list(pathlib.Path(home).glob("share/info/*/version.info"))
        assert files, home
        for file in files:
            assert f"Version={version}" in file.read_text(), file
        assert (pathlib.Path(home) / "lib64" / "libascendcl.so").exists()


def test_library_path_holds_only_vendor_names():
    tree = pathlib.Path(program()).parent.parent
    names = {f.name for f in (tree / "lib64").iterdir()}
    assert "libascendcl.so" in names
    private = {f.name for f in (tree / "anynpu" / "lib").iterdir()}
    strangers = {n for n in names if not n.endswith(".so") or n.startswith(("libnpu", "libhwy"))} | (names & private)
    assert not strangers


def test_npu_smi_prints_the_articles_idle_machine(machine):
    golden = (ROOT / "tools/smi/testdata/idle.txt").read_text()
    assert machine("smi", "info").stdout == golden
    assert machine("run", "-q", "--", "npu-smi", "info").stdout == golden


@pytest.mark.parametrize("words, status", [((), 215), (("bogus",), 211), (("info", "-t", "nothing", "-i", "0"), 211),
                                           (("info", "-t", "product", "-i", "0"), 217), (("info", "-t", "temp", "-i", "9"), 215),
                                           (("-v",), 0), (("info", "-m"), 0), (("info", "-t", "topo"), 0)])
def test_npu_smi_exit_status(machine, words, status):
    done = machine("run", "-q", "--", "npu-smi", *words)
    assert done.returncode == status, done.stdout


def test_dev_nodes_or_a_line_that_says_why_not(machine):
    done = machine("run", "-n", "3", "--dev-nodes", "--", "sh", "-c", "ls /dev/davinci[0-9]* 2>/dev/null; test -c /dev/null")
    assert done.returncode == 0, done.stderr
    if "cannot be shown" not in done.stderr:
        assert done.stdout.split() == ["/dev/davinci0", "/dev/davinci1", "/dev/davinci2"]
    assert not list(pathlib.Path("/dev").glob("davinci*"))


def test_links_refuse_a_real_installation(machine, tmp_path):
    prefix = tmp_path / "Ascend"
    assert machine("install", "--prefix", str(prefix)).returncode == 0
    assert (prefix / "ascend-toolkit/latest/lib64/libascendcl.so").exists()
    assert machine("install", "--prefix", str(prefix), "--remove").returncode == 0
    assert not list(prefix.rglob("*"))
    # A folder where a link of ours would stand; a toolkit without `latest`; a driver; a link to somebody's toolkit.
    for place in ("cann/set_env.sh", "ascend-toolkit/8.1.RC1/lib64/libascendcl.so", "driver/lib64/common/libc_sec.so", "nnal/atb/set_env.sh"):
        real = tmp_path / place.replace("/", "_") / place
        real.parent.mkdir(parents=True)
        real.write_text("theirs")
        there = real.parents[len(pathlib.Path(place).parts) - 1]
        before = sorted(there.rglob("*"))
        done = machine("install", "--prefix", str(there))
        assert done.returncode == 1 and str(there) in done.stderr and "not ours" in done.stderr, done.stderr
        assert sorted(there.rglob("*")) == before and real.read_text() == "theirs"
    linked = tmp_path / "linked"
    (linked / "ascend-toolkit").mkdir(parents=True)
    (linked / "ascend-toolkit/latest").symlink_to(tmp_path)
    assert machine("install", "--prefix", str(linked)).returncode == 1


def test_start_up_times_are_printed(machine, capsys):
    def best(*words: str) -> float:
        times = []
        for _ in range(10):
            began = time.perf_counter()
            assert machine(*words).returncode == 0
            times.append(time.perf_counter() - began)
        return min(times) * 1e3

    bare = best("version")
    with capsys.disabled():
        print(f"\n  anynpu run -- true: {best('run', '-q', '--', 'true'):.1f} ms, npu-smi info with 16 cards through it: "
              f"{best('run', '-q', '-n', '16', '--', 'npu-smi', 'info'):.1f} ms (starting a process alone: {bare:.1f} ms)")


def test_import_anynpu_does_the_same_in_a_running_python(machine):
    code = "import anynpu, ctypes, os, acl; print(acl.rt.get_device_count(), os.environ['ASCEND_HOME_PATH'] != '')"
    package = ROOT / "python"
    tree = pathlib.Path(program()).parent.parent
    # The package looks for share/anynpu above itself, as in an installed environment.
    prefix = pathlib.Path(machine.env["XDG_CACHE_HOME"]) / "env"
    (prefix / "share").mkdir(parents=True)
    (prefix / "share" / "anynpu").symlink_to(tree)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "anynpu").mkdir()
    (prefix / "lib" / "anynpu" / "__init__.py").write_text((package / "anynpu" / "__init__.py").read_text())
    done = subprocess.run([sys.executable, "-c", code], env=machine.env | {"PYTHONPATH": str(prefix / "lib"), "ANYNPU_CARDS": "3"},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(3, 0) True\n"
    assert "software" in done.stderr


def pythons() -> list[str]:
    found = []
    for minor in range(8, 15):
        for candidate in [f"python3.{minor}", *map(str, pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"))]:
            probe = subprocess.run(["sh", "-c", f"{candidate} -c 'import ctypes'"], capture_output=True)
            if probe.returncode == 0:
                found.append(candidate)
                break
    return found or [sys.executable]


@pytest.mark.parametrize("python", pythons())
def test_acl_module_counts_before_init_and_copies(machine, python):
    code = """
import acl, os
print(acl.rt.get_device_count(), acl.get_soc_name())
assert acl.init() == 0 and acl.rt.set_device(1) == 0
assert acl.rt.get_device() == (1, 0)
data = os.urandom(4096)
device, ret = acl.rt.malloc(4096, 0); assert ret == 0 and device
assert acl.rt.memcpy(device, 4096, acl.util.bytes_to_ptr(data), 4096, 1) == 0
back, ret = acl.rt.malloc_host(4096); assert ret == 0
stream, ret = acl.rt.create_stream(); assert ret == 0
assert acl.rt.memcpy_async(back, 4096, device, 4096, 2, stream) == 0
assert acl.rt.synchronize_stream(stream) == 0
assert acl.util.ptr_to_bytes(back, 4096) == data
free, total, ret = acl.rt.get_mem_info(1); assert ret == 0 and 0 < free < total
assert acl.rt.free(device) == 0 and acl.rt.free_host(back) == 0 and acl.rt.destroy_stream(stream) == 0
assert acl.rt.set_device(99) != 0 and '99' in acl.get_recent_err_msg()
try:
    acl.mdl
except NotImplementedError as e:
    assert 'acl.mdl' in str(e)
else:
    raise SystemExit('acl.mdl')
assert acl.rt.reset_device(1) == 0 and acl.finalize() == 0
"""
    done = machine("run", "-n", "2", "-q", "--", python, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(2, 0) Ascend910B4\n"
