"""The guide's pages as programs: files that a page says to save, commands that it says to run, output that it shows.

    page = Page("accelerate")
    page.run("launch", machine)      # saves the page's files, runs the block, compares with what the page shows

In a page a fenced block is preceded by a comment that says what it is:
    <!-- file: NAME -->    to be saved under that name
    <!-- run: NAME -->     a command; the next <!-- shows --> block is its output: each line is found, in order; xxx is anything
    <!-- yaml: NAME -->    parsed by the tests
    <!-- shown: WHY -->    not run, and why
"""
from __future__ import annotations

import pathlib
import re

GUIDE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "guide"
BLOCK = re.compile(r"^<!-- (file|run|shows|yaml|shown)(?:: (.+?))? -->\n```(\w+)\n(.*?)^```$", re.M | re.S)


class Page:
    def __init__(self, name: str, language: str = "en"):
        self.path = GUIDE / language / f"{name}.md"
        self.text = self.path.read_text()
        self.files: dict[str, str] = {}
        self.commands: dict[str, str] = {}
        self.shows: dict[str, str] = {}
        self.yaml: dict[str, str] = {}
        self.blocks = [(kind, name, code) for kind, name, _, code in BLOCK.findall(self.text)]
        last = None
        for kind, label, code in self.blocks:
            if kind == "file":
                self.files[label] = code
            elif kind == "run":
                assert label not in self.commands, f"{self.path}: two blocks {label}"
                self.commands[label] = code
                last = label
            elif kind == "shows":
                assert last and last not in self.shows, f"{self.path}: output without its command"
                self.shows[last] = code
            elif kind == "yaml":
                self.yaml[label] = code

    def run(self, label: str, machine, **kw):
        for name, code in self.files.items():
            (machine.tmp / name).write_text(code)
        done = machine.shell(self.commands[label], **kw).ok()
        at = 0
        lines = done.out.splitlines()
        for want in self.shows.get(label, "").splitlines():
            like = ".*".join(re.escape(part) for part in want.split("xxx"))
            if label in UNORDERED:
                assert re.search(like, done.out), f"{self.path.name}: {label} does not show {want!r}\n" + done.tail()
                continue
            found = next((i for i in range(at, len(lines)) if re.match(like + "$", lines[i].rstrip())), None)
            assert found is not None, f"{self.path.name}: {label} does not show {want!r}\n" + done.tail()
            at = found + 1
        return done


UNORDERED = {"allreduce", "swish", "gloo", "env", "two-hosts"}  # ranks print as they come, even into each other's lines; Accelerate may order its list otherwise


def fences(text: str) -> list[str]:
    """Every fenced block of shell, Python or YAML, marked or not."""
    return re.findall(r"^```(?:shell|python|yaml)\n(.*?)^```$", text, re.M | re.S)


def pages(language: str = "en") -> list[str]:
    return sorted(p.stem for p in (GUIDE / language).glob("*.md"))
