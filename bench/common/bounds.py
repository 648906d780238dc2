"""Bounds on input from outside: a few bytes of JSON can hold many values, and many values can violate a schema in many ways.
Values can be nested deeper than Python can go.

Pydantic collects all violations before it reports any. A list or a table from outside stops at its first violation (`Many`,
`BoundedTable`). A JSON text with more values than anybody sends is not read (`excess_in`).
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
    """Return JSON as this type. Raises ValidationError.

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
    """Return why a JSON text is not read: it holds too many values. A long text can hold one value for every `sparse` bytes. ""
    if it can be read. The text is not parsed for this."""
    most = max(MOST_VALUES, len(text) // sparse) if sparse else MOST_VALUES
    if len(text) <= most or _separators(text) <= most:
        return ""
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') <= 4 * most and _separators(b"".join(bare.split(b'"')[::2])) <= most:
        return ""
    return f"it holds more than {most:,} values"


def _separators(text: bytes) -> int:
    """Count separators: each value but the first follows one."""
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
