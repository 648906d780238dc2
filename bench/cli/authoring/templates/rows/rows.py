"""Reads rows.jsonl, {"id": ..., "input": {...}, "expected": {...}} a line, and makes of a row what a task needs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bench.scenario import Json, WrongAnswer

ROW = "row.txt"
"""The document that a model reads."""
Row = dict[str, Any]
LONGEST_QUOTE = 160
"""Characters of the reference's quotation."""
WRONG_VALUES = 2
"""Wrong answers a field."""


@cache
def read_rows(folder: Path) -> tuple[Row, ...]:
    lines = (folder / "rows.jsonl").read_text(encoding="utf-8").split("\n")
    return tuple(json.loads(line) for line in lines if line.strip())


def document(row: Row) -> str:
    """The input fields, and nothing that is expected."""
    return "\n".join(f"{name}: {_show(value)}" for name, value in row["input"].items())


def _show(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def same(first: Json, other: Json) -> bool:
    """Texts without regard to case and space, decimal numbers up to the ninth digit."""
    if isinstance(first, str) and isinstance(other, str):
        return " ".join(first.split()).casefold() == " ".join(other.split()).casefold()
    if isinstance(first, float) or isinstance(other, float):
        return math.isclose(first, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(first == other)


def reference(row: Row) -> dict[str, Json]:
    """An answer that solves it. No table says which words decide, so its beginning is quoted."""
    return {"evidence": {"quote": " ".join(document(row).split())[:LONGEST_QUOTE].strip()}, "answer": row["expected"]}


def wrong_answers(row: Row, rows: Sequence[Row]) -> list[WrongAnswer]:
    """The right answer with one field of another row. They also serve as the fault `wrong_value`."""
    at = rows.index(row)
    others = [*rows[at + 1 :], *rows[:at]]
    return [wrong for field in row["expected"] for wrong in _wrong(field, row, others)]


def _wrong(field: str, row: Row, others: Sequence[Row]) -> Iterator[WrongAnswer]:
    right: Json = row["expected"][field]
    values: list[Json] = []
    for other in others:
        value = other["expected"][field]
        if len(values) < WRONG_VALUES and not any(same(value, known) for known in (right, *values)):
            values.append(value)
            yield WrongAnswer(
                f"{field}_of_{other['id']}", f"{field} is {right!r}", {"answer": {**row["expected"], field: value}}
            )
