"""Finds the values that differ between clean runs: parts of arguments, parts of prompts, and columns. Comparisons ignore
them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from bench.common.digests import digest_of
from bench.probe.run.gateway.journal import RowPlace, most_similar_pairs, text_of
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import BY_CONTENT, IN_LIST, SEQUENCES, Row, RowDifference

PartPath = tuple[str | int, ...]
"""The path to a part of a JSON value: names of members and indexes of items."""
Template = tuple[str | None, ...] | None
"""The pieces of a text, with None for each piece that varies; None alone if the whole text varies."""
MASK = "…"
"""The text that replaces a part or piece that varies."""
_text_piece = re.compile(r"[\w.:+-]+|[^\w.:+-]+")
KEY_COLUMN = ""
"""The name under which the key of a row is among its columns, if no column contains it: for example the path of a file."""
PATH_PATTERN_COLUMN = "(name)"
"""The name under which the path of a file, without its ids and numbers, is among the columns. Files whose paths differ
otherwise are of another kind."""
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
        """Return the identity of a call: equal for calls of one tool whose arguments differ only in parts that vary."""
        method, parts = _with_path(tool, arguments)
        for path, templates in self.parts.get((door, method), {}).items():
            parts = _replace_part(parts, path, templates)
        return digest_of(text_of([door, method, parts]))

    def tool(self, door: str, tool: str) -> str:
        """Return the name of a tool in the names of cells: parts of an HTTP path that vary are `*`."""
        method, parts = _with_path(tool, None)
        if method == tool:
            return tool
        for path, templates in self.parts.get((door, method), {}).items():
            parts = _replace_part(parts, path, templates)
        assert isinstance(parts, list)
        return f"{method} {'/'.join(map(str, parts[:-1]))}".replace(MASK, "*")

    @property
    def names(self) -> list[str]:
        """The parts of arguments that vary, in words, such as `bank.pay: order.id`."""
        return sorted(
            f"{door}.{tool}: {'.'.join(map(str, path)) or 'its arguments'}"
            for (door, tool), parts in self.parts.items()
            for path in parts
        )


def masks_of(runs: Sequence[Sequence[tuple[GatewayCall, JsonValue]]]) -> Masks:
    """Return the parts of arguments that differ between clean runs. A run is given as its calls, each with its arguments."""
    templates: dict[tuple[str, str], dict[PartPath, set[Template]]] = defaultdict(lambda: defaultdict(set))
    first = _by_tool(runs[0])
    for run in runs[1:]:
        for tool, later_calls in _by_tool(run).items():
            unequal_calls = _unequal(first.get(tool, []), later_calls)
            for first_arguments, later_arguments in most_similar_pairs(*unequal_calls, _distance):
                for path, first_part, later_part in _parts(first_arguments, later_arguments, ()):
                    templates[tool][path].add(_template(first_part, later_part))
    parts = {tool: {path: frozenset(masked[path]) for path in masked} for tool, masked in templates.items()}
    return Masks(parts)


def _by_tool(run: Iterable[tuple[GatewayCall, JsonValue]]) -> dict[tuple[str, str], list[JsonValue]]:
    """Return the arguments of the calls of a run, by server and tool."""
    calls: dict[tuple[str, str], list[JsonValue]] = defaultdict(list)
    for call, arguments in run:
        method, parts = _with_path(call.tool, arguments)
        calls[call.door, method].append(parts)
    return calls


def _with_path(tool: str, arguments: JsonValue) -> tuple[str, JsonValue]:
    """Return a tool and its arguments. The path of an HTTP call is moved from the tool to the arguments, since it can vary."""
    method, _, path = tool.partition(" ")
    return (method, [*path.split("/"), arguments]) if path.startswith("/") else (tool, arguments)


def _unequal(firsts: Sequence[JsonValue], seconds: Sequence[JsonValue]) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return two lists without the values that both contain. A value that one list contains more often keeps the surplus."""
    first_only, second_by_text = list[JsonValue](), defaultdict[str, list[JsonValue]](list)
    for second in seconds:
        second_by_text[text_of(second)].append(second)
    for first in firsts:
        if equal := second_by_text[text_of(first)]:
            equal.pop()
        else:
            first_only.append(first)
    return first_only, [second for values in second_by_text.values() for second in values]


def _distance(first: JsonValue, second: JsonValue) -> int:
    """Return the number of parts in which two values differ."""
    return sum(1 for _ in _parts(first, second, ()))


