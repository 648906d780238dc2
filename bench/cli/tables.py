"""Reads a table of rows from a file of CSV or of JSON lines, each row with its place for whoever must mend it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import PackError
from bench.files import text_of

Value = str | int | float | bool | None
DELIMITERS = ",;\t"
MOST_BYTES = 2**26
LARGEST = 2**53
"""Beyond it a whole number is not the same for every program that reads JSON."""


@dataclass(frozen=True)
class Record:
    """One row as it stands in the file.

    at         its place: "tickets.csv, line 3"
    fields     by name; of CSV each is a text
    expected   the names of those that are expected, where the file itself says so: {"input": {...}, "expected": {...}}
    """

    at: str
    fields: Mapping[str, Value]
    expected: tuple[str, ...] = ()


def read_table(path: Path) -> Sequence[Record]:
    """The rows of a file, at least one. Raises PackError, with the line, for what cannot be read or is no table."""
    reader = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(path.suffix.lower())
    if reader is None:
        raise PackError(f"{path}: is neither .csv nor .jsonl; save the rows as CSV with a header, or as one JSON object a line")
    records = list(reader(path, _text(path)))
    if not records:
        raise PackError(f"{path}: has no rows")
    return records


def _text(path: Path) -> str:
    try:
        return text_of(path, MOST_BYTES)
    except OSError as error:
        raise PackError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise PackError(f"{path}: {error}") from error


def _csv(path: Path, text: str) -> Iterator[Record]:
    """A header, then a row a record. The delimiter is the one of `,`, `;` and tab that the header has most of."""
    header = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=header.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    try:
        for cells in lines:
            at = f"{path}, line {lines.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = [cell.strip() for cell in cells]
                _refuse_header(names, at)
            elif len(cells) != len(names):
                raise PackError(
                    f"{at}: has {len(cells)} cells, and the header has {len(names)}; quote a cell that holds a delimiter"
                )
            else:
                yield Record(at, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise PackError(f"{path}, line {lines.line_num}: is no CSV: {error}") from error


def _refuse_header(names: Sequence[str], at: str) -> None:
    for name in names:
        _refuse_name(name, at)
        if names.count(name) > 1:
            raise PackError(f"{at}: two columns are named '{name}'; rename one")


def _refuse_name(name: str, at: str) -> None:
    if not name.strip() or not name.isprintable():
        raise PackError(f"{at}: {name!r} is no name for a column; write a word on one line")


def _json_lines(path: Path, text: str) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n"), 1):  # `splitlines` would cut at U+2028, which JSON allows in a text
        if line.strip():
            yield _record(line, f"{path}, line {number}")


def _record(line: str, at: str) -> Record:
    try:
        value = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair could not be sent to a model
    except (ValueError, RecursionError) as error:
        raise PackError(f"{at}: is no JSON: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise PackError(f"{at}: is no JSON object; write each row as one object on one line")
    fields, expected = _parted(value, at)
    for name, field in fields.items():
        _refuse_value(name, field, at)
    return Record(at, fields, expected)


def _parted(value: dict[str, Any], at: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields of a flat row, or of one that keeps input and expected fields apart."""
    if not any(isinstance(value.get(part), dict) for part in ("input", "expected")):
        return value, ()
    if other := sorted(value.keys() - {"id", "input", "expected"}):
        raise PackError(f"{at}: {other[0]!r} stands beside input and expected; put it into one of them")
    parts = {
        part: value[part] if isinstance(value.get(part), dict) else {part: value.get(part)} for part in ("input", "expected")
    }
    if both := sorted(parts["input"].keys() & parts["expected"].keys()):
        raise PackError(f"{at}: {both[0]!r} is an input and expected as well; rename one")
    if "id" in parts["input"] or "id" in parts["expected"]:
        raise PackError(f"{at}: an id stands beside input and expected, not in them; move it, or rename the field")
    named = {"id": value["id"]} if "id" in value else {}
    return {**named, **parts["input"], **parts["expected"]}, tuple(parts["expected"])


def _refuse_value(name: str, value: Any, at: str) -> None:
    _refuse_name(name, at)
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise PackError(f"{at}: '{name}' is {kind}; a field is a text, a number, true or false: make one field of each part")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise PackError(f"{at}: '{name}' is a whole number beyond 2^53, which programs read differently; write it as a text")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field '{next(name for name in names if names.count(name) > 1)}' stands twice; rename one")
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number; write a number, or leave the row out")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:30]} is too large a number; write it as a text")
    return number
