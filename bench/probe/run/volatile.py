"""Find the values that differ between clean runs: parts of arguments, parts of prompts, and columns. Comparisons leave them
out."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from bench.common.digests import digest_of
from bench.probe.run.gateway.journal import RowPlace, likest, text_of
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import BY_CONTENT, IN_LIST, SEQUENCES, Row, RowDifference

PartPath = tuple[str | int, ...]
"""The way to a part of a JSON value."""
Template = tuple[str | None, ...] | None
"""The pieces of a text, None for a piece that varies; None if the whole part varies."""
HOLE = "…"
_piece = re.compile(r"[\w.:+-]+|[^\w.:+-]+")
KEY = ""
"""Stands for the key among the columns of a row whose key is in no column, as a file's path is."""
NAME = "(name)"
"""Stands for a file's path without the ids and numbers in it: files with other names are of another kind."""
_id = re.compile(r"[0-9a-fA-F]{8,}|\d+")
StoreColumn = tuple[str, str, str]
"""Store, table and column."""
StoreValue = tuple[str, str, str, str]
"""Store, table, key and column."""


@dataclass(frozen=True)
class Masks:
    """The parts of arguments that vary between clean runs, by server and tool."""

    parts: Mapping[tuple[str, str], Mapping[PartPath, frozenset[Template]]] = field(default_factory=dict)

    def identity(self, door: str, tool: str, arguments: JsonValue) -> str:
        """Return the identity of a call: the same for calls of one tool whose arguments differ only in parts that vary."""
        what, parts = _with_path(tool, arguments)
        for steps, templates in self.parts.get((door, what), {}).items():
            parts = _replace_part(parts, steps, templates)
        return digest_of(text_of([door, what, parts]))

    def tool(self, door: str, tool: str) -> str:
        """Return a tool as a cell is named by it: what varies of the path of an HTTP service is `*`."""
        what, parts = _with_path(tool, None)
        if what == tool:
            return tool
        for steps, templates in self.parts.get((door, what), {}).items():
            parts = _replace_part(parts, steps, templates)
        assert isinstance(parts, list)
        return f"{what} {'/'.join(map(str, parts[:-1]))}".replace(HOLE, "*")

    @property
    def names(self) -> list[str]:
        """The parts that vary, in words for a person."""
        return sorted(
            f"{door}.{tool}: {'.'.join(map(str, steps)) or 'its arguments'}"
            for (door, tool), parts in self.parts.items()
            for steps in parts
        )


def masks_of(runs: Sequence[Sequence[tuple[GatewayCall, JsonValue]]]) -> Masks:
    """Return the parts of arguments that differ between clean runs; each run is its calls with their arguments."""
    parts: dict[tuple[str, str], dict[PartPath, set[Template]]] = defaultdict(lambda: defaultdict(set))
    first = _by_tool(runs[0])
    for run in runs[1:]:
        for tool, later in _by_tool(run).items():
            for early, late in likest(*_unequal(first.get(tool, []), later), _distance):
                for steps, former, latter in _parts(early, late, ()):
                    parts[tool][steps].add(_template(former, latter))
    return Masks({tool: {steps: frozenset(kinds) for steps, kinds in held.items()} for tool, held in parts.items()})


def _by_tool(run: Iterable[tuple[GatewayCall, JsonValue]]) -> dict[tuple[str, str], list[JsonValue]]:
    calls: dict[tuple[str, str], list[JsonValue]] = defaultdict(list)
    for call, arguments in run:
        what, parts = _with_path(call.tool, arguments)
        calls[call.door, what].append(parts)
    return calls


def _with_path(tool: str, arguments: JsonValue) -> tuple[str, JsonValue]:
    """Return a tool and its arguments. The path of an HTTP service can vary, so it counts as an argument."""
    method, _, path = tool.partition(" ")
    return (method, [*path.split("/"), arguments]) if path.startswith("/") else (tool, arguments)