def _parts(first: JsonValue, second: JsonValue, path: PartPath) -> Iterator[tuple[PartPath, JsonValue, JsonValue]]:
    """Yield the path and both values of each part in which two values differ: texts, numbers, lists of different lengths, and
    objects of different members. `path` is the path of the two values."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for name in first:
            yield from _parts(first[name], second[name], (*path, name))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (first_item, second_item) in enumerate(zip(first, second, strict=True)):
            yield from _parts(first_item, second_item, (*path, index))
    elif first != second or type(first) is not type(second):
        yield path, first, second


def _template(first: JsonValue, second: JsonValue) -> Template:
    """Return the pieces that two texts have in common, with None for each piece that differs; None if nothing is common."""
    if not (isinstance(first, str) and isinstance(second, str)):
        return None
    first_pieces, second_pieces = _text_piece.findall(first), _text_piece.findall(second)
    if len(first_pieces) != len(second_pieces):
        return None
    template = tuple(
        piece if piece == second_piece else None for piece, second_piece in zip(first_pieces, second_pieces, strict=True)
    )
    return template if any(piece and piece.strip() for piece in template) else None


def _replace_part(value: JsonValue, path: PartPath, templates: frozenset[Template]) -> JsonValue:
    """Return a value in which the part at this path is masked."""
    if not path:
        return MASK if None in templates else _mask(value, templates)
    head, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(head, str) and head in value:
        return {**value, head: _replace_part(value[head], rest, templates)}
    if isinstance(value, list) and isinstance(head, int) and head < len(value):
        return [*value[:head], _replace_part(value[head], rest, templates), *value[head + 1 :]]
    return value


def _mask(value: JsonValue, templates: frozenset[Template]) -> JsonValue:
    """Return a text with the varying pieces masked, if it fits a template."""
    if not isinstance(value, str):
        return value
    pieces = _text_piece.findall(value)
    for template in templates:
        if template and _matches(template, pieces):
            return "".join(MASK if expected is None else expected for expected in template)
    return value


def _matches(template: Sequence[str | None], pieces: Sequence[str]) -> bool:
    """Return whether pieces of a text equal the pieces of a template, apart from the pieces that vary."""
    return len(template) == len(pieces) and all(map(lambda expected, piece: expected in (None, piece), template, pieces))


ChangedRows = Mapping[RowPlace, RowDifference]


def place_of(row: RowDifference) -> RowPlace:
    """Return the place of a row: its store, table and key."""
    return row.store, row.table, row.key


def columns_of(row: RowDifference) -> Row:
    """Return the columns of a row; of a removed row, its former columns. A key that is in no column is under `KEY_COLUMN`."""
    cells = (row.before if row.after is None else row.after) or {}
    by_content = BY_CONTENT.fullmatch(row.key) or IN_LIST.fullmatch(row.key)
    if by_content or _key_values(row) is not None:
        return cells
    return {**cells, KEY_COLUMN: row.key} | ({} if row.table else {PATH_PATTERN_COLUMN: path_without_ids(row.key)})


def path_without_ids(path: str) -> str:
    """Return a path with its ids masked."""
    return _id.sub(MASK, path)


def _key_values(row: RowDifference) -> list[Any] | None:
    """Return the values of a primary key; None if a row has none."""
    try:
        values = json.loads(row.key) if row.table and row.key.startswith("[") else None
    except ValueError:
        return None
    return values if isinstance(values, list) else None


def key_columns(row: RowDifference) -> frozenset[str]:
    """Return the columns of a row's key. They come first in the row (`Encoding.difference`), so that the first column with a
    value of the key is the key's."""
    cells, columns = columns_of(row), list[str]()
    for value in _key_values(row) or ():
        equal = (name for name, cell in cells.items() if name not in columns and type(cell) is type(value) and cell == value)
        columns += list(equal)[:1]
    return frozenset(columns) | ({KEY_COLUMN} & cells.keys())


@dataclass(frozen=True)
class Varying:
    """The values of rows that differ between clean runs.

    columns  columns of added rows: any added row can have another value
    values   single values of rows that existed at the reset
    """

    columns: frozenset[StoreColumn] = frozenset()
    values: frozenset[StoreValue] = frozenset()

    def has(self, place: RowPlace, column: str, *, is_added: bool) -> bool:
        """Return whether the value of a row varies. The size of a file varies with its content."""
        column = "digest" if not place[1] and column == "size" else column
        return (*place[:2], column) in self.columns if is_added else (*place, column) in self.values

    @property
    def names(self) -> list[str]:
        """The columns that vary, in words, such as `shop.orders.created`."""
        columns = {*self.columns, *((store, table, column) for store, table, _, column in self.values)}
        return sorted(".".join(filter(None, column)) for column in columns)

    def __or__(self, other: Varying) -> Varying:
        return Varying(self.columns | other.columns, self.values | other.values)


