"""The error that an OpenAI-compatible endpoint's answer says it is, wherever it says so.

OpenAI writes `{"error": {"message", "code", "type"}}`. Others write a text in its place, put it into a list, beside the choices
or into one of them, spell it `base_resp`, or have its fields at the top. A gateway wraps the error of who is behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.openai.documents import UnreadableDocument, document_of

DEEPEST = 4
"""Errors within an error that are looked at."""
FINE = ("", "0", "200", "none", "ok", "success")
"""Codes, and messages, of what is no error."""
CODES = ("code", "type", "status", "status_code", "error_code", "http_code", "__type")
MESSAGES = ("message", "msg", "detail", "status_msg", "error_msg", "Message", "error")
WITHIN = ("error", "innererror", "inner_error", "metadata", "raw", "upstream", "message")
_DELAY = re.compile(r"(?:try again|retry) (?:in|after) ([\d.]{1,10} ?(?:ms|seconds?|sec|s)?)\b", re.IGNORECASE)
"""A delay in a message, as OpenAI and Azure write it."""


@dataclass(frozen=True)
class ErrorSaid:
    """`words` are codes, types and statuses, the outermost first; `status` is the first of them that is one of HTTP, 0 for
    none. `retry_delay` is how long to wait, as it is written, and `generation` what the model wrote, where that is told."""

    message: str
    words: tuple[str, ...] = ()
    status: int = 0
    retry_delay: str = ""
    generation: str | None = None


def error_of(body: str) -> ErrorSaid | None:
    """The error that an error's body tells; None where it tells none."""
    try:
        document = document_of(body)
    except UnreadableDocument:
        return None
    return error_beside(document) or error_at_the_top(document)


def error_beside(document: Mapping[str, Any]) -> ErrorSaid | None:
    """The error that stands in a field of its own, beside a completion or in place of it."""
    for field in ("error", "errors", "base_resp"):
        value = document.get(field)
        value = value[0] if isinstance(value, list) and value else value
        if value is True:
            return error_at_the_top(document) or ErrorSaid("an error without words")
        if isinstance(value, str) and value.strip():
            return _words_of(document)
        if isinstance(value, dict) and _is_an_error(value):
            return _words_of({**value, "status_code": f"{field} {value['status_code']}"} if "status_code" in value else value)
    return None


def error_at_the_top(document: Mapping[str, Any]) -> ErrorSaid | None:
    """The error whose fields are the document's own."""
    return _words_of(document) if isinstance(_first(document, MESSAGES), str) else None


def _is_an_error(fields: Mapping[str, Any]) -> bool:
    """Whether it says that something went wrong: some give an error with each answer, which says that all is well."""
    texts = (fields[name] for name in (*CODES, *MESSAGES, *WITHIN) if name in fields)
    return any(bool(value) and str(value).lower() not in FINE for value in texts)


def _words_of(error: Mapping[str, Any]) -> ErrorSaid:
    levels = list(_levels(error, DEEPEST))
    codes = [value for level in levels for name in CODES if isinstance(value := level.get(name), str | int)]
    messages = list(dict.fromkeys(text for level in levels if (text := _message(level))))
    delays = (item.get("retryDelay") for level in levels for item in _items(level.get("details")))
    written = (value for level in levels if isinstance(value := level.get("failed_generation"), str))
    in_words = (match[1] for message in messages if (match := _DELAY.search(message)))
    return ErrorSaid(
        ": ".join(messages),
        tuple(str(code) for code in codes),
        next(filter(None, map(_status, codes)), 0),
        next((delay for delay in (*delays, *in_words) if isinstance(delay, str)), ""),
        next(written, None),
    )


def _levels(error: Mapping[str, Any], deepest: int) -> Iterator[Mapping[str, Any]]:
    """The error, and those in it: a gateway gives that of who is behind it as an object, or as the text that it got."""
    yield error
    for name in WITHIN if deepest else ():
        inner = error.get(name)
        if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "["):
            try:
                inner = document_of(inner)
            except UnreadableDocument:
                continue
        elif isinstance(inner, str) and name == "raw":
            inner = {"message": inner}
        if isinstance(inner, dict):
            yield from _levels(inner, deepest - 1)


def _first(level: Mapping[str, Any], names: tuple[str, ...]) -> object:
    return next((value for name in names if isinstance(value := level.get(name), str) and value.strip()), None)


def _message(level: Mapping[str, Any]) -> str:
    """Its message in words; "" for none, and for one that is itself an error, written out."""
    text = _first(level, MESSAGES)
    return text if isinstance(text, str) and text.lstrip()[:1] not in ("{", "[") else ""


def _items(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _status(code: object) -> int:
    try:
        number = int(str(code))
    except ValueError:
        return 0
    return number if 400 <= number < 600 else 0
