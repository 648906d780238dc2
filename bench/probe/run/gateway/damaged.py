"""The damaged answers of a read: an empty answer, a far too large answer, or an answer that no program can read."""

from __future__ import annotations

from pydantic import JsonValue

LARGE = 2**21
"""Bytes, about, of an answer that is too large: half a million tokens."""


def emptied(value: JsonValue) -> JsonValue:
    """Return a value of the same kind without content."""
    if isinstance(value, str | list | dict):
        return type(value)()
    return None


def enlarged(value: JsonValue) -> JsonValue:
    """Return a far larger value of the same kind. A list or a text is repeated. In an object the longest of these inside it is
    repeated."""
    if isinstance(value, str):
        return (value or " ") * (1 + LARGE // max(1, len(value)))
    if isinstance(value, list):
        size = max(1, len(str(value[:100])) // max(1, min(len(value), 100)))
        return (value or [""]) * (1 + LARGE // (size * max(1, len(value))))
    if isinstance(value, dict):
        inner = {name: each for name, each in value.items() if isinstance(each, str | list | dict) and each}
        if inner:
            longest = max(inner, key=lambda name: len(str(inner[name])))
            return {**value, longest: enlarged(inner[longest])}
        return {**value, "more": "x" * LARGE}
    return [value] * (1 + LARGE // 4)


def garbled(data: bytes) -> bytes:
    """Return the first half of an answer and bytes that are neither JSON nor text in UTF-8."""
    return data[: len(data) // 2] + b"\x00\xff\xfe"