def varying_of(first: ChangedRows, second: ChangedRows) -> tuple[Varying, list[RowDifference]]:
    """Return the values that differ between the final rows of two clean runs, and the rows that only one run has."""
    pairs, unmatched = _matching_rows(first, second)
    columns, values = set[StoreColumn](), set[StoreValue]()
    for first_row, second_row in pairs:
        for name in _unequal_columns(first_row, second_row):
            if first_row.before is None:
                columns.add((first_row.store, first_row.table, name))
            else:
                values.add((*place_of(first_row), name))
    return Varying(frozenset(columns), frozenset(values)), [row for pair in unmatched for row in pair if row]


def differing_rows(first: ChangedRows, second: ChangedRows, varying: Varying) -> list[RowDifference]:
    """Return the rows in which two runs differ, apart from values that vary and keys: `before` as in the first run, `after`
    as in the second; None where a run lacks the row."""
    pairs, unmatched = _matching_rows(first, second)
    keys = {value for rows in (first, second) for row in rows.values() for value in _key_values(row) or ()}
    differing = list[RowDifference]()
    for first_row, second_row in pairs:
        first_columns, second_columns, is_added = columns_of(first_row), columns_of(second_row), first_row.before is None
        columns = _unequal_columns(first_row, second_row)
        columns = [name for name in columns if not varying.has(place_of(first_row), name, is_added=is_added)]
        # a column in which both values are keys of rows refers to other rows, whose keys the store may have generated
        if any(not {first_columns.get(name), second_columns.get(name)} <= keys for name in columns):
            differing.append(replace(first_row, before=first_row.after, after=second_row.after))
    differing += [replace(row, before=row.after, after=None) for row, _ in unmatched if row]
    return differing + [replace(row, before=None) for _, row in unmatched if row]


def _unequal_columns(first: RowDifference, second: RowDifference) -> list[str]:
    """Return the columns in which two rows differ."""
    first_columns, second_columns = columns_of(first), columns_of(second)
    return [name for name in {**first_columns, **second_columns} if first_columns.get(name) != second_columns.get(name)]


_Pair = tuple[RowDifference, RowDifference]
_Unmatched = tuple[RowDifference | None, RowDifference | None]


def _matching_rows(first: ChangedRows, second: ChangedRows) -> tuple[list[_Pair], list[_Unmatched]]:
    """Return the rows that two runs have in common, and the rows that only one run has, each with None for the other."""
    pairs, unmatched = list[_Pair](), list[_Unmatched]()
    groups: dict[tuple[str, str, str], tuple[list[RowDifference], list[RowDifference]]] = defaultdict(lambda: ([], []))
    for run_index, rows in enumerate((first, second)):
        for row in rows.values():
            if row.table != SEQUENCES:
                groups[row.store, row.table, _kind(row)][run_index].append(row)
    for (_, _, kind), (first_rows, second_rows) in groups.items():
        by_key = {row.key: row for row in second_rows}
        matched = [
            (row, by_key[row.key]) for row in first_rows if row.key in by_key and (kind != "added" or row == by_key[row.key])
        ]
        if kind == "added":  # the store may have generated the keys: pair the rest by similarity
            equal = {row.key for row, _ in matched}
            first_rest = [row for row in first_rows if row.key not in equal]
            second_rest = [row for row in second_rows if row.key not in equal]
            matched += most_similar_pairs(first_rest, second_rest, _count_differing_columns)
        matched_ids = {id(row) for pair in matched for row in pair}
        unmatched += [(row, None) for row in first_rows if id(row) not in matched_ids]
        unmatched += [(None, row) for row in second_rows if id(row) not in matched_ids]
        pairs += matched
    return pairs, unmatched


def _kind(row: RowDifference) -> str:
    """Return whether a row was added, removed or changed."""
    if row.before is None:
        return "added"
    return "removed" if row.after is None else "changed"


def _count_differing_columns(first: RowDifference, second: RowDifference) -> int:
    """Return how much two rows differ: 2 for each column that differs, but 1 for a column of the key, since the store may have
    generated it."""
    first_columns, second_columns = columns_of(first), columns_of(second)
    keys = key_columns(first) | key_columns(second)
    return sum(
        1 if name in keys else 2
        for name in {**first_columns, **second_columns}
        if first_columns.get(name) != second_columns.get(name)
    )
