"""What a message, or a tool call, has beside what is measured: `reasoning_content`, a thought's signature, and their like.

A provider may want it back with the next turn, and refuse the turn that lacks it. So it is kept as one JSON text, its names in
order, and goes back as it came. It is no part of what is counted: it stands in the provider's own count alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

STANDARD = ("refusal", "annotations", "audio", "function_call", "name", "parsed", "parsed_arguments")
"""Fields of OpenAI's own, and of its clients', which mean nothing where they are empty. An empty text in any other field may
mean something: Kimi tells it from none."""
LARGEST = sys.float_info.max
"""Few can read a number beyond it, and Python does not write one of 4,301 digits."""


def extra_text(fields: Mapping[str, Any], clean: Callable[[str], str] = str) -> str:
    """The fields as one text, all texts in them passed through `clean`; "" for none. A number beyond LARGEST is null."""
    kept = saying(fields)
    if not kept:
        return ""
    try:
        return json_text(_cleaned(kept, clean), allow_nan=False, sort_keys=True)
    except RecursionError:  # a nest without end: no provider's
        return ""


def json_text(value: object, *, allow_nan: bool = True, sort_keys: bool = False) -> str:
    """The value as JSON. `json.dumps` writes the same, and holds the interpreter's lock until it has written everything."""
    return "".join(json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, sort_keys=sort_keys).iterencode(value))


def saying(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if _says_something(name, value)}


def extra_in(text: str) -> dict[str, Any]:
    """The fields in such a text. Raises ValueError for a text that `extra_text` does not write."""
    try:
        fields = json.loads(text) if text else {}
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    if not isinstance(fields, dict):
        raise ValueError("is no JSON object")
    return fields


def _says_something(name: str, value: object) -> bool:
    return value is not None and value not in ([], {}) and (value not in ("", False) or name not in STANDARD)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _cleaned(inner, clean) for name, inner in value.items()}
    if isinstance(value, float | int) and not -LARGEST <= value <= LARGEST:
        return None
    return [_cleaned(item, clean) for item in value] if isinstance(value, list) else value