def _unequal(earlies: Sequence[JsonValue], lates: Sequence[JsonValue]) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return two lists without the values that are equal in both."""
    kept, left = list[JsonValue](), defaultdict[str, list[JsonValue]](list)
    for late in lates:
        left[text_of(late)].append(late)
    for early in earlies:
        if equal := left[text_of(early)]:
            equal.pop()
        else:
            kept.append(early)
    return kept, [late for values in left.values() for late in values]


def _distance(early: JsonValue, late: JsonValue) -> int:
    return sum(1 for _ in _parts(early, late, ()))


def _parts(early: JsonValue, late: JsonValue, steps: PartPath) -> Iterator[tuple[PartPath, JsonValue, JsonValue]]:
    """Yield the parts in which two values differ, down to texts, numbers, and lists of another length."""
    if isinstance(early, dict) and isinstance(late, dict) and early.keys() == late.keys():
        for name in early:
            yield from _parts(early[name], late[name], (*steps, name))
    elif isinstance(early, list) and isinstance(late, list) and len(early) == len(late):
        for at, (former, latter) in enumerate(zip(early, late, strict=True)):
            yield from _parts(former, latter, (*steps, at))
    elif early != late or type(early) is not type(late):
        yield steps, early, late


def _template(early: JsonValue, late: JsonValue) -> Template:
    if not (isinstance(early, str) and isinstance(late, str)):
        return None
    former, latter = _piece.findall(early), _piece.findall(late)
    if len(former) != len(latter):
        return None
    template = tuple(piece if piece == other else None for piece, other in zip(former, latter, strict=True))
    return template if any(piece and piece.strip() for piece in template) else None


def _replace_part(value: JsonValue, steps: PartPath, templates: frozenset[Template]) -> JsonValue:
    if not steps:
        return HOLE if None in templates else _mask(value, templates)
    head, rest = steps[0], steps[1:]
    if isinstance(value, dict) and isinstance(head, str) and head in value:
        return {**value, head: _replace_part(value[head], rest, templates)}
    if isinstance(value, list) and isinstance(head, int) and head < len(value):
        return [*value[:head], _replace_part(value[head], rest, templates), *value[head + 1 :]]
    return value


def _mask(value: JsonValue, templates: frozenset[Template]) -> JsonValue:
    if not isinstance(value, str):
        return value
    pieces = _piece.findall(value)
    for template in templates:
        if template and len(template) == len(pieces) and all(k in (None, p) for k, p in zip(template, pieces, strict=True)):
            return "".join(HOLE if kept is None else kept for kept in template)
    return value


ChangedRows = Mapping[RowPlace, RowDifference]


def place_of(row: RowDifference) -> RowPlace:
    return row.store, row.table, row.key


def columns_of(row: RowDifference) -> Row:
    """Return the columns of a row; for a row that is gone, its former columns. A key that is in no column stands under
    `KEY`."""
    cells = (row.before if row.after is None else row.after) or {}
    by_content = BY_CONTENT.fullmatch(row.key) or IN_LIST.fullmatch(row.key)
    if by_content or _values_of(row) is not None:
        return cells
    return {**cells, KEY: row.key} | ({} if row.table else {NAME: path_without_ids(row.key)})


def path_without_ids(path: str) -> str:
    return _id.sub(HOLE, path)


def _values_of(row: RowDifference) -> list[Any] | None:
    """Return the values of a primary key; None if a row has none."""
    try:
        values = json.loads(row.key) if row.table and row.key.startswith("[") else None
    except ValueError:
        return None
    return values if isinstance(values, list) else None


def key_columns(row: RowDifference) -> frozenset[str]:
    """Return the columns that make a row's key."""
    cells, columns = columns_of(row), list[str]()
    for value in _values_of(row) or ():
        same = (name for name, cell in cells.items() if name not in columns and type(cell) is type(value) and cell == value)
        columns += list(same)[:1]
    return frozenset(columns) | ({KEY} & cells.keys())


