"""The form in which the values of a store are shown: as JSON values, within a bound, and without the values that the owner
hides."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from bench.common.errors import whole_text
from bench.probe.run.witness.hiding import HIDDEN_MARK, HiddenNames
from bench.record.probe_rows import Cell, RowDifference

StoredRow = tuple[object, ...]
RowPair = tuple[StoredRow | None, StoredRow | None]
"""A row before and now."""

SCHEMA = "(schema)"
"""The table of what was created in a store: tables, indexes, views, triggers."""
MAX_VALUE_CHARS = 4096
"""A longer value is shown as a digest."""
_MARKS = ("(bytes)", "(digest)", "(number)", HIDDEN_MARK, "(text)")
_INTEGER_BOUND = 2**63


class Encoding:
    """Encodes values as cells and digests.

    Args:
        hide: Names of columns, and of members of JSON in a column, whose values are shown only as digests. Case is ignored.
        secret: The key of all digests: equal values have equal digests in one run, and a value cannot be guessed from its
            digest.

    hidden  the names in `hide`
    """

    def __init__(self, hide: frozenset[str] = frozenset(), secret: bytes = b"") -> None:
        self.hidden = HiddenNames(hide, secret)
        self._secret = hashlib.blake2b(secret, digest_size=32).digest()

    def digest(self, content: bytes) -> str:
        """Return 32 hex digits that identify the content within one run."""
        return self.new_hash(content).hexdigest()

    def new_hash(self, content: bytes = b"") -> hashlib.blake2b:
        """Return a keyed hash that continues after this content."""
        return hashlib.blake2b(content, digest_size=16, key=self._secret)

    def weight(self, row: object) -> int:
        """Return an integer of 128 bits for a row of built-in values. The sum of the integers of all rows, modulo 2**128, is
        the digest of a table."""
        return int.from_bytes(self.new_hash(repr(row).encode("utf-8", "surrogatepass")).digest(), "big")

    def cell(self, column: str, value: object) -> Cell:
        """Return a value in the form in which it is shown. Different values of a column have different forms.

        A value that JSON cannot represent begins with its kind in brackets, and so does a text that looks like such a value.
        """
        if self.hidden.has(column):
            return self.hidden.digest(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float | Decimal):
            return _number(value)
        if isinstance(value, bytes):
            return f"(bytes) {value.hex()}" if 2 * len(value) <= MAX_VALUE_CHARS else self._long(value, "bytes")
        text = self.hidden.hide_in_text(printable(str(value)))
        if len(text) > MAX_VALUE_CHARS:
            return self._long(text.encode(), "bytes of text")
        return f"(text) {text}" if text.startswith(_MARKS) else text

    def row(self, columns: Sequence[str], values: Sequence[object]) -> dict[str, Cell]:
        """Return a row in the form in which it is shown: column -> cell."""
        return {printable(column): self.cell(column, value) for column, value in zip(columns, values, strict=True)}

    def key(self, columns: Sequence[str], values: Sequence[object]) -> str:
        """Return the name of a row: the values of its key as JSON."""
        cells = [self.cell(column, value) for column, value in zip(columns, values, strict=True)]
        return json.dumps(cells, ensure_ascii=False)

    def difference(
        self, store: str, table: str, key: Sequence[str], columns: Sequence[str], pair: RowPair, difference_counts: Counter[str]
    ) -> RowDifference:
        """Return a differing row, before and after, in the form in which it is shown. The columns of the key come first, so
        that a reader of the row tells them from other columns with equal values.

        Args:
            store: The store's name.
            table: The table's name.
            key: The columns of the table's key; none if it has no key.
            columns: All columns of the table.
            pair: The values before and after.
            difference_counts: Counts equal differences in a table whose rows have no key. The count is part of the row's name.
        """
        places = [*map(columns.index, key), *(place for place, column in enumerate(columns) if column not in key)]
        shown_columns = [columns[place] for place in places]
        before, after = (None if row is None else self.row(shown_columns, [row[place] for place in places]) for row in pair)
        if key:
            values = pair[1] if pair[1] is not None else pair[0] or ()
            name = self.key(key, [values[columns.index(column)] for column in key])
        else:
            content = self.digest(repr((before, after)).encode())
            name, difference_counts[content] = f"{content} {difference_counts[content]}", difference_counts[content] + 1
        return RowDifference(store, printable(table), name, before, after)

    def _long(self, content: bytes, kind: str) -> str:
        """Return the size and digest that replace a value that is too long."""
        return f"(digest) {len(content)} {kind} {self.digest(content)}"


def sql_name(name: str) -> str:
    """Return a quoted SQL name."""
    return '"' + name.replace('"', '""') + '"'


def printable(text: str) -> str:
    """Return a text that UTF-8 can encode. Invalid bytes are shown as escapes."""
    try:
        return whole_text(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
    except UnicodeEncodeError:
        return whole_text(text)


def _number(value: int | float | Decimal) -> Cell:
    """Return a number as a JSON number if that is exact, otherwise as text with `(number)`."""
    if isinstance(value, int):
        return value if -_INTEGER_BOUND <= value < _INTEGER_BOUND else f"(number) {value}"
    if not math.isfinite(value):
        return f"(number) {Decimal(value)}"
    if isinstance(value, float):
        return value
    if value == value.to_integral_value() and abs(value) < _INTEGER_BOUND:
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else f"(number) {value}"
