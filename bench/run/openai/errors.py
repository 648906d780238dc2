"""Find the error in an OpenAI-compatible endpoint's answer, in whatever field it is.

OpenAI writes `{"error": {"message", "code", "type"}}`. Others write a text instead, put it into a list, beside the choices or
into a choice, name it `base_resp`, or put its fields at the top. A gateway wraps its provider's error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.run.openai.documents import UnreadableDocument, document_of

MAX_LEVELS = 4
"""How many levels of errors within an error are read."""
NO_ERROR = ("", "0", "200", "none", "ok", "success")
"""Codes and messages that mean that there is no error."""
CODE_FIELDS = ("code", "type", "status", "status_code", "error_code", "http_code", "__type")
MESSAGE_FIELDS = ("message", "msg", "detail", "status_msg", "error_msg", "Message", "error")
INNER_FIELDS = ("error", "innererror", "inner_error", "metadata", "raw", "upstream", "message")
"""Fields of an error that can hold another error."""
_DELAY = re.compile(r"(?:try again|retry) (?:in|after) ([\d.]{1,10} ?(?:ms|seconds?|sec|s)?)\b", re.IGNORECASE)
"""A delay in a message, as OpenAI and Azure write it."""


@dataclass(frozen=True)
class EndpointErrorParts:
    """The error in an answer. `words` are its codes, types and statuses, the outermost first. `status` is the first HTTP error
    status among them, 0 if there is none. `retry_delay` is the wait as the endpoint wrote it. `generation` is the text that the
    model wrote; None if the error has none."""

    message: str
    words: tuple[str, ...] = ()
    status: int = 0
    retry_delay: str = ""
    generation: str | None = None


def error_of(body: str) -> EndpointErrorParts | None:
    """Return the error in the body of an error response; None if the body has none."""
    try:
        document = document_of(body)
    except UnreadableDocument:
        return None
    return error_beside(document) or error_at_the_top(document)


def error_beside(document: Mapping[str, Any]) -> EndpointErrorParts | None:
    """Return the error in a field of the document, beside a completion or in place of it."""
    for field in ("error", "errors", "base_resp"):
        value = document.get(field)
        value = value[0] if isinstance(value, list) and value else value
        if value is True:
            return error_at_the_top(document) or EndpointErrorParts("an error without words")
        if isinstance(value, str) and value.strip():
            return _parts_of(document)
        if isinstance(value, dict) and _is_an_error(value):
            code = {"status_code": f"{field} {value['status_code']}"} if "status_code" in value else {}
            return _parts_of({**value, **code})
    return None


def error_at_the_top(document: Mapping[str, Any]) -> EndpointErrorParts | None:
    """Return the error whose fields are the document's own fields."""
    return _parts_of(document) if _first_text(document, MESSAGE_FIELDS) else None


def _is_an_error(fields: Mapping[str, Any]) -> bool:
    """Return whether these fields report an error: some endpoints send an error field whose values mean that there is none."""
    values = (fields[name] for name in (*CODE_FIELDS, *MESSAGE_FIELDS, *INNER_FIELDS) if name in fields)
    return any(bool(value) and str(value).lower() not in NO_ERROR for value in values)


def _parts_of(error: Mapping[str, Any]) -> EndpointErrorParts:
    """Return the parts of an error, from all levels of errors within it."""
    levels = list(_levels(error, MAX_LEVELS))
    codes = [value for level in levels for name in CODE_FIELDS if isinstance(value := level.get(name), str | int)]
    messages = list(dict.fromkeys(text for level in levels if (text := _message(level))))
    delays = (item.get("retryDelay") for level in levels for item in _items(level.get("details")))
    generated = (value for level in levels if isinstance(value := level.get("failed_generation"), str))
    written_delays = (match[1] for message in messages if (match := _DELAY.search(message)))
    return EndpointErrorParts(
        ": ".join(messages),
        tuple(str(code) for code in codes),
        next(filter(None, map(_status, codes)), 0),
        next((delay for delay in (*delays, *written_delays) if isinstance(delay, str)), ""),
        next(generated, None),
    )


def _levels(error: Mapping[str, Any], deepest: int) -> Iterator[Mapping[str, Any]]:
    """Yield the error and the errors in it: a gateway passes its provider's error on as an object or as text."""
    yield error
    for name in INNER_FIELDS if deepest else ():
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


def _first_text(level: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these fields that holds a text; "" if none does."""
    return next((value for name in names if isinstance(value := level.get(name), str) and value.strip()), "")


def _message(level: Mapping[str, Any]) -> str:
    """Return the message of an error; "" if it has none, or if the message is itself an error in JSON."""
    text = _first_text(level, MESSAGE_FIELDS)
    return text if text.lstrip()[:1] not in ("{", "[") else ""


def _items(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a list; nothing if the value is no list."""
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _status(code: object) -> int:
    """Return the HTTP error status that this code is; 0 if it is none."""
    try:
        number = int(str(code))
    except ValueError:
        return 0
    return number if 400 <= number < 600 else 0
