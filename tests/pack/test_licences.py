"""Everything of others that is compiled into our libraries, linked to them or bundled with them has its licence text."""
from __future__ import annotations

import csv
import pathlib
import re
import shutil
import subprocess

import pytest
from test_launcher import program
from test_package import installed  # noqa: F401 (a fixture)

ROOT = pathlib.Path(__file__).resolve().parents[2]
LICENCES = ROOT / "licenses"
# Interfaces to the system that nothing of is compiled in.
SYSTEM_PACKAGES = re.compile(r"libc6-dev|linux-libc-dev|libc-dev-bin|libcrypt-dev")
NOT_SHIPPED = re.compile(r"_test\.dir/|_test/|bench/|tests/")


def parts() -> list[dict[str, str]]:
    with (LICENCES / "parts.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def part_of(package: str) -> str | None:
    for row in parts():
        if any(re.fullmatch(pattern, package) for pattern in row["packages"].split()):
            return row["part"]
    return None


def packages_of(files: set[str]) -> dict[str, str]:
    """Debian's package of each file; a file that no package owns is missing."""
    if not shutil.which("dpkg-query"):
        pytest.skip("asks dpkg which package a file belongs to")
    text = subprocess.run(["dpkg-query", "-S", *sorted(files)], capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        package, separator, file = line.partition(": ")
        if separator and not package.startswith("diversion"):
            found[file] = package.split(",")[0].split(":")[0]
    return found


def shipped_headers(build: pathlib.Path) -> set[str]:
    """Headers outside the repository that objects of shipped targets were compiled from, as ninja recorded them."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    headers: set[str] = set()
    shipped = False
    for line in text.splitlines():
        if line and not line.startswith(" "):
            shipped = line.split(":")[0].endswith(".o") and not NOT_SHIPPED.search(line.split(":")[0])
        elif shipped and line.strip().startswith("/") and not line.strip().startswith((str(ROOT) + "/", str(build) + "/")):
            headers.add(str(pathlib.Path(line.strip()).resolve()))
    return headers


def without_licence(files: set[str], packages: dict[str, str]) -> list[str]:
    return sorted(f"{file} ({packages.get(file, 'of no package')})" for file in files
                  if not SYSTEM_PACKAGES.fullmatch(packages.get(file, "?")) and part_of(packages.get(file, "?")) is None)


def test_each_part_has_a_text_with_a_copyright_line():
    rows = parts()
    assert rows
    named = {row["file"] for row in rows}
    assert named == {f.name for f in LICENCES.glob("*.txt")}
    for row in rows:
        text = (LICENCES / row["file"]).read_text()
        assert re.search(r"Copyright .*\d{4}", text) and len(text) > 400, row


def test_dependencies_are_documented():
    text = (ROOT / "docs/decisions/dependencies.md").read_text().lower()
    for row in parts():
        assert row["part"].lower() in text, row["part"]


def test_every_header_that_is_compiled_in_has_a_licence():
    build = pathlib.Path(program()).resolve().parents[2]
    if not (build / "build.ninja").exists() or not shutil.which("ninja"):
        pytest.skip("the program was not built here by ninja")
    headers = shipped_headers(build)
    assert {"hwy", "fmt", "CLI"} <= {part for h in headers for part in pathlib.Path(h).parts}, sorted(headers)[:10]
    packages = packages_of(headers)
    assert not without_licence(headers, packages)
    # Every row is still needed, and a header of an unknown package would be noticed.
    assert {part_of(p) for p in packages.values()} - {None} == {row["part"] for row in parts()}
    assert without_licence({"/usr/include/curl/curl.h"}, {"/usr/include/curl/curl.h": "libcurl4-openssl-dev"})


def test_every_bundled_library_has_a_licence(installed):  # noqa: F811
    ours = {f.name for f in (pathlib.Path(program()).resolve().parents[1] / "anynpu/lib").iterdir()}
    bundled = [f for f in (installed / "share/anynpu/anynpu/lib").iterdir() if f.name not in ours]
    assert bundled, "Highway is expected beside our private libraries"
    # The system's copy of the same name tells the package.
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout or subprocess.run(
        ["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for library in bundled:
        place = re.search(rf"^\s*{re.escape(library.name)} .*=> (\S+)$", listed, re.M)
        assert place, library
        real = str(pathlib.Path(place.group(1)).resolve())
        assert not without_licence({real}, packages_of({real})), library
