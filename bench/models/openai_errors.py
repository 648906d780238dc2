"""The error that an OpenAI-compatible endpoint's answer says it is."""

from __future__ import annotations

import json
from typing import NamedTuple


class ErrorSaid(NamedTuple):
    """`code` and `kind` are whatever stands there as code and type."""

    message: str
    code: object
    kind: object


def error_in(body: str) -> ErrorSaid | None:
    """None where it says none."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return None
    return ErrorSaid(error["message"], error.get("code"), error.get("type"))
