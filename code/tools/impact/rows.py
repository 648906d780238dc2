"""Rows of what was measured, in files of comma-separated values."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

Rows = Sequence[dict[str, str]]


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file; none where the file is not there."""
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
