"""The extra fields of a message or a tool call: fields that are not measured, such as `reasoning_content` or a thought's
signature.

A provider may want them back with the next turn, and refuse a turn without them. They are kept as one JSON text with sorted
names, and are sent back as they came. Our tokenizer does not count them; only the provider's count includes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

STANDARD = ("refusal", "annotations", "audio", "function_call", "name", "parsed", "parsed_arguments")
"""Fields of OpenAI and of its clients that mean nothing when they are empty. In any other field an empty text can have a
meaning: Kimi treats it differently from a missing field."""
LARGEST = sys.float_info.max
"""The largest number that is kept. Few programs read a larger number, and Python does not write a number of 4,301 digits."""


def extra_text(fields: Mapping[str, Any], clean: Callable[[str], str] = str) -> str:
    """Return the fields as one JSON text, with `clean` applied to all texts; "" for no fields. A number beyond LARGEST becomes
    null."""
    kept = meaningful_fields(fields)
    if not kept:
        return ""
    try:
        return json_text(_clean(kept, clean), allow_nan=False, sort_keys=True)
    except RecursionError:  # nested without end: no provider sends that
        return ""


def json_text(value: object, *, allow_nan: bool = True, sort_keys: bool = False) -> str:
    """Return the value as JSON. `json.dumps` writes the same text, but holds the interpreter's lock until all is written."""
    return "".join(json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, sort_keys=sort_keys).iterencode(value))


def meaningful_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with a meaningful value."""
    return {name: value for name, value in fields.items() if _is_meaningful(name, value)}


def extra_in(text: str) -> dict[str, Any]:
    """Return the fields in a text that `extra_text` made. Raises ValueError for any other text."""
    try:
        fields = json.loads(text) if text else {}
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    if not isinstance(fields, dict):
        raise ValueError("is no JSON object")
    return fields


def _is_meaningful(name: str, value: object) -> bool:
    return value is not None and value not in ([], {}) and (value not in ("", False) or name not in STANDARD)


def _clean(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a JSON value with `clean` applied to all its texts and names. A number beyond LARGEST becomes null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _clean(inner, clean) for name, inner in value.items()}
    if isinstance(value, float | int) and not -LARGEST <= value <= LARGEST:
        return None
    return [_clean(item, clean) for item in value] if isinstance(value, list) else value
