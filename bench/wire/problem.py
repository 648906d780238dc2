"""Errors of an endpoint in OpenAI's form, and checks of a request's body that raise them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from bench.common.bounds import excess_in, validate
from bench.common.wording import first_violations

MAX_NAME_CHARS = 80
"""Characters of a field's name that a refusal repeats."""


@dataclass(frozen=True)
class Problem(Exception):
    """The reason why a request gets no reply, as the fields of an error in OpenAI's API; `status` is the HTTP status."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


def refuse_field(field: str, why: str) -> NoReturn:
    """Raise Problem with status 400 for a field of the request. `why` completes the sentence after the field's name."""
    field = " ".join(field[:MAX_NAME_CHARS].split())
    raise Problem(400, f"{field}: {why}", param=field)


Body = TypeVar("Body", bound=BaseModel)


def read_body(body: bytes, form: type[Body]) -> Body:
    """Return the body of a request as a model of type `form`. Raises Problem with status 400 if the body does not fit the
    form, or has more values than any client sends."""
    refuse_oversized(body)
    try:
        return validate(TypeAdapter(form), body)
    except ValidationError as error:
        raise _first_error(error) from None


def refuse_oversized(body: bytes) -> None:
    """Raise Problem with status 400 if a body has so many values that parsing would take much time and memory."""
    if why := excess_in(body):
        raise Problem(400, f"the body: {why}; send less at a time")


def _first_error(error: ValidationError) -> Problem:
    """Return the first of pydantic's errors as a problem in one line, with status 400."""
    first = first_violations(error)[0]
    message = " ".join(first["msg"].removeprefix("Value error, ").split())
    param = " ".join(".".join(str(step)[:MAX_NAME_CHARS] for step in first["loc"]).split())
    if first["type"] == "json_invalid":
        return Problem(400, f"the body is no JSON: {message}")
    return Problem(400, f"{param}: {message}" if param else f"the body: {message}", param=param or None)
