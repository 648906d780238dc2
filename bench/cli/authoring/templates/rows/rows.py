"""Reads rows.jsonl, and makes the document, the reference and the wrong answers of the task of each row.

Each line of the file is {"id": ..., "input": {...}, "expected": {...}}.
"""

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
"""The most characters that the reference answer quotes."""
WRONG_VALUES = 2
"""The most wrong answers for each field."""


@cache
def read_rows(folder: Path) -> tuple[Row, ...]:
    """Return the rows of a pack."""
    lines = (folder / "rows.jsonl").read_text(encoding="utf-8").split("\n")
    return tuple(json.loads(line) for line in lines if line.strip())


def document(row: Row) -> str:
    """Return the document that a model reads: a line for each input field."""
    return "\n".join(f"{name}: {_show(value)}" for name, value in row["input"].items())


def _show(value: Json) -> str:
    """Return a field's value as text."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def same(first: Json, other: Json) -> bool:
    """Whether two values are equal. Case and space in texts do not count, nor the digits of a number after the ninth."""
    if isinstance(first, str) and isinstance(other, str):
        return " ".join(first.split()).casefold() == " ".join(other.split()).casefold()
    if isinstance(first, float) or isinstance(other, float):
        return math.isclose(first, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(first == other)


def reference(row: Row) -> dict[str, Json]:
    """Return the outputs that solve a row's task. The table does not say which words decide, so the first words are quoted."""
    return {"evidence": {"quote": " ".join(document(row).split())[:LONGEST_QUOTE].strip()}, "answer": row["expected"]}


def wrong_answers(row: Row, rows: Sequence[Row]) -> list[WrongAnswer]:
    """Return wrong answers: the right answer with one field of another row. The fault `wrong_value` uses them too."""
    position = rows.index(row)
    others = [*rows[position + 1 :], *rows[:position]]
    return [wrong for field in row["expected"] for wrong in _wrong(field, row, others)]


def _wrong(field: str, row: Row, others: Sequence[Row]) -> Iterator[WrongAnswer]:
    """Yield the right answer with other values of one field, at most WRONG_VALUES different values."""
    right: Json = row["expected"][field]
    values: list[Json] = []
    for other in others:
        value = other["expected"][field]
        if len(values) < WRONG_VALUES and not any(same(value, known) for known in (right, *values)):
            values.append(value)
            yield WrongAnswer(
                f"{field}_of_{other['id']}", f"{field} is {right!r}", {"answer": {**row["expected"], field: value}}
            )
