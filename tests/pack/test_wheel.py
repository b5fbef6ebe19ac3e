"""The wheel: built as `pip install .` builds it, installed and used by a user who is not root."""
from __future__ import annotations

import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import zipfile

import pytest
from test_launcher import program
from test_package import clean, may_need

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEGABYTE = 1_000_000
pytestmark = pytest.mark.timeout(1800)  # the first test waits for the build; without the compiler's cache that is all of it
LARGEST_WHEEL, LARGEST_INSTALLED = 40 * MEGABYTE, 150 * MEGABYTE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    """Built once, from this checkout; the compiler cache holds what ./test has compiled."""
    if not (ROOT / "pyproject.toml").exists() or pathlib.Path(program()).resolve().parents[4] != ROOT:
        pytest.skip("the program was not built in this checkout")
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-input", "-q", "-w", str(folder), str(ROOT)],
                          capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (file,) = folder.glob("anynpu-*.whl")
    return file


def ordinary_user() -> dict:
    """What makes subprocess run a command as somebody else, when root runs the tests."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A new virtual environment of an ordinary user with the wheel and nothing else; runs commands in it."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="anynpu-user-") as home:  # pytest's own folders are closed to other users
        shutil.copy(wheel, home)
        who = ordinary_user()
        for path in (pathlib.Path(home), pathlib.Path(home) / wheel.name):
            path.chmod(0o755)
            if who:
                os.chown(path, who["user"], who["group"])
        env = {k: v for k, v in clean().items() if not k.startswith(("XDG_", "VIRTUAL_ENV"))} | {"HOME": home}

        def run(*words: str) -> subprocess.CompletedProcess:
            return subprocess.run(words, cwd=home, env=env, capture_output=True, text=True, timeout=300, **who)

        made = run("/usr/bin/python3", "-m", "venv", "env")
        if made.returncode != 0:
            pytest.skip(f"the system's Python makes no environments: {made.stdout[-300:]}")
        installed = run("env/bin/pip", "install", "--no-index", "-q", wheel.name)
        assert installed.returncode == 0, installed.stderr
        run.prefix = pathlib.Path(home) / "env"
        yield run


def test_size_and_tag(wheel, capsys):
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
        (tag_file,) = [e.filename for e in entries if e.filename.endswith(".dist-info/WHEEL")]
        tag = archive.read(tag_file).decode()
    installed = sum(e.file_size for e in entries)
    with capsys.disabled():
        print(f"\n  wheel {wheel.stat().st_size / MEGABYTE:.1f} MB, installed {installed / MEGABYTE:.1f} MB")
    assert wheel.stat().st_size <= LARGEST_WHEEL and installed <= LARGEST_INSTALLED
    assert f"Tag: py3-none-linux_{os.uname().machine}" in tag, tag


def test_licences_travel_along(wheel):
    with zipfile.ZipFile(wheel) as archive:
        carried = {e.filename.rsplit("/", 1)[-1]: e.file_size for e in archive.infolist() if "/licenses/" in e.filename}
    for file in [ROOT / "LICENSE", *(ROOT / "licenses").glob("*.txt")]:
        assert carried.get(file.name) == file.stat().st_size, file.name


def test_a_user_runs_programs_on_it(environment):
    cards = environment("env/bin/anynpu", "run", "-q", "-n", "3", "--", "env/bin/python", "-c",
                        "import acl; acl.init(); acl.rt.set_device(2); print(acl.rt.get_device_count(), acl.rt.malloc(1 << 20, 0)[1])")
    assert cards.returncode == 0 and cards.stdout == "(3, 0) 0\n", cards.stdout + cards.stderr
    notebook = environment("env/bin/python", "-c", "import anynpu, acl; print(acl.rt.get_device_count())")
    assert notebook.returncode == 0 and notebook.stdout == "(2, 0)\n", notebook.stderr
    smi = environment("env/bin/npu-smi", "info")
    assert smi.returncode == 0 and "910B4" in smi.stdout, smi.stdout + smi.stderr


def test_the_installed_libraries_need_only_the_system(environment):
    tree = environment.prefix / "share" / "anynpu"
    libraries = [*tree.glob("lib64/*.so"), *tree.glob("anynpu/lib/*.so*"), tree / "bin/anynpu", environment.prefix / "bin/npu-smi"]
    assert len(libraries) > 20
    for library in libraries:
        lines = environment("/usr/bin/ldd", str(library)).stdout.splitlines()
        assert any(line.split()[0].startswith("libc.so") for line in lines), f"ldd says nothing of {library}"
        for line in lines:
            name = line.split()[0].rsplit("/", 1)[-1].split(".so")[0]
            assert may_need(library, line, name, tree), f"{library} needs {line}"
