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
"""A tuple from outside, for instance from JSON; validation stops at the first wrong item."""
Listed = Annotated[list[Item], Field(fail_fast=True)]
"""The same as a Python list."""
BoundedTable = Annotated[dict[Key, Item], Field(fail_fast=True)]
"""A dict from outside; validation stops at the first wrong entry."""
Lookup = Annotated[Mapping[Key, Item], Field(fail_fast=True)]
"""The same for code that never changes the dict."""
MAX_VALUES = 100_000
"""The most values in one JSON text."""
MIN_BYTES_PER_VALUE = 10
"""A run's long record must have at least this many bytes for each of its values. Our densest records have 12."""
LONG_TEXT_BYTES = 2**17
"""A JSON text of this many bytes is parsed before it is validated."""

MAX_ITEMS = 10_000
"""The most values in a model's output, or in a call's arguments: each can violate a schema in several ways."""

MAX_LEVELS = 64
"""The most objects and lists inside each other. Python's own bound depends on the caller's depth."""


def validate(adapter: TypeAdapter[Item], text: bytes) -> Item:
    """Return the value of a JSON text, validated as the adapter's type. Raises ValidationError.

    A long text is first parsed into Python values. Otherwise pydantic would copy the values for each violation, and each
    missing field is a violation of the whole text.
    """
    if len(text) < LONG_TEXT_BYTES:
        item: Item = adapter.validator.validate_json(text)
        return item
    try:
        value = from_json(text, cache_strings=False)
    except ValueError:
        return adapter.validate_json(text)  # this says where the JSON breaks off
    return adapter.validate_python(value)


def excess_in(text: bytes, bytes_per_value: int = 0) -> str:
    """Return why a JSON text has too many values to be parsed; "" if it can be parsed. With `bytes_per_value` a long text may
    have one value for each so many bytes. The check counts separators and does not parse the text."""
    limit = max(MAX_VALUES, len(text) // bytes_per_value) if bytes_per_value else MAX_VALUES
    if len(text) <= limit or _separators(text) <= limit:
        return ""
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    outside_quotes = b"".join(unescaped.split(b'"')[::2]) if unescaped.count(b'"') <= 4 * limit else text
    if _separators(outside_quotes) <= limit:
        return ""
    return f"it holds more than {limit:,} values"


def _separators(text: bytes) -> int:
    """Return the number of commas and opening brackets. Each value but the first follows one of these."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def is_too_deep(value: Any) -> bool:
    """Whether a value is nested deeper than MAX_LEVELS. The time is linear in the size of the value."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_LEVELS):
        level = [
            inner
            for node in level
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
