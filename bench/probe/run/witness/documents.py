"""The objects in a JSON file, or in a file with a JSON value on each line, as rows. Each object is named by its position."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from bench.common.bounds import is_too_deep
from bench.common.digests import digest_of
from bench.probe.run.witness.hiding import HiddenNames

MAX_FILE_BYTES = 2**24
"""The longest file that is read as rows."""
LINE_SUFFIXES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINE_SUFFIXES)
ITEM_COLUMN = "value"
"""The column of an item of a list that is no object."""
Objects: TypeAlias = Mapping[str, Mapping[str, object]]
"""Position of an object in the file -> its members whose values contain no object. A list of texts and numbers is a member,
written as JSON."""


def objects_in(name: str, content: bytes, hidden: HiddenNames) -> Objects | None:
    """Return the objects in a file.

    An item of a list that contains no object is named by its content, not by its position: inserting another item before it
    does not rename it. An empty list is no row.

    Args:
        name: The file's name, which tells its format.
        content: All of its bytes.
        hidden: The hidden names: a digest stands in place of a value under them, also if the value is an object.

    Returns:
        The objects by their positions; None if the file is no JSON.
    """
    if not name.endswith(SUFFIXES) or len(content) > MAX_FILE_BYTES:
        return None
    try:
        text = content.decode()
        has_lines = name.endswith(LINE_SUFFIXES)
        value = [json.loads(line) for line in text.splitlines() if line.strip()] if has_lines else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if is_too_deep(value) else dict(_walk_objects(hidden.hide_in(value)))


def unignored_objects(objects: Objects, ignores: Callable[[str], bool]) -> Objects:
    """Return the objects at positions that are not ignored."""
    return {position: members for position, members in objects.items() if not ignores(position)}


def _walk_objects(document: JsonValue) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield (position, flat members) of each object in a document, and of each item of a list that contains no object."""
    unvisited: list[tuple[str, JsonValue]] = [("", document)]
    while unvisited:
        position, value = unvisited.pop()
        if isinstance(value, dict):
            members, inner_count = dict[str, object](), 0
            for name, member in value.items():
                if _is_flat(member):
                    members |= {name: _to_cell(member)} if member != [] else {}  # the first item of a list can be an object
                else:
                    inner_count += 1
                    unvisited.append((f"{position}/{name}", member))
            if members or not inner_count:
                yield position or "/", members
        elif isinstance(value, list):
            content_counts = Counter[str]()
            for number, item in enumerate(value):
                members = {name: _to_cell(member) for name, member in item.items()} if isinstance(item, dict) else {}
                if isinstance(item, dict) and all(map(_is_flat, item.values())):
                    pass  # its members are the row
                elif _is_flat(item):
                    members = {ITEM_COLUMN: _to_cell(item)}
                else:  # it contains an object, which is named by its position
                    unvisited.append((f"{position}/{number}", item))
                    continue
                content = digest_of(json.dumps(members, sort_keys=True))
                content_counts[content] += 1
                yield f"{position}/({content} {content_counts[content]})", members
        else:
            yield position or "/", {ITEM_COLUMN: value}


def _is_flat(value: JsonValue) -> bool:
    """Return whether a value is neither an object, nor a list that contains an object or a list."""
    return not isinstance(value, dict | list) or (
        isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
    )


def _to_cell(value: JsonValue) -> object:
    """Return a value as a cell: a list or an object as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
