"""How much of what comes from outside is read: a few bytes of JSON can mean many values, and many values many violations.

Pydantic collects all violations before it tells of any. A list or a table that comes from outside stops at its first one
(`Many`, `Table`), and a JSON text with more values than anybody sends is not read at all (`crowded`).
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
"""The same, where it stays as JSON has it."""
BoundedTable = Annotated[dict[Key, Item], Field(fail_fast=True)]
"""A table from outside."""
Lookup = Annotated[Mapping[Key, Item], Field(fail_fast=True)]
"""The same, as code reads it that changes none."""
MOST_VALUES = 100_000
"""In one JSON text."""
SPARSE = 10
"""Bytes a value, in the long records of a run; the densest of ours have 12."""
LONG = 2**17
"""Bytes."""

MOST_ITEMS = 10_000
"""Values within a model's output, or within the arguments of a call: each of them may violate a schema in several ways."""


def items_in(value: Any) -> int:
    """Return how many values and names stand within a JSON value."""
    items, left = 0, [value]
    while left:
        inner = left.pop()
        if isinstance(inner, (dict, list)):
            items += len(inner)
            left += inner.values() if isinstance(inner, dict) else inner
    return items


def validated(adapter: TypeAdapter[Item], text: bytes) -> Item:
    """JSON as this type. Raises ValidationError.

    Of a long text Python's values are made first: pydantic makes those that a violation is about anew for each that it
    collects, and where fields are missing, each is about the whole.
    """
    if len(text) < LONG:
        made: Item = adapter.validator.validate_json(text)
        return made
    try:
        value = from_json(text, cache_strings=False)
    except ValueError:
        return adapter.validate_json(text)  # which says where the JSON breaks off
    return adapter.validate_python(value)


def crowded(text: bytes, sparse: int = 0) -> str:
    """Why a JSON text is not read: it holds too many values. A long one may hold one for every `sparse` bytes. "" where it may
    be read. It is not parsed for that."""
    most = max(MOST_VALUES, len(text) // sparse) if sparse else MOST_VALUES
    if len(text) <= most or _separators(text) <= most:
        return ""
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') <= 4 * most and _separators(b"".join(bare.split(b'"')[::2])) <= most:
        return ""
    return f"it holds more than {most:,} values"


def _separators(text: bytes) -> int:
    """Each value but the first stands behind one."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
