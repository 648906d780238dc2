"""The tables of what selectors lose and cost, made of the rows of each edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from impact.rows import Rows, changing, kind_of, lossy, share, total
from impact.sentences import timed

EDITS = ("Edits", "Changing", "Changed results")
JUDGED = ("lost a result", "results lost", "tests run", "seconds")
NAMES = {"bench": "`bench code`", "testmon": "testmon"}


def by_package(rows: Rows, suites: Rows) -> list[str]:
    """A row for each package."""
    about = {row["package"]: row for row in suites}
    columns = {"Tests": "tests", "Unsteady": "unsteady", "Differ recorded": "differ", "Plain, s": "plain s"}
    cells = [
        [name, *(about[name][key] for key in columns.values()), *counts]
        for name, counts in _grouped(rows, lambda row: row["package"])
        if name in about
    ]
    return table(("Package", *columns, *_titles()), cells)


def by_kind(rows: Rows) -> list[str]:
    """A row for each kind of edits."""
    return table(("Kind", *_titles()), [[name, *counts] for name, counts in sorted(_grouped(rows, kind_of))])


def _titles() -> list[str]:
    return [*EDITS, *(f"{name}: {title}" for name in NAMES.values() for title in JUDGED)]


def _grouped(rows: Rows, group: Callable[[dict[str, str]], str]) -> list[tuple[str, list[str]]]:
    counts = []
    for name in dict.fromkeys(map(group, rows)):
        of = [row for row in rows if group(row) == name]
        cells = [f"{len(of)}", f"{len(changing(of))}", f"{total(of, 'changed'):,}"]
        for selector in NAMES:
            cells += [f"{lossy(of, selector)}", f"{total(of, f'{selector} lost'):,}", share(of, selector)]
            cells.append(f"{sum(float(row[f'{selector} s']) for row in of) / len(of):.1f}")
        counts.append((name, cells))
    return counts


def lost(rows: Rows) -> list[str]:
    """A row for each edit that lost a result under `bench code`."""
    keys = {"Package": "package", "Edit": "edit", "Changed results": "changed", "Lost": "bench lost"}
    cells = [[row[key].replace("|", "\\|") for key in keys.values()] for row in rows if int(row["bench lost"])]
    return table(tuple(keys), cells) if cells else ["None."]


def times(rows: Rows) -> list[str]:
    """A row for each thing that was timed of each package."""
    cells = [
        [name, what.replace("|", "\\|"), len(taken), f"{min(taken):.2f}", f"{min(taken) / min(of['plain']):.2f}"]
        for name, of in timed(rows).items()
        for what, taken in of.items()
    ]
    return table(("Package", "What", "Rounds", "Least, s", "Of all tests"), cells)


def table(title: Sequence[str], cells: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(map(str, row))} |" for row in (title, ["---"] * len(title), *cells)]
