"""How much of what comes from outside is read: a few bytes of JSON can mean many values, and many values many violations.

Pydantic collects all violations before it tells of any. A list or a table that comes from outside stops at its first one
(`Many`, `Table`), and a JSON text with more values than anybody sends is not read at all (`crowded`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import Field

Item = TypeVar("Item")
Key = TypeVar("Key")

Many = Annotated[tuple[Item, ...], Field(fail_fast=True)]
"""A list from outside."""
Listed = Annotated[list[Item], Field(fail_fast=True)]
"""The same, where it stays as JSON has it."""
Table = Annotated[dict[Key, Item], Field(fail_fast=True)]
"""A table from outside."""
Lookup = Annotated[Mapping[Key, Item], Field(fail_fast=True)]
"""The same, as code reads it that changes none."""
MOST_VALUES = 200_000
"""In one JSON text."""
SPARSE = 8
"""Bytes. A long record may hold as many values as it has times so many bytes; ours hold one in fifteen."""


def crowded(text: bytes, is_record: bool = False) -> str:
    """Why a JSON text is not read: it holds too many values, which a record of a run may where it is long. "" where it may be
    read. It is not parsed for that."""
    most = max(MOST_VALUES, len(text) // SPARSE) if is_record else MOST_VALUES
    if _separators(text) <= most:
        return ""
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') <= 4 * most and _separators(b"".join(bare.split(b'"')[::2])) <= most:
        return ""
    return f"it holds more than {most:,} values"


def _separators(text: bytes) -> int:
    """Each value but the first stands behind one."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
