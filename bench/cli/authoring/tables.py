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
MAX_BYTES = 2**26
DELIMITERS = ",;\t|"
LONGEST_CELL = 2**24
"""The longest cell, in characters."""
SAMPLE_ROWS, SAMPLE_CHARS = 50, 2**20
"""The delimiter is determined from at most this many rows, and from at most this many characters."""
_separator_line = re.compile(r"""\s*"?sep=(\\t|[^\w\s"]|\t)[ \t;,"]*(?:\r\n|\r|\n|\Z)""", re.IGNORECASE)
"""Matches the first line `sep=;` of a file from Excel, which names the delimiter."""
LARGEST = 2**53
"""The largest integer that all programs read alike in JSON."""


@dataclass(frozen=True)
class FileRow:
    """One row of the file.

    at         the row's place, such as "tickets.csv, line 3"
    fields     by name; in CSV each is a text
    expected   the expected fields, if the file marks them: {"input": {...}, "expected": {...}}
    """

    at: str
    fields: Mapping[str, CellValue]
    expected: tuple[str, ...] = ()


def read_table(path: Path) -> Sequence[FileRow]:
    """Return the rows of a file, at least one. Raises PackError, with the line, for an unreadable file or one that is no
    table."""
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".jsonl": _read_json_lines, ".ndjson": _read_json_lines}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise PackError(
            f"{path}: is neither .csv nor .jsonl; save the rows as CSV with a header, or as one JSON object per line"
        )
    records = list(reader(path, _text_of_file(path)))
    if not records:
        raise PackError(f"{path}: has no rows")
    return records


def _text_of_file(path: Path) -> str:
    """Return the text of a file. Raises PackError."""
    try:
        return text_of(path, MAX_BYTES)
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
        """Yield the number of the last line and the cells of each row that is not blank. Empty cells after the last column of
        the first row are dropped. Raises _BrokenCsv."""
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, skipinitialspace=self.spaced, strict=True)
        header_length = 0
        try:
            for cells in lines:
                filled = next((count for count in range(len(cells), 0, -1) if cells[count - 1].strip()), 0)
                if filled:
                    header_length = header_length or filled
                    yield lines.line_num, cells[: max(header_length, filled)]
        except csv.Error as error:
            raise _BrokenCsv(lines.line_num, error) from error

    def fit(self, text: str) -> tuple[bool, bool, int, int, bool]:
        """Return how well the text's first rows fit, larger is better: whether there are several columns, whether their names
        are free of quotes, how many rows have as many cells as the header, how many cells these are, and whether no blanks are
        skipped."""
        sample = list[list[str]]()
        with suppress(_BrokenCsv):
            sample += (cells for _, cells in islice(self.rows(text.lstrip("\r\n")[:SAMPLE_CHARS]), SAMPLE_ROWS))
        header = sample[0] if sample else []
        is_plain = not any('"' in cell for cell in header)
        alike = sum(len(cells) == len(header) for cells in sample)
        return len(header) > 1, is_plain, alike, len(header), not self.spaced


class _BrokenCsv(Exception):
    """A text is not CSV. The message has the line and the reason."""

    def __init__(self, line: int, why: csv.Error):
        is_long = str(why).startswith("field larger")
        problem = f"a cell is longer than {LONGEST_CELL:,} characters; shorten it, or close its quote" if is_long else why
        super().__init__(f"line {line}: is not CSV: {problem}")


def _read_csv(path: Path, text: str) -> Iterator[FileRow]:
    """Yield the rows after the header of a CSV file. Python's limit on a cell is raised meanwhile, for the whole process."""
    former_limit = csv.field_size_limit(LONGEST_CELL)
    try:
        yield from _csv_rows(path, text)
    finally:
        csv.field_size_limit(former_limit)


def _csv_rows(path: Path, text: str) -> Iterator[FileRow]:
    """Yield the rows after the header of CSV text. The delimiter is the one that the file names, or that fits best."""
    if match := _separator_line.match(text):
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
    except _BrokenCsv as broken:
        raise PackError(f"{path}, {broken}") from broken


def _refuse_header(names: Sequence[str], at: str) -> None:
    """Raise PackError if two columns have the same name, or a name cannot be the name of a column."""
    counts = Counter(names)
    for name in names:
        _refuse_name(name, at)
        if counts[name] > 1:
            raise PackError(f"{at}: two columns are named '{name}'; rename one")


def _refuse_name(name: str, at: str) -> None:
    """Raise PackError if a column's name is empty or has control characters."""
    if not name.strip() or not name.isprintable():
        raise PackError(f"{at}: {name!r} cannot be the name of a column; write a word on one line")


def _read_json_lines(path: Path, text: str) -> Iterator[FileRow]:
    """Yield a row for each line of JSON that is not blank."""
    for number, line in enumerate(text.split("\n"), 1):  # `splitlines` would cut at U+2028, which JSON allows in a text
        if line.strip():
            yield _json_row(line, f"{path}, line {number}")


def _json_row(line: str, at: str) -> FileRow:
    """Return the row in a line of JSON. Raises PackError."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite_number, object_pairs_hook=_unique_fields)
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
    """Return the fields of a row in one dict, and the names of the expected fields. The row may have the fields under `input`
    and `expected`; otherwise no name is returned."""
    if not any(isinstance(value.get(part), dict) for part in ("input", "expected")):
        return value, ()
    if other := sorted(value.keys() - {"id", "input", "expected"}):
        raise PackError(f"{at}: {other[0]!r} stands beside input and expected; put it into one of them")
    parts = {
        part: value[part] if isinstance(value.get(part), dict) else {part: value.get(part)} for part in ("input", "expected")
    }
    if shared := sorted(parts["input"].keys() & parts["expected"].keys()):
        raise PackError(f"{at}: {shared[0]!r} is an input and expected as well; rename one")
    if "id" in parts["input"] or "id" in parts["expected"]:
        raise PackError(f"{at}: an id stands beside input and expected, not in them; move it, or rename the field")
    id_field = {"id": value["id"]} if "id" in value else {}
    return {**id_field, **parts["input"], **parts["expected"]}, tuple(parts["expected"])


def _refuse_value(name: str, value: Any, at: str) -> None:
    """Raise PackError if a field's value is an object, a list, or an integer that some programs read differently."""
    _refuse_name(name, at)
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise PackError(f"{at}: '{name}' is {kind}; a field is a text, a number, true or false: make each part a field")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise PackError(f"{at}: '{name}' is a whole number beyond 2^53, which programs read differently; write it as a text")


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object. Raises ValueError if a name appears twice. This is an `object_pairs_hook`."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        repeated = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the field '{repeated}' appears twice; rename one")
    return fields


def _refuse_constant(name: str) -> None:
    """Raise ValueError for NaN or an infinity. This is the `parse_constant` of `json.loads`."""
    raise ValueError(f"{name} is not a number; write a number, or leave the row out")


def _finite_number(text: str) -> float:
    """Return a number with a fraction. Raises ValueError if no float can represent it. This is a `parse_float`."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:30]} is too large a number; write it as a text")
    return number
