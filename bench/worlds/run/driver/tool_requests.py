"""Read requests to a world's server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.wire.problem import Problem, refuse_oversized

MAX_INTEGER = 2**63 - 1
MAX_KEY_LENGTH = 200
"""The most characters of an idempotency key."""


def arguments_of(body: bytes) -> Mapping[str, Any]:
    """Return a call's arguments. An empty body is an empty object. Raises Problem if the body is no JSON object that a database
    can store."""
    refuse_oversized(body)
    try:
        given = json.loads(body or b"{}", parse_int=_parse_integer)
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"the body is no JSON: {' '.join(str(error).split())[:200]}", code="json") from None
    if not isinstance(given, dict):
        raise Problem(400, f"the body is {type(given).__name__}; give an object with the tool's arguments", code="json")
    return given


def key_of(given: object) -> str | None:
    """Return an idempotency key; None if the request has none. Raises Problem for an unusable key."""
    if given is None or given == "":
        return None
    if not isinstance(given, str) or len(given) > MAX_KEY_LENGTH or not given.isprintable():
        raise Problem(400, f"the idempotency key: give a text of at most {MAX_KEY_LENGTH} printable characters", code="key")
    return given


def versions_of(given: str | None) -> Mapping[str, int] | None:
    """Return the versions in an If-Match header, `thing=version, thing=version`; None if there is no header."""
    if given is None:
        return None
    pairs = [part.rpartition("=") for part in given.split(",")]
    if not all(thing.strip() and version.strip().isdecimal() and len(version) < 18 for thing, _, version in pairs):
        raise Problem(400, "If-Match: give thing=version, thing=version", code="versions")
    return {thing.strip(): int(version) for thing, _, version in pairs}


def expected_of(given: object) -> Mapping[str, int] | None:
    """Return the versions that a call's `_meta` expects; None if it has none."""
    if given is None:
        return None
    if not isinstance(given, dict) or not all(type(version) is int for version in given.values()):
        raise Problem(400, "ifMatch: give an object, thing to version", code="versions")
    return given


def _parse_integer(digits: str) -> int:
    """Parse a whole number. Raises ValueError if a database cannot store it."""
    if len(digits) > len(str(MAX_INTEGER)) + 1 or abs(int(digits)) > MAX_INTEGER:
        raise ValueError(f"{digits[:30]} is too large a number")
    return int(digits)
