"""The parts of values: a text that holds JSON is compared member by member, as if each of its numbers and texts were a
column."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bench.common.bounds import is_too_deep
from bench.record.probe_rows import Cell, Row

ITEM_MARK = "[] "
"""The mark before a list's item in the path of a part. The value of this part is how often the list has the item."""


@dataclass(frozen=True, order=True)
class CellPart:
    """A part of the value in a column. `path` is the part's position in the column's JSON; "" for the whole value."""

    column: str
    path: str = ""

    @property
    def is_item(self) -> bool:
        """Whether the part counts an item of a list."""
        return ITEM_MARK in self.path

    @property
    def name(self) -> str:
        """The part in words."""
        path, _, item = self.path.partition(ITEM_MARK)
        return f"{self.column}{path}{' with ' if item else ''}{item}"


def parts_of_column(column: str, rows: Sequence[Row | None]) -> Sequence[Mapping[CellPart, Cell]]:
    """Return the parts of a column's value with their values, for each state of a row: the members of its JSON if the value
    is JSON in every state, else the whole value as one part."""
    cells = [{column: row[column]} if row and column in row else {} for row in rows]
    documents = [_json_in(value) for row_cells in cells for value in row_cells.values() if value is not None]
    if None in documents:
        return [{CellPart(column): value for value in row_cells.values()} for row_cells in cells]
    return [
        {CellPart(column, path): part for value in row_cells.values() for path, part in _parts(_json_in(value), "")}
        for row_cells in cells
    ]


def _parts(value: Any, path: str) -> Iterator[tuple[str, Cell]]:
    """Yield the parts of a JSON value with their paths."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _parts(member, f"{path}.{name}")
    elif isinstance(value, list):
        for item, times in Counter(json.dumps(item, sort_keys=True) for item in value).items():
            yield f"{path}{ITEM_MARK}{item}", times
    else:
        yield path, value


@dataclass(frozen=True)
class PartChange:
    """A part of a column's value, before and after. `is_new` says that an object in the JSON had no such member."""

    name: str
    before: Cell
    after: Cell
    is_new: bool = False


def changed_parts(column: str, before: Cell, after: Cell) -> Iterator[PartChange]:
    """Yield the parts in which two values of a column differ. If the length of a list or the names in an object differ, the
    whole list or object is one part."""
    json_after = _json_in(after)
    json_before = type(json_after)() if before is None and json_after is not None else _json_in(before)
    if type(json_before) is type(json_after) and json_before is not None:
        yield from _changes_between(column, json_before, json_after)
    else:
        yield PartChange(column, before, after)


def _changes_between(name: str, before: Any, after: Any) -> Iterator[PartChange]:
    """Yield the parts in which two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for member, value in after.items():
            if member in before:
                yield from _changes_between(f"{name}.{member}", before[member], value)
            elif not isinstance(value, dict | list):
                yield PartChange(f"{name}.{member}", None, value, is_new=True)
        if before.keys() != after.keys():
            yield PartChange(name, json.dumps(dict.fromkeys(before)), json.dumps(dict.fromkeys(after)))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (item_before, item_after) in enumerate(zip(before, after, strict=True)):
            yield from _changes_between(f"{name}[{index}]", item_before, item_after)
    elif before != after or type(before) is not type(after):
        yield PartChange(name, _cell(before), _cell(after))


def _cell(value: Any) -> Cell:
    """Return a JSON value as the value of a column."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def json_growth(before: Cell, after: Cell) -> int:
    """Return how many list items and members the JSON in a text has gained. A list that lost an item counts as 0."""
    return _growth(_json_in(before), _json_in(after))


def _growth(before: Any, after: Any) -> int:
    """Return how many list items and members a JSON value has gained. A list that lost an item counts as 0."""
    if isinstance(after, dict) and isinstance(before, dict | None):
        old_members = before or {}
        return sum(_growth(old_members[name], value) if name in old_members else 1 for name, value in after.items())
    if isinstance(after, list) and isinstance(before, list | None):
        old_items, new_items = (Counter(json.dumps(item, sort_keys=True) for item in items or ()) for items in (before, after))
        return (new_items - old_items).total() if old_items <= new_items else 0
    return 0


def _json_in(value: Cell) -> Any:
    """Return the list or object that a text holds as JSON; None if it holds none."""
    with suppress(ValueError, RecursionError):
        document = json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") else None
        return None if is_too_deep(document) else document
    return None
