"""Figures of rounds and how they are printed."""
from __future__ import annotations

import math
import statistics
import sys
from typing import Iterable, Optional, Sequence


def of_round(times: Sequence[float]) -> float:
    """The figure of a round: the time that a quarter of its calls stay below. Less moved by foreign load than the median."""
    return sorted(times)[len(times) // 4]


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median over rounds of above ÷ below: both sides of a round ran within seconds of each other."""
    return statistics.median(a / b for a, b in zip(above, below))


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def duration(seconds: Optional[float]) -> str:
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds * scale:.0f} {unit}"
    raise AssertionError


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown whose columns also line up on a terminal."""
    wide = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    line = lambda cells: "| " + " | ".join(c.ljust(w) for c, w in zip(cells, wide)) + " |"  # noqa: E731
    return "\n".join([line(head), "|" + "|".join("-" * (w + 2) for w in wide) + "|", *map(line, rows)])


def progress(text: str) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)
