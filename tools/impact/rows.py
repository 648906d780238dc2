"""The rows of what was measured: files of them, and their sums."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from scipy.stats import binomtest

Rows = Sequence[dict[str, str]]
Parts = Mapping[str, Rows]
SELECTORS = ("bench", "testmon")
REASON_PARTS = ("mutants_reasons", "hunks_reasons", "commits_reasons", "commits_ignoring_reasons")
PARTS = ("mutants", "hunks", "recording", "unfollowed", "commits", "commits_ignoring", "programs", *REASON_PARTS)
"""The names of the files of rows that a report is made of."""


def parts_in(folder: Path) -> Parts:
    """The rows of all files in a folder, by the names of the files."""
    return {name: read(folder / f"{name}.csv") for name in PARTS}


def edits_in(parts: Parts) -> Rows:
    """The rows of all edits, mutants and hunks."""
    return [*parts["mutants"], *parts["hunks"]]


def sums(rows: Rows, *keys: str) -> list[int]:
    """The sum of each of these columns."""
    return [sum(int(row[key]) for row in rows) for key in keys]


def seconds_of(rows: Rows) -> tuple[float, float]:
    """The seconds of what ran of the commits, and of all their tests."""
    return sum(float(row["seconds"]) for row in rows), sum(float(row["whole"]) for row in rows)


def saved_by(commits: Rows) -> int:
    """How many of the commits took less than all tests."""
    return sum(float(row["seconds"]) < float(row["whole"]) for row in commits)


def in_whole_suites(rows: Rows) -> list[int]:
    """How many results each edit changed that changed every test of its package."""
    return [int(row["changed"]) for row in of_selector(rows, "bench") if row["changed"] == row["tests"]]


def limit(count: int, of: int) -> str:
    """A share's upper limit at 95%, exact."""
    if not of:
        return "-"
    return f"{100 * binomtest(count, of).proportion_ci(0.95, 'exact').high:.2f}%"


def share(rows: Rows, selector: str, package: str | None = None) -> float:
    """The share of tests that a selector ran, in percent."""
    return 100 * total(rows, "run", selector, package) / max(1, total(rows, "tests", selector, package))


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


def total(rows: Rows, key: str, selector: str, package: str | None = None) -> int:
    """The sum of a column over a selector's rows."""
    return sum(int(row[key] or 0) for row in of_selector(rows, selector, package))


def of_selector(rows: Rows, selector: str, package: str | None = None) -> Rows:
    """The rows of a selector, for all packages or one."""
    return [row for row in rows if row["selector"] == selector and (package is None or row["package"] == package)]


def where_testmon_missed_nothing(rows: Rows) -> Rows:
    """The rows of both selectors for the edits of which pytest-testmon missed nothing."""
    pairs = [pair for pair in itertools.pairwise(rows) if tuple(row["selector"] for row in pair) == SELECTORS]
    return [row for ours, theirs in pairs if int(theirs["missed"]) == 0 for row in (ours, theirs)]
