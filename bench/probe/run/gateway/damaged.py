"""The damaged answers of a read: an empty answer, a far too large answer, or an answer that no program can read."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from bench.probe.points import AnswerFate

DAMAGES = frozenset[AnswerFate](("empty", "garbled", "too_large"))
TAG, LISTS = "$type", ("tuple", "set", "frozenset", "dict")
"""What marks a value of a function that JSON has no form for, and the kinds of it that hold a list."""
GARBAGE = "\ufffd\x1a\ufffd"

LARGE = 2**21
"""Bytes, about, of an answer that is too large: half a million tokens."""


def empty(value: JsonValue) -> JsonValue:
    """Return a value of the same kind without content."""
    if isinstance(value, str | list | dict):
        return type(value)()
    return None


def enlarge(value: JsonValue) -> JsonValue:
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
            return {**value, longest: enlarge(inner[longest])}
        return {**value, "more": "x" * LARGE}
    return [value] * (1 + LARGE // 4)


def garble(data: bytes) -> bytes:
    """Return the first half of an answer and bytes that are neither JSON nor text in UTF-8."""
    return data[: len(data) // 2] + b"\x00\xff\xfe"


def damage(value: Any, after: AnswerFate) -> Any:
    """Return what is given in place of a function's value: of the same type if it holds texts, names or items."""
    if isinstance(value, dict) and TAG in value:
        return {**value, "value": damage(value.get("value"), after)} if value[TAG] in LISTS else value
    return empty(value) if after == "empty" else enlarge(value) if after == "too_large" else with_garbage(value)


def with_garbage(value: Any) -> Any:
    """Return a value in which the second half of each text is garbage."""
    if isinstance(value, list):
        return [with_garbage(item) for item in value]
    if isinstance(value, dict):
        return damage(value, "garbled") if TAG in value else {name: with_garbage(item) for name, item in value.items()}
    return value[: len(value) // 2] + GARBAGE if isinstance(value, str) else value
