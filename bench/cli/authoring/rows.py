"""The rows of a pack made from a table: which fields are expected, the type of each, and the name of each row."""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.cli.authoring.tables import LARGEST, CellValue, FileRow, read_table
from bench.common.errors import PackError
from bench.scenario import Output

ColumnKind = Literal["word", "text", "integer", "number", "boolean"]
EXPECTED = "expected"
MAX_WORDS, LONGEST_WORD = 12, 60
"""A text column is a closed vocabulary if it has at most so many distinct texts, each has one line of at most so many
characters, and each is in two rows on average."""
INTEGER = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)  # no leading zeros: 007 is a name
NAN_OR_INFINITY = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Field:
    """A field of the answer. `words` is its closed vocabulary; () if it has none."""

    name: str
    kind: ColumnKind
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceRow:
    """A row: the name of its instance, and its input fields and expected fields by name."""

    id: str
    input: Mapping[str, CellValue]
    expected: Mapping[str, CellValue]


@dataclass(frozen=True)
class SourceRows:
    """All rows. `fields` are the fields of each row's answer. No two rows share an id, and each field has two or more
    values."""

    rows: tuple[SourceRow, ...]
    fields: tuple[Field, ...]

    @property
    def most_common(self) -> int:
        """The number of rows with the most common answer. Guessing this answer needs no reading."""
        return max(Counter(tuple(map(plain, row.expected.values())) for row in self.rows).values())


def read_rows(path: Path) -> SourceRows:
    """Return the rows of a CSV or JSONL file. The columns whose names begin with "expected" contain the answer. Raises
    PackError, in one line, for the first mistake in the file."""
    records = read_table(path)
    _refuse_other_columns(records)
    columns = _expected_columns(records[0], path)
    inputs = [name for name in records[0].fields if name not in columns and name != "id"]
    if not inputs:
        raise PackError(f"{path}: has only columns of the answer; a model needs something to read")
    for record in records:
        if all(_is_empty(record.fields[name]) for name in inputs):
            raise PackError(f"{record.at}: every input field is empty; a model needs something to read")
    names = _field_names(columns, path)
    values = {names[column]: _values(records, column, is_text=path.suffix.lower() in (".csv", ".tsv")) for column in columns}
    fields = tuple(_field(name, column, path) for name, column in values.items())
    rows = (
        SourceRow(
            id_, {name: record.fields[name] for name in inputs}, {name: column[number] for name, column in values.items()}
        )
        for number, (id_, record) in enumerate(zip(_ids(records), records, strict=True))
    )
    return SourceRows(tuple(rows), fields)


def _refuse_other_columns(records: Sequence[FileRow]) -> None:
    """Raise PackError if a row has other columns than the first row."""
    first_row = records[0]
    for record in records:
        if missing_names := [name for name in first_row.fields if name not in record.fields]:
            raise PackError(
                f"{record.at}: has no '{missing_names[0]}', which the first row has; give every row the same fields"
            )
        if extra_names := [name for name in record.fields if name not in first_row.fields]:
            raise PackError(f"{record.at}: has '{extra_names[0]}', which the first row lacks; give every row the same fields")
        if record.expected != first_row.expected and set(record.expected) != set(first_row.expected):
            raise PackError(
                f"{record.at}: has other fields under 'expected' than the first row; give every row the same fields"
            )


def _expected_columns(first_row: FileRow, path: Path) -> tuple[str, ...]:
    """Return the columns of the answer."""
    columns = [name for name in first_row.fields if name != "id"]
    expected = first_row.expected or tuple(name for name in columns if name.lower().startswith(EXPECTED))
    if not expected:
        problem = f"no column begins with '{EXPECTED}'; rename those that hold the answer, such as {EXPECTED}_team"
        raise PackError(f"{path}: {problem} (there are {', '.join(columns) or 'none'})")
    return expected


def _field_names(columns: Sequence[str], path: Path) -> dict[str, str]:
    """Return a map from each column to the name of its field in the model's answer: `Expected Team` is `team`."""
    names: dict[str, str] = {}
    for column in columns:
        name = _field_name(column)
        if not name:
            raise PackError(f"{path}: the column '{column}' gives no name of a field; rename it with letters of a to z")
        if other := next((known for known, field_name in names.items() if field_name == name), None):
            raise PackError(f"{path}: the columns '{other}' and '{column}' are both the field '{name}'; rename one")
        names[column] = name
    return names


def _field_name(column: str) -> str:
    """Return the name of the field for a column; "" if the column gives no name."""
    identifier = _identifier(column)
    if identifier == EXPECTED:
        return "answer"
    suffix = identifier.removeprefix(f"{EXPECTED}_") if column.lower().startswith(EXPECTED) else identifier
    name = suffix if suffix[:1].isalpha() else identifier if identifier[:1].isalpha() else ""
    return f"{name}_" if keyword.iskeyword(name) or hasattr(Output, name) else name


