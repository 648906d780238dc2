"""Make a wrong answer of the right form: one value is exchanged for another that the schema allows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from pydantic import ValidationError

from bench.run.answers.places import FieldPath, value_at
from bench.scenario import Json, Output, schema_of

MAX_LEAVES_CHECKED = 2**16
"""The most leaves that are checked against a schema, over all tries."""
MAX_EXACT_FLOAT = 2**53
"""From this number on, a float plus one can be the same float."""


def exchange(value: Json, schema: type[Output] | None, draw: Random) -> Json:
    """Return the value with one leaf exchanged for another that the schema allows; None if no such leaf is found within
    MAX_LEAVES_CHECKED."""
    paths = [path for path in _leaf_paths(value) if path]
    draw.shuffle(paths)
    changed, tries = copy.deepcopy(value), MAX_LEAVES_CHECKED // max(len(paths), 1)
    for path in paths[:tries]:
        parent, name = value_at(changed, path[:-1]), path[-1]
        leaf = parent[name]
        for other in _alternatives(leaf, schema):
            parent[name] = other
            if _fits(schema, changed):
                return changed
        parent[name] = leaf
    return None


def _leaf_paths(value: Json, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of each leaf of a value that is itself at `path`."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _leaf_paths(item, (*path, key))
    else:
        yield path


def _alternatives(leaf: Json, schema: type[Output] | None) -> list[Json]:
    """Return other values of the same type, in the order in which they are tried; empty for null."""
    if isinstance(leaf, bool):
        return [not leaf]
    if isinstance(leaf, int) and abs(leaf) >= MAX_EXACT_FLOAT:
        return [leaf // 2]
    if isinstance(leaf, int | float):
        return [leaf + 1, leaf - 1, leaf / 2, leaf / 2 + 0.25]
    if not isinstance(leaf, str):
        return []
    return [other for other in _enum_members(schema) if other != leaf] + [f"not {leaf}"]


def _enum_members(schema: type[Output] | None) -> list[str]:
    """Return all texts in the enumerations of the schema, for whatever field. Whether a text fits a field is checked later."""
    values: list[str] = []
    stack: list[Any] = [schema_of(schema)] if schema else []
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            values += [member for member in node.get("enum", ()) if isinstance(member, str)]
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return values


def _fits(schema: type[Output] | None, value: Json) -> bool:
    """Return whether a value fits the schema; True without a schema."""
    if schema is None:
        return True
    try:
        schema.model_validate(value)
    except ValidationError:
        return False
    return True
