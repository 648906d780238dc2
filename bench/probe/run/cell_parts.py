"""The parts of values: a text that holds JSON is compared part by part, as if each of its numbers and texts were a column."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bench.common.bounds import is_too_deep
from bench.record.probe_rows import Cell, Row

ITEM = "[] "
"""Stands before an item of a list. Such a part counts how often the list has the item."""


@dataclass(frozen=True, order=True)
class CellPart:
    """A part of the value in a column. `path` is where it stands in the column's JSON; "" for the whole value."""

    column: str
    path: str = ""

    @property
    def is_item(self) -> bool:
        return ITEM in self.path

    @property
    def name(self) -> str:
        path, _, item = self.path.partition(ITEM)
        return f"{self.column}{path}{' with ' if item else ''}{item}"


def states_of(column: str, rows: Sequence[Row | None]) -> Sequence[Mapping[CellPart, Cell]]:
    """Return what rows have in a column, by its parts if it is JSON in each of them."""
    cells = [{column: row[column]} if row and column in row else {} for row in rows]
    held = [_json_in(value) for each in cells for value in each.values() if value is not None]
    if None in held:
        return [{CellPart(column): value for value in each.values()} for each in cells]
    return [
        {CellPart(column, path): part for value in each.values() for path, part in _parts(_json_in(value), "")}
        for each in cells
    ]


def _parts(value: Any, path: str) -> Iterator[tuple[str, Cell]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _parts(member, f"{path}.{name}")
    elif isinstance(value, list):
        for item, times in Counter(json.dumps(item, sort_keys=True) for item in value).items():
            yield f"{path}{ITEM}{item}", times
    else:
        yield path, value


@dataclass(frozen=True)
class PartChange:
    """A part of a column's value, before and after. `is_new` says that an object in the JSON had no member of this name."""

    name: str
    before: Cell
    after: Cell
    is_new: bool = False


def changed_parts(column: str, before: Cell, after: Cell) -> Iterator[PartChange]:
    """Yield the parts in which two values of a column differ. A list of another length is one, and so is an object with other
    names, as JSON."""
    later = _json_in(after)
    former = type(later)() if before is None and later is not None else _json_in(before)
    if type(former) is type(later) and former is not None:
        yield from _changes_between(column, former, later)
    else:
        yield PartChange(column, before, after)


def _changes_between(name: str, former: Any, later: Any) -> Iterator[PartChange]:
    if isinstance(former, dict) and isinstance(later, dict):
        for member, value in later.items():
            if member in former:
                yield from _changes_between(f"{name}.{member}", former[member], value)
            elif not isinstance(value, dict | list):
                yield PartChange(f"{name}.{member}", None, value, is_new=True)
        if former.keys() != later.keys():
            yield PartChange(name, json.dumps(dict.fromkeys(former)), json.dumps(dict.fromkeys(later)))
    elif isinstance(former, list) and isinstance(later, list) and len(former) == len(later):
        for at, (early, late) in enumerate(zip(former, later, strict=True)):
            yield from _changes_between(f"{name}[{at}]", early, late)
    elif former != later or type(former) is not type(later):
        yield PartChange(name, _cell(former), _cell(later))


def _cell(value: Any) -> Cell:
    return json.dumps(value) if isinstance(value, dict | list) else value


def json_growth(before: Cell, after: Cell) -> int:
    """Count the items and names that the JSON in a text has more than before; 0 if it lacks any that it had."""
    return _growth(_json_in(before), _json_in(after))


def _growth(former: Any, later: Any) -> int:
    if isinstance(later, dict) and isinstance(former, dict | None):
        names = former or {}
        return sum(1 if name not in names else _growth(names[name], value) for name, value in later.items())
    if isinstance(later, list) and isinstance(former, list | None):
        had, has = (Counter(json.dumps(item, sort_keys=True) for item in each or ()) for each in (former, later))
        return (has - had).total() if had <= has else 0
    return 0


def _json_in(value: Cell) -> Any:
    """Return the list or object that a text holds as JSON, else None."""
    with suppress(ValueError, RecursionError):
        held = json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") else None
        return None if is_too_deep(held) else held
    return None
