"""Damaged responses of a read: empty, far too large, or garbled so that no program can parse them."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from bench.probe.points import AnswerAction

DAMAGES = frozenset[AnswerAction](("empty", "garbled", "too_large"))
TAG, LIST_TAGS = "$type", ("tuple", "set", "frozenset", "dict")
"""The key that marks a function's value of a type that JSON lacks, and the types whose values are written as lists."""
GARBAGE = "\ufffd\x1a\ufffd"

LARGE_ANSWER_BYTES = 2**21
"""The approximate size of a response that is too large: half a million tokens."""


def empty_of(value: JsonValue) -> JsonValue:
    """Return an empty value of the same type; None for a number."""
    if isinstance(value, str | list | dict):
        return type(value)()
    return None


def enlarge(value: JsonValue) -> JsonValue:
    """Return a far larger value: a list or a text is repeated, in an object its longest member is enlarged, and another value
    becomes a long list."""
    if isinstance(value, str):
        return (value or " ") * (1 + LARGE_ANSWER_BYTES // max(1, len(value)))
    if isinstance(value, list):
        item_chars = max(1, len(str(value[:100])) // max(1, min(len(value), 100)))
        return (value or [""]) * (1 + LARGE_ANSWER_BYTES // (item_chars * max(1, len(value))))
    if isinstance(value, dict):
        members = {name: member for name, member in value.items() if isinstance(member, str | list | dict) and member}
        if members:
            longest = max(members, key=lambda name: len(str(members[name])))
            return {**value, longest: enlarge(members[longest])}
        return {**value, "more": "x" * LARGE_ANSWER_BYTES}
    return [value] * (1 + LARGE_ANSWER_BYTES // 4)


def garble(data: bytes) -> bytes:
    """Return the first half of a response, followed by bytes that are neither JSON nor UTF-8."""
    return data[: len(data) // 2] + b"\x00\xff\xfe"


def damage(value: Any, action: AnswerAction) -> Any:
    """Return a damaged result of a function, as tagged JSON (`loader/agent_door/values`). A value with the tag of a type
    that holds no list is not changed."""
    if isinstance(value, dict) and TAG in value:
        return {**value, "value": damage(value.get("value"), action)} if value[TAG] in LIST_TAGS else value
    if action == "empty":
        return empty_of(value)
    return enlarge(value) if action == "too_large" else with_garbage(value)


def with_garbage(value: Any) -> Any:
    """Return a value in which the second half of each text is replaced by garbage."""
    if isinstance(value, list):
        return [with_garbage(item) for item in value]
    if isinstance(value, dict):
        return damage(value, "garbled") if TAG in value else {name: with_garbage(item) for name, item in value.items()}
    return value[: len(value) // 2] + GARBAGE if isinstance(value, str) else value
