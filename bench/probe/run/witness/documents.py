"""The objects in a JSON file, or in a file with a JSON value on each line, as rows. Each object is named by its position."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from bench.common.bounds import is_too_deep
from bench.common.digests import digest_of

LARGEST = 2**24
"""The most bytes of a file that is read as rows."""
LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES)
ITEM = "value"
"""The column of an item of a list that is no object."""
Objects: TypeAlias = Mapping[str, Mapping[str, object]]
"""Where an object stands in the file -> its members that hold no object. A list of texts and numbers is one, as JSON."""


def objects_in(name: str, content: bytes) -> Objects | None:
    """Return the objects in a file.

    An item of a list that contains no object is named by its content, not by its position: inserting another item before it
    does not rename it. An empty list is no row.

    Args:
        name: The file's name, which tells its format.
        content: All of its bytes.

    Returns:
        The objects by their positions; None if the file is no JSON.
    """
    if not name.endswith(SUFFIXES) or len(content) > LARGEST:
        return None
    try:
        text = content.decode()
        value = [json.loads(line) for line in text.splitlines() if line.strip()] if name.endswith(LINES) else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if is_too_deep(value) else dict(_objects(value))


def without(objects: Objects, ignores: Callable[[str], bool]) -> Objects:
    """Return the objects whose position is not ignored."""
    return {place: members for place, members in objects.items() if not ignores(place)}


def _objects(document: JsonValue) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the objects in a document with their positions."""
    waiting: list[tuple[str, JsonValue]] = [("", document)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            members, inner = dict[str, object](), 0
            for name, member in value.items():
                if _is_plain(member):
                    members |= {name: _plain(member)} if member != [] else {}  # the first item of a list can be an object
                else:
                    inner += 1
                    waiting.append((f"{place}/{name}", member))
            if members or not inner:
                yield place or "/", members
        elif isinstance(value, list):
            alike = Counter[str]()
            for number, item in enumerate(value):
                members = {name: _plain(member) for name, member in item.items()} if isinstance(item, dict) else {}
                if isinstance(item, dict) and all(map(_is_plain, item.values())):
                    pass
                elif _is_plain(item):
                    members = {ITEM: _plain(item)}
                else:
                    waiting.append((f"{place}/{number}", item))
                    continue
                content = digest_of(json.dumps(members, sort_keys=True))
                alike[content] += 1
                yield f"{place}/({content} {alike[content]})", members
        else:
            yield place or "/", {ITEM: value}


def _is_plain(value: JsonValue) -> bool:
    """Return whether a value contains no object."""
    return not isinstance(value, dict | list) or (
        isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
    )


def _plain(value: JsonValue) -> object:
    """Return a value as a cell: a list as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