def _identifier(text: str) -> str:
    """Reduce a text to lower-case letters, digits and single underscores between them."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _is_empty(value: CellValue) -> bool:
    """Whether a cell is empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def _values(records: Sequence[FileRow], column: str, *, is_text: bool) -> list[CellValue]:
    """Return the values of a column of the answer. Values from CSV get the most specific type that all of them fit."""
    for record in records:
        if _is_empty(record.fields[column]):
            raise PackError(f"{record.at}: '{column}' is empty; write what is expected, or leave the row out")
    values = [record.fields[column] for record in records]
    if not is_text:
        return values
    texts = [str(value).strip() for value in values]
    if all(NUMBER.fullmatch(text) or NAN_OR_INFINITY.fullmatch(text) for text in texts):
        for record, text in zip(records, texts, strict=True):
            if not math.isfinite(float(text)):
                raise PackError(f"{record.at}: '{column}' is {text[:30]}, not a finite number; write one, or leave the row out")
    return list(_convert(texts))


def _convert(texts: Sequence[str]) -> Sequence[CellValue]:
    """Return texts as truth values, integers or numbers, if all of them can be converted."""
    if all(text.lower() in ("true", "false") for text in texts):
        return [text.lower() == "true" for text in texts]
    if all(INTEGER.fullmatch(text) for text in texts):
        numbers = [int(text) for text in texts]
        return numbers if max(map(abs, numbers)) <= LARGEST else texts  # longer ones are names, such as account numbers
    return [float(text) for text in texts] if all(NUMBER.fullmatch(text) for text in texts) else texts


KINDS: tuple[tuple[ColumnKind, Callable[[CellValue], bool]], ...] = (
    ("boolean", lambda value: isinstance(value, bool)),
    ("integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    ("number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    ("text", lambda value: isinstance(value, str)),
)


def _field(name: str, values: Sequence[CellValue], path: Path) -> Field:
    """Return the field of an answer with these values. Raises PackError if the values do not make a field."""
    kind = next((kind for kind, fits in KINDS if all(map(fits, values))), None)
    if kind is None:
        raise PackError(f"{path}: '{name}' has values of several types; make all of them texts, numbers, or true and false")
    distinct = list(dict.fromkeys(values))
    plain_values = {plain(value) for value in distinct}
    if all(_same_grade(distinct[0], value) for value in distinct):
        row_count = "the only row" if len(values) == 1 else f"all {len(values)} rows"
        raise PackError(
            f"{path}: '{name}' is the same in {row_count}, so there is nothing to tell apart; add others, or take it out"
        )
    words = tuple(str(value) for value in distinct)
    is_vocabulary = len(words) <= MAX_WORDS and 2 * len(words) <= len(values)
    if kind != "text" or not is_vocabulary or not all(len(word) <= LONGEST_WORD and word.isprintable() for word in words):
        return Field(name, kind)
    if len(plain_values) < len(words):
        similar = next([word, other] for word in words for other in words if word != other and plain(word) == plain(other))
        raise PackError(
            f"{path}: '{name}' has {similar[0]!r} and {similar[1]!r}, which differ in case or space; write them alike"
        )
    return Field(name, "word", tuple(sorted(words)))


def _same_grade(value: CellValue, other: CellValue) -> bool:
    """Whether the grader of a pack of rows gives both answers the same grade. Numbers are compared to nine digits."""
    if isinstance(value, int | float) and isinstance(other, int | float) and float in (type(value), type(other)):
        return math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9)
    return plain(value) == plain(other)


def plain(value: CellValue) -> CellValue:
    """Return a text with uniform case and space; other values unchanged."""
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _ids(records: Sequence[FileRow]) -> list[str]:
    """Return the name of each row's instance: the row's id as an identifier, or the row's number."""
    if "id" not in records[0].fields:
        width = max(3, len(str(len(records))))
        return [f"row_{number:0{width}}" for number in range(1, len(records) + 1)]
    ids: dict[str, CellValue] = {}
    for record in records:
        row_id = record.fields["id"]
        name = _identifier(str(row_id)) if isinstance(row_id, str | int) and not isinstance(row_id, bool) else ""
        if not name:
            raise PackError(f"{record.at}: the id {row_id!r} gives no name; write letters of a to z or digits")
        name = name if name[0].isalpha() else f"row_{name}"
        if name in ids:
            problem = (
                f"the id {row_id!r} appears"
                if row_id == ids[name]
                else f"the ids {ids[name]!r} and {row_id!r} are both '{name}', which appears"
            )
            raise PackError(f"{record.at}: {problem} twice; rename one")
        ids[name] = row_id
    return list(ids)
