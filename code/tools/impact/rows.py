"""The rows of what was measured: files of them, and their sums."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

Rows = Sequence[dict[str, str]]
Parts = Mapping[str, Rows]
SELECTORS = ("testmon", "bench")
PARTS = ("edits", "suites", "times")
"""The names of the files of rows that a report is made of."""


def parts_in(folder: Path) -> Parts:
    """The rows of all files in a folder, by the names of the files."""
    return {name: read(folder / f"{name}.csv") for name in PARTS}


def limit(count: int, of: int) -> str:
    """A share's upper limit at 95%, exact, from one side."""
    if not of:
        return "-"
    from scipy.stats import binomtest  # noqa: PLC0415  (its import takes longer than a session)

    return f"{100 * binomtest(count, of, alternative='less').proportion_ci(0.95, 'exact').high:.1f}%"


def share(rows: Rows, selector: str) -> str:
    """The share of tests that a selector ran, in percent."""
    return f"{100 * total(rows, f'{selector} ran') / max(1, total(rows, 'tests')):.0f}%"


def by_edit(rows: Rows, selector: str) -> str:
    """The mean of the shares of tests that a selector ran after each edit, in percent."""
    return f"{100 * fmean(int(row[f'{selector} ran']) / int(row['tests']) for row in rows):.0f}%" if rows else "-"


def read(path: Path) -> Rows:
    """The rows of a file; none where it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Rows) -> None:
    """Write rows to a file, with the names of their columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0] if rows else (), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def total(rows: Rows, key: str) -> int:
    """The sum of a column."""
    return sum(int(row[key]) for row in rows)


def changing(rows: Rows) -> Rows:
    """The edits that changed a result of a test."""
    return [row for row in rows if int(row["changed"])]


def losable(rows: Rows) -> Rows:
    """The edits that changed a result of a test and left a test to run. After any other no result can be lost."""
    return [row for row in changing(rows) if int(row["tests"])]


def selecting(rows: Rows) -> Rows:
    """The edits after which `bench code` kept a result. After the others it ran all tests, so it could lose none."""
    return [row for row in rows if int(row["bench ran"]) < int(row["tests"])]


def lossy(rows: Rows, selector: str) -> int:
    """How many edits lost a result under a selector."""
    return sum(int(row[f"{selector} lost"]) > 0 for row in rows)


def kind_of(row: Mapping[str, str]) -> str:
    """The kind of an edit, which its description begins with after the place."""
    described = re.search(r":[0-9]+ ([^:]+):", row["edit"])
    return described[1] if described else ""
