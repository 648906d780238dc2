"""Why a request gets no reply, as OpenAI words it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

LONGEST_NAME = 80
"""Characters of a field's name that a refusal repeats."""


@dataclass(frozen=True)
class Problem(Exception):
    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        said = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": said}


def refuse_field(field: str, why: str) -> NoReturn:
    field = " ".join(field[:LONGEST_NAME].split())
    raise Problem(400, f"{field}: {why}", param=field)


def malformed(error: ValidationError) -> Problem:
    """The first thing that is wrong, in one line."""
    first = error.errors(include_url=False)[0]
    said = " ".join(first["msg"].removeprefix("Value error, ").split())
    param = " ".join(".".join(str(step)[:LONGEST_NAME] for step in first["loc"]).split())
    if first["type"] == "json_invalid":
        return Problem(400, f"the body is no JSON: {said}")
    return Problem(400, f"{param}: {said}" if param else f"the body: {said}", param=param or None)
