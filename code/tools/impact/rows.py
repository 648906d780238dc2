"""The rows of what was measured: files of them, and their sums."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

Rows = Sequence[dict[str, str]]
Parts = Mapping[str, Rows]
SELECTORS = ("testmon", "bench")
PARTS = ("edits", "suites", "times")
"""The names of the files of rows that a report is made of."""


def parts_in(folder: Path) -> Parts:
    """The rows of all files in a folder, by the names of the files."""
    return {name: read(folder / f"{name}.csv") for name in PARTS}


def limit(rows: Rows, selector: str) -> str:
    """The upper limit at 95%, exact, from one side, of the share of edits that lose a result. Edits of a package are alike, so
    their number is divided by the design effect; where all or none lose one, each package counts once."""
    if not rows:
        return "-"
    from scipy.special import betainccinv  # noqa: PLC0415  (its import takes longer than a session)

    from bench.read.analysis.statistics import effective_number  # noqa: PLC0415

    lost = [float(int(row[f"{selector} lost"]) > 0) for row in rows]
    number = effective_number([row["package"] for row in rows], lost)
    k = sum(lost) / len(lost) * number
    return f"{100 * float(betainccinv(k + 1, number - k, 0.05)) if k < number else 100:.1f}%"


def share(rows: Rows, selector: str) -> str:
    """The share of tests that a selector ran, in percent."""
    return f"{100 * total(rows, f'{selector} ran') / max(1, total(rows, 'tests')):.0f}%"


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
    """The edits that changed a result of a test, and after which a test was left to run. Where none could be collected,
    nothing can be lost."""
    return [row for row in rows if int(row["changed"]) and int(row["tests"])]


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