@dataclass(frozen=True)
class Varying:
    """What differs between clean runs in their rows.

    columns  of rows that were added: any of them can hold another value
    values   single values of rows that stood at the reset
    """

    columns: frozenset[StoreColumn] = frozenset()
    values: frozenset[StoreValue] = frozenset()

    def has(self, place: RowPlace, column: str, *, is_added: bool) -> bool:
        """Return whether the value of a row varies. The size of a file varies with its content."""
        column = "digest" if not place[1] and column == "size" else column
        return (*place[:2], column) in self.columns if is_added else (*place, column) in self.values

    @property
    def names(self) -> list[str]:
        """The columns that vary, in words for a person."""
        columns = {*self.columns, *((store, table, column) for store, table, _, column in self.values)}
        return sorted(".".join(filter(None, column)) for column in columns)

    def __or__(self, other: Varying) -> Varying:
        return Varying(self.columns | other.columns, self.values | other.values)


def varying_of(early: ChangedRows, late: ChangedRows) -> tuple[Varying, list[RowDifference]]:
    """Return what differs between the last readings of two clean runs, and the rows that only one of them has."""
    pairs, lonely = _pairs(early, late)
    columns, values = set[StoreColumn](), set[StoreValue]()
    for former, latter in pairs:
        for name in _unequal_columns(former, latter):
            if former.before is None:
                columns.add((former.store, former.table, name))
            else:
                values.add((*place_of(former), name))
    return Varying(frozenset(columns), frozenset(values)), [row for pair in lonely for row in pair if row]


def rows_apart(early: ChangedRows, late: ChangedRows, varying: Varying) -> list[RowDifference]:
    """Return the rows in which two runs differ beyond what varies and beyond keys: `before` as in the first of them, `after` as
    in the other; None where a run lacks the row."""
    pairs, lonely = _pairs(early, late)
    keys = {value for rows in (early, late) for row in rows.values() for value in _values_of(row) or ()}
    apart = [
        replace(former, before=former.after, after=latter.after)
        for former, latter in pairs
        for here, there in [(columns_of(former), columns_of(latter))]
        if any(
            not varying.has(place_of(former), name, is_added=former.before is None)
            and not {here.get(name), there.get(name)} <= keys
            for name in _unequal_columns(former, latter)
        )
    ]
    apart += [replace(row, before=row.after, after=None) for row, _ in lonely if row]
    return apart + [replace(row, before=None) for _, row in lonely if row]


def _unequal_columns(former: RowDifference, latter: RowDifference) -> list[str]:
    here, there = columns_of(former), columns_of(latter)
    return [name for name in {**here, **there} if here.get(name) != there.get(name)]


_Pair = tuple[RowDifference, RowDifference]
_Lonely = tuple[RowDifference | None, RowDifference | None]


def _pairs(early: ChangedRows, late: ChangedRows) -> tuple[list[_Pair], list[_Lonely]]:
    """Return the rows of two runs that are the same rows, and those that only one of them has, each with None for the other."""
    pairs, lonely = list[_Pair](), list[_Lonely]()
    kinds: dict[tuple[str, str, str], tuple[list[RowDifference], list[RowDifference]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((early, late)):
        for row in rows.values():
            if row.table != SEQUENCES:
                kinds[row.store, row.table, _kind(row)][side].append(row)
    for (_, _, kind), (earlies, lates) in kinds.items():
        by_key = {row.key: row for row in lates}
        same = [(row, by_key[row.key]) for row in earlies if row.key in by_key and (kind != "added" or row == by_key[row.key])]
        if kind == "added":
            equal = {row.key for row, _ in same}
            rest, others = ([row for row in side if row.key not in equal] for side in (earlies, lates))
            same += likest(rest, others, _differing)
        once = {id(row) for pair in same for row in pair}
        lonely += [(row, None) for row in earlies if id(row) not in once]
        lonely += [(None, row) for row in lates if id(row) not in once]
        pairs += same
    return pairs, lonely


def _kind(row: RowDifference) -> str:
    return "added" if row.before is None else "removed" if row.after is None else "changed"


def _differing(early: RowDifference, late: RowDifference) -> int:
    """Count the columns that differ. A column of the key counts least: a store may have made it."""
    here, there = columns_of(early), columns_of(late)
    keys = key_columns(early) | key_columns(late)
    return sum(1 if name in keys else 2 for name in {**here, **there} if here.get(name) != there.get(name))
