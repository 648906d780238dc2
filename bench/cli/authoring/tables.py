"""Read a table from CSV or JSON lines. Each row keeps its place, for messages."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bench.common.errors import PackError
from bench.common.files import text_of

CellValue = str | int | float | bool | None
MOST_BYTES = 2**26
DELIMITERS = ",;\t|"
LONGEST_CELL = 2**24
"""The longest cell, in characters."""
LOOKED_AT, LOOKED_INTO = 50, 2**20
"""Rows, and characters of them, from which the delimiter is determined."""
_excels_line = re.compile(r"""\s*"?sep=(\\t|[^\w\s"]|\t)[ \t;,"]*(?:\r\n|\r|\n|\Z)""", re.IGNORECASE)
LARGEST = 2**53
"""The largest integer that all programs read alike in JSON."""


@dataclass(frozen=True)
class FileRow:
    """One row of the file.

    at         its place: "tickets.csv, line 3"
    fields     by name; in CSV each is a text
    expected   the expected fields, if the file marks them: {"input": {...}, "expected": {...}}
    """

    at: str
    fields: Mapping[str, CellValue]
    expected: tuple[str, ...] = ()


def read_table(path: Path) -> Sequence[FileRow]:
    """Return the rows of a file, at least one. Raises PackError, with the line, for an unreadable file or one that is no
    table."""
    reader = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(path.suffix.lower())
    if reader is None:
        raise PackError(
            f"{path}: is neither .csv nor .jsonl; save the rows as CSV with a header, or as one JSON object per line"
        )
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


@dataclass(frozen=True)
class _Dialect:
    """How the cells of a row are separated: by a delimiter, with or without blanks after it."""

    delimiter: str
    spaced: bool = False

    def rows(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield (line of its end, cells) for each row that is not blank. Raises _Broken."""
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, skipinitialspace=self.spaced, strict=True)
        length = 0
        try:
            for cells in lines:
                last = next((at for at in range(len(cells), 0, -1) if cells[at - 1].strip()), 0)
                if last:
                    length = length or last
                    yield lines.line_num, cells[: max(length, last)]
        except csv.Error as error:
            raise _Broken(lines.line_num, error) from error

    def fit(self, text: str) -> tuple[bool, bool, int, int, bool]:
        """Return how well the text's first rows fit, larger is better: whether there are several columns, whether their names
        are free of quotes, how many rows have as many cells as the header, how many cells these are, and whether no blanks are
        skipped."""
        sample = list[list[str]]()
        with suppress(_Broken):
            sample += (cells for _, cells in islice(self.rows(text.lstrip("\r\n")[:LOOKED_INTO]), LOOKED_AT))
        header = sample[0] if sample else []
        is_plain = not any('"' in cell for cell in header)
        alike = sum(len(cells) == len(header) for cells in sample)
        return len(header) > 1, is_plain, alike, len(header), not self.spaced


class _Broken(Exception):
    """A text that stops being CSV, with the line and the reason."""

    def __init__(self, line: int, why: csv.Error):
        is_long = str(why).startswith("field larger")
        problem = f"a cell is longer than {LONGEST_CELL:,} characters; shorten it, or close its quote" if is_long else why
        super().__init__(f"line {line}: is not CSV: {problem}")


def _csv(path: Path, text: str) -> Iterator[FileRow]:
    """Yield a record for each row after the header."""
    before = csv.field_size_limit(LONGEST_CELL)  # it holds for the whole process
    try:
        yield from _records(path, text)
    finally:
        csv.field_size_limit(before)


def _records(path: Path, text: str) -> Iterator[FileRow]:
    if match := _excels_line.match(text):
        dialect = _Dialect("\t" if match[1] == "\\t" else match[1])
        text = re.sub(r"[^\r\n]", "", match[0]) + text[match.end() :]  # keeps its line breaks, so that line numbers stay right
    else:
        candidates = [_Dialect(delimiter, spaced) for delimiter in DELIMITERS for spaced in (False, True)]
        dialect = max(candidates, key=lambda candidate: candidate.fit(text))
    names: list[str] = []
    try:
        for number, cells in dialect.rows(text):
            at = f"{path}, line {number}"
            if not names:
                names = [cell.strip() for cell in cells]
                _refuse_header(names, at)
            elif len(cells) != len(names):
                raise PackError(
                    f"{at}: has {len(cells)} cells, and the header has {len(names)}; quote a cell that holds a delimiter"
                )
            else:
                yield FileRow(at, dict(zip(names, cells, strict=True)))
    except _Broken as broken:
        raise PackError(f"{path}, {broken}") from broken


def _refuse_header(names: Sequence[str], at: str) -> None:
    often = Counter(names)
    for name in names:
        _refuse_name(name, at)
        if often[name] > 1:
            raise PackError(f"{at}: two columns are named '{name}'; rename one")


def _refuse_name(name: str, at: str) -> None:
    if not name.strip() or not name.isprintable():
        raise PackError(f"{at}: {name!r} cannot be the name of a column; write a word on one line")


def _json_lines(path: Path, text: str) -> Iterator[FileRow]:
    for number, line in enumerate(text.split("\n"), 1):  # `splitlines` would cut at U+2028, which JSON allows in a text
        if line.strip():
            yield _record(line, f"{path}, line {number}")


def _record(line: str, at: str) -> FileRow:
    try:
        value = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair could not be sent to a model
    except (ValueError, RecursionError) as error:
        raise PackError(f"{at}: is not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise PackError(f"{at}: is not a JSON object; write each row as one object on one line")
    fields, expected = _split_fields(value, at)
    for name, field in fields.items():
        _refuse_value(name, field, at)
    return FileRow(at, fields, expected)


def _split_fields(value: dict[str, Any], at: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a row, flat or with input and expected fields apart, and the names of the expected ones."""
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
        raise PackError(f"{at}: '{name}' is {kind}; a field is a text, a number, true or false: make each part a field")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise PackError(f"{at}: '{name}' is a whole number beyond 2^53, which programs read differently; write it as a text")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the field '{twice}' appears twice; rename one")
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number; write a number, or leave the row out")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:30]} is too large a number; write it as a text")
    return number
