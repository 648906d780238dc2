"""Bounds on input from outside. A few bytes of JSON can contain many values, many values can violate a schema in many ways, and
values can be nested deeper than Python allows.

Pydantic collects all violations before it reports the first. For a list or a table from outside, validation stops at the
first violation (`Many`, `BoundedTable`). A JSON text with far too many values is not parsed (`excess_in`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

Item = TypeVar("Item")
Key = TypeVar("Key")

Many = Annotated[tuple[Item, ...], Field(fail_fast=True)]
"""A list from outside."""
Listed = Annotated[list[Item], Field(fail_fast=True)]
"""A list from outside that stays a Python list."""
BoundedTable = Annotated[dict[Key, Item], Field(fail_fast=True)]
"""A table from outside."""
Lookup = Annotated[Mapping[Key, Item], Field(fail_fast=True)]
"""A table from outside that no code changes."""
MOST_VALUES = 100_000
"""The most values in one JSON text."""
SPARSE = 10
"""The fewest bytes for each value in a run's long records. Our densest records have 12."""
LONG = 2**17
"""In bytes."""

MOST_ITEMS = 10_000
"""The most values in a model's output, or in a call's arguments: each can violate a schema in several ways."""

MOST_LEVELS = 64
"""The most objects and lists inside each other. Python's own bound depends on the caller's depth."""


def validate(adapter: TypeAdapter[Item], text: bytes) -> Item:
    """Return a JSON text as this type. Raises ValidationError.

    For a long text Python's values are made first. Otherwise pydantic makes the values of a violation anew for each violation,
    and each missing field is a violation of the whole.
    """
    if len(text) < LONG:
        made: Item = adapter.validator.validate_json(text)
        return made
    try:
        value = from_json(text, cache_strings=False)
    except ValueError:
        return adapter.validate_json(text)  # this says where the JSON breaks off
    return adapter.validate_python(value)


def excess_in(text: bytes, sparse: int = 0) -> str:
    """Return why a JSON text has too many values to be parsed; "" if it can be parsed. A long text may have one value for
    every `sparse` bytes. The check does not parse the text."""
    most = max(MOST_VALUES, len(text) // sparse) if sparse else MOST_VALUES
    if len(text) <= most or _separators(text) <= most:
        return ""
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') <= 4 * most and _separators(b"".join(bare.split(b'"')[::2])) <= most:
        return ""
    return f"it holds more than {most:,} values"


def _separators(text: bytes) -> int:
    """Return the number of separators. Each value but the first follows a separator."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than `MOST_LEVELS`, in time linear in its size."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for node in level
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
