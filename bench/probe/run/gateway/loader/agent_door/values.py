"""The arguments and results of functions as JSON with type tags. No name in the JSON is imported or called."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
from collections.abc import Callable
from typing import Any

TAG = "$type"
MAX_DEPTH, MAX_PARTS = 40, 100_000
"""The depth to which a value is encoded, and the most parts of it."""
_TEXT_TYPES: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    decimal.Decimal: (str, decimal.Decimal),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    bytes: (bytes.hex, bytes.fromhex),
    float: (repr, float),
}
"""Type -> the functions that write and read its values as text. Of `float` only infinities and NaN need this."""
_LIST_TYPES: dict[type, Callable[[Any], Any]] = {tuple: tuple, set: set, frozenset: frozenset}
_RESTORERS: dict[str, Callable[[Any], Any]] = {
    **{kind.__name__: read for kind, (_, read) in _TEXT_TYPES.items()},
    **{kind.__name__: make for kind, make in _LIST_TYPES.items()},
    "dict": dict,
}


def to_json(value: Any) -> tuple[Any, bool]:
    """Return a value as JSON, and whether `from_json` would return an equal value. An object of another type is recorded by
    its fields and the name of its class."""
    encoder = _Encoder()
    text = encoder.json_of(value, 0)
    return text, encoder.is_whole


def from_json(value: Any) -> Any:
    """Return the value for JSON that `to_json` returned."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {name: from_json(item) for name, item in value.items()}
    restore = _RESTORERS.get(value[TAG])
    return restore(from_json(value["value"])) if restore else value.get("value")


class _Encoder:
    """Encodes one value, within bounds. `is_whole` is False if the value cannot be restored."""

    is_whole, part_count = True, 0

    def json_of(self, value: Any, depth: int) -> Any:
        """Return a value as JSON."""
        self.part_count += 1
        kind = type(value)
        if value is None or kind in (bool, int):
            return value
        if kind is str or (kind is float and math.isfinite(value)):
            return self._text(value) if kind is str else value
        if depth > MAX_DEPTH or self.part_count > MAX_PARTS:
            return self._describe(value, None)
        if kind is list:
            return [self.json_of(item, depth + 1) for item in value]
        if kind is dict:
            if all(type(name) is str and name != TAG for name in value):
                return {self._text(name): self.json_of(item, depth + 1) for name, item in value.items()}
            return {TAG: "dict", "value": [[self.json_of(part, depth + 1) for part in pair] for pair in value.items()]}
        if kind in _TEXT_TYPES:
            return {TAG: kind.__name__, "value": _TEXT_TYPES[kind][0](value)}
        if kind in _LIST_TYPES:
            items = [self.json_of(item, depth + 1) for item in value]
            return {TAG: kind.__name__, "value": items if kind is tuple else sorted(items, key=repr)}
        return self._describe(value, self._fields(value, depth + 1))

    def _text(self, text: str) -> str:
        """Return a text that UTF-8 can encode, with escapes for other characters."""
        plain = text.encode("utf-8", "backslashreplace").decode()
        self.is_whole &= plain == text
        return plain

    def _fields(self, value: Any, depth: int) -> Any:
        """Return the fields of a dataclass or a pydantic model, or the value of an enumeration; None for another object."""
        if isinstance(value, enum.Enum):
            return self.json_of(value.value, depth)
        if isinstance(value, (str, int, float)):
            return self._text(str(value))
        names: Any = ()
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
        elif hasattr(type(value), "model_fields"):
            names = type(value).model_fields
        return {name: self.json_of(getattr(value, name, None), depth) for name in names} or None

    def _describe(self, value: Any, fields: Any) -> Any:
        """Return the description of an object that cannot be restored: the name of its class, and its fields if given."""
        self.is_whole = False
        kind = type(value)
        description = {TAG: f"{kind.__module__}.{kind.__qualname__}"}
        return description if fields is None else {**description, "value": fields}
