"""Decides when a row of a cell equals a row of the clean runs: a store may have generated another key, and some values vary."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

from bench.probe.run.volatile import ChangedRows, Varying, columns_of, key_columns, place_of
from bench.record.probe_rows import SEQUENCES, Cell, RowDifference

_RowContent = tuple[str, str, str]
"""Store, table and content of an added row: it replaces the row's key where another row refers to this key."""
RowsByKey = Mapping[Cell, frozenset[_RowContent]]
"""Key value -> the added rows with this key."""


class RowMatcher:
    """Compares rows of a cell with rows of the clean runs.

    Generated keys are ignored. A column that refers to a generated key is compared by the content of the row with this key.

    Args:
        clean_rows: The rows that the clean runs change.
        rows: The rows that the cell changes.
        varying: The values that vary between clean runs.

    rows_by_key, clean_rows_by_key   the rows that the cell and the clean runs add, by their keys
    """

    def __init__(self, clean_rows: ChangedRows, rows: ChangedRows, varying: Varying):
        self._clean_rows, self._rows, self._varying = clean_rows, rows, varying
        self._keys = {value for row in (*rows.values(), *clean_rows.values()) for value in _keys_of_added(row)}
        self.rows_by_key, self.clean_rows_by_key = self._by_key(rows), self._by_key(clean_rows)

    def _by_key(self, rows: ChangedRows) -> RowsByKey:
        """Return the contents of added rows by their key values."""
        contents = defaultdict[Cell, set[_RowContent]](set)
        for row in rows.values():
            for value in _keys_of_added(row):
                contents[value].add((row.store, row.table, self.content_key(row)))
        return {value: frozenset(contents[value]) for value in contents}

    def varies(self, row: RowDifference, column: str) -> bool:
        """Return whether the value in a column of a row varies between clean runs. The row's `before` may be any former
        state."""
        place = place_of(row)
        changed = self._clean_rows.get(place) or self._rows.get(place) or row
        return self._varying.has(place, column, is_added=changed.before is None)

    def compared_columns(self, row: RowDifference) -> Iterator[str]:
        """Yield the columns by which a row is compared: those that do not vary. Of a file these are its kind, its mode, and the
        column that has most of its content."""
        before, after = row.before or {}, row.after or {}
        names = ("kind", "mode") if is_file(row) else {**before, **after}
        yield from (name for name in names if not self.varies(row, name))
        for name in ("text", "appended", "size", "digest") if is_file(row) else ():
            cells = before.get(name), after.get(name)
            # equal sizes do not show equal content: the digest is compared then
            if None not in cells and not self.varies(row, name) and (name != "size" or cells[0] != cells[1]):
                yield name
                return

    def content_key(self, row: RowDifference) -> str:
        """Return a text that is equal for rows which differ only in generated keys, and in values that vary."""
        keys, cells = key_columns(row), dict[str, Cell]()
        for name, value in columns_of(row).items():
            if name not in keys and value not in self._keys and not self.varies(row, name):
                cells[name] = value
        return json.dumps(cells, sort_keys=True)

    def full_key(self, row: RowDifference, rows_by_key: RowsByKey) -> str:
        """Return a text that is equal for equal rows. A value that varies is left out, or replaced by the row to which it
        refers."""
        keys, columns = key_columns(row), dict[str, Cell | list[_RowContent]]()
        for name, value in columns_of(row).items():
            if not self.varies(row, name):
                columns[name] = value
            elif name not in keys:
                columns[name] = sorted(rows_by_key.get(value, ()))
        return json.dumps(columns, sort_keys=True)

    def refer_to_equal_rows(self, clean_value: Cell, value: Cell) -> bool:
        """Return whether two values are the keys of rows with equal content. A text that is a key in the clean runs refers
        only to itself."""
        if isinstance(value, str) and value in self.clean_rows_by_key:
            return value == clean_value
        return not self.clean_rows_by_key.get(clean_value, frozenset()).isdisjoint(self.rows_by_key.get(value, ()))

    def equal_without_keys(self, clean: RowDifference, row: RowDifference) -> bool:
        """Return whether two rows are equal apart from their keys."""
        columns, clean_columns, keys = columns_of(row), columns_of(clean), key_columns(row)
        for name in {**columns, **clean_columns}:
            clean_value, value = clean_columns.get(name), columns.get(name)
            # a value that varies counts as equal, unless it is the key of a row that the clean runs add
            is_equal = clean_value not in self.clean_rows_by_key if self.varies(row, name) else clean_value == value
            if name not in keys and not is_equal and not self.refer_to_equal_rows(clean_value, value):
                return False
        return True

    def have_equal_keys(self, clean: RowDifference, row: RowDifference) -> bool:
        """Return whether two rows have equal keys, apart from columns that vary."""
        columns, clean_columns = columns_of(row), columns_of(clean)
        return all(columns[name] == clean_columns.get(name) or self.varies(row, name) for name in key_columns(row))

    def differ_by_references(self, clean: RowDifference, row: RowDifference) -> bool:
        """Return whether two rows, equal apart from their keys, refer to different keys of other rows."""
        columns, keys = columns_of(row), key_columns(row)
        return any(
            columns.get(name) != value
            for name, value in columns_of(clean).items()
            if name not in keys and not self.varies(row, name)
        )

    def count_equal_columns(self, clean: RowDifference, row: RowDifference) -> int:
        """Return the number of columns in which two rows are equal. A value that varies counts as equal."""
        columns = columns_of(row)
        return sum(
            name in columns and (self.varies(clean, name) or columns[name] == value)
            for name, value in columns_of(clean).items()
        )


def is_file(row: RowDifference) -> bool:
    """Return whether a row is a file."""
    return not row.table and "digest" in (row.after or {})


def _keys_of_added(row: RowDifference) -> set[Cell]:
    """Return the key values of a row that was added to a table; none for another row, and for a file."""
    if row.before is not None or row.table in ("", SEQUENCES):
        return set()
    cells = columns_of(row)
    return {cells[name] for name in key_columns(row)}
