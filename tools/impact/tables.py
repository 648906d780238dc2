"""The tables of what selectors miss and cost, made of the rows of each edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from impact.rows import SELECTORS, Rows, kind_of, lossy, of_selector, share, total
from impact.sentences import ratio

EDITS = ("Edits", "Changing", "Changed")
JUDGED = ("Lost", "Missed", "Run")


def by_package(rows: Rows, suites: Rows) -> list[str]:
    """A row for each package. Those tests that come out otherwise while they are recorded are counted and left out."""
    about = {row["package"]: row for row in suites}
    title = ("Package", "Tests", "Differ recorded", *EDITS, *_judged(rows))
    cells = [
        [name, about[name]["tests"], about[name]["differ"], *counts]
        for name, counts in _grouped(rows, lambda row: row["package"])
        if name in about
    ]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def by_kind(rows: Rows) -> list[str]:
    """A row for each kind of edits."""
    title = ("Kind", *EDITS, *_judged(rows))
    cells = [[name, *counts] for name, counts in _grouped(rows, kind_of)]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def _selectors(rows: Rows) -> list[str]:
    return [selector for selector in SELECTORS if of_selector(rows, selector)]


def _judged(rows: Rows) -> list[str]:
    return [f"{title}: {selector}" for selector in _selectors(rows) for title in JUDGED]


def _grouped(rows: Rows, group: Callable[[dict[str, str]], str]) -> list[tuple[str, list[str]]]:
    counts = []
    for name in dict.fromkeys(map(group, rows)):
        of = [row for row in rows if group(row) == name]
        cells = [f"{len(of_selector(of, 'full'))}", f"{len(of_selector(of, 'bench'))}", f"{total(of, 'changed', 'full'):,}"]
        for selector in _selectors(rows):
            cells += [f"{lossy(of, selector)}", f"{total(of, 'missed', selector):,}"]
            cells.append(share(of, selector) if of_selector(of, selector) else "-")
        counts.append((name, cells))
    return counts


def lost(rows: Rows) -> list[str]:
    """A row for each edit that lost a result under `bench code`."""
    title = ("Package", "Edit", "Changed", "Missed")
    cells = [
        [row[key].replace("|", "\\|") for key in ("package", "mutant", "changed", "missed")]
        for row in of_selector(rows, "bench")
        if int(row["missed"])
    ]
    return [line(title), line(["---"] * len(title)), *map(line, cells)] if cells else []


def times(rows: Rows) -> list[str]:
    """A row for each edit whose time was taken, in processor seconds."""
    title = ("Package", "Edit", "Rounds", "All tests, s", "bench code, s", "Ratio")
    cells = [
        [row["package"], row["edit"].replace("|", "\\|"), row["rounds"], row["all"], row["bench"], f"{ratio(row):.2f}"]
        for row in rows
    ]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def unfollowed_table(unfollowed: Rows) -> list[str]:
    """A row for each kind of dependence and selector."""
    title = ("Dependence", "Selector", "Changed", "Missed", "Over-run")
    cells = [[row[key] for key in ("kind", "selector", "changed", "missed", "over_run")] for row in unfollowed]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
