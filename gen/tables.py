"""Reading the contract tables and writing generated files: what every generator shares."""
from __future__ import annotations

import pathlib


class TableError(Exception):
    """A fault in a table, with file, line and column in its text."""


def read_table(path: str | pathlib.Path, columns: list[str]) -> list[dict[str, str]]:
    """Rows of a tab-separated table as dictionaries; each also has `_line`. The header must hold `columns`."""
    path = pathlib.Path(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    header = lines[0].split("\t")
    missing = [c for c in columns if c not in header]
    if missing:
        raise TableError(f"{path}:1: missing column {missing[0]!r}; the header has {header}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        cells = line.split("\t")
        if len(cells) > len(header):
            raise TableError(f"{path}:{number}: {len(cells)} cells, but the header has {len(header)}")
        cells += [""] * (len(header) - len(cells))
        rows.append({**dict(zip(header, cells)), "_line": str(number)})
    return rows


def write_if_changed(path: str | pathlib.Path, text: str) -> None:
    """Writes only new content, so that nothing is rebuilt in vain."""
    path = pathlib.Path(path)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
