"""Damaged responses of a read: an empty response, one that is far too large, or one that no program can parse."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from bench.probe.points import AnswerAction

DAMAGES = frozenset[AnswerAction](("empty", "garbled", "too_large"))
TAG, LISTS = "$type", ("tuple", "set", "frozenset", "dict")
"""What marks a value of a function that JSON has no form for, and the kinds of it that hold a list."""
GARBAGE = "\ufffd\x1a\ufffd"

LARGE = 2**21
"""Bytes, about, of an answer that is too large: half a million tokens."""


def empty(value: JsonValue) -> JsonValue:
    """Return an empty value of the same type; None for a number."""
    if isinstance(value, str | list | dict):
        return type(value)()
    return None


def enlarge(value: JsonValue) -> JsonValue:
    """Return a far larger value of the same type. A list or a text is repeated; in an object its longest text, list or
    object is."""
    if isinstance(value, str):
        return (value or " ") * (1 + LARGE // max(1, len(value)))
    if isinstance(value, list):
        size = max(1, len(str(value[:100])) // max(1, min(len(value), 100)))
        return (value or [""]) * (1 + LARGE // (size * max(1, len(value))))
    if isinstance(value, dict):
        inner = {name: member for name, member in value.items() if isinstance(member, str | list | dict) and member}
        if inner:
            longest = max(inner, key=lambda name: len(str(inner[name])))
            return {**value, longest: enlarge(inner[longest])}
        return {**value, "more": "x" * LARGE}
    return [value] * (1 + LARGE // 4)


def garble(data: bytes) -> bytes:
    """Return the first half of a response, followed by bytes that are neither JSON nor UTF-8."""
    return data[: len(data) // 2] + b"\x00\xff\xfe"


def damage(value: Any, action: AnswerAction) -> Any:
    """Return the value that replaces a function's result: of the same type if it holds texts, members or items."""
    if isinstance(value, dict) and TAG in value:
        return {**value, "value": damage(value.get("value"), action)} if value[TAG] in LISTS else value
    return empty(value) if action == "empty" else enlarge(value) if action == "too_large" else with_garbage(value)


def with_garbage(value: Any) -> Any:
    """Return a value in which the second half of each text is replaced by garbage."""
    if isinstance(value, list):
        return [with_garbage(item) for item in value]
    if isinstance(value, dict):
        return damage(value, "garbled") if TAG in value else {name: with_garbage(item) for name, item in value.items()}
    return value[: len(value) // 2] + GARBAGE if isinstance(value, str) else value
