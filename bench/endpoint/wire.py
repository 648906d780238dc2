"""What goes over the wire: OpenAI's chat completions, read and written. Nothing here knows of sockets.

Of a request its messages are read, and whether the reply is to be streamed. `bench.endpoint.fields` says which other fields are
taken and which are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from bench.endpoint.fields import TOOLS, objection
from bench.models.base import Message, Reply, Role, Usage

MODEL = "bench"
"""The model that the endpoint says it is: which one answers is the experiment's affair."""
LONGEST_NAME = 80
"""Characters of a field's name that a refusal repeats."""
PIECE = 40
"""Characters of a reply in one chunk of a stream."""
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Problem(Exception):
    """Why a request gets no reply, as OpenAI words it. `headers` go with the status."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        said = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": said}


@dataclass(frozen=True)
class Chat:
    """A request: its messages, and how it is to be answered."""

    messages: tuple[Message, ...]
    stream: bool = False
    include_usage: bool = False


def _text_of(content: object) -> object:
    """A content's parts as one text, where all of them are text."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise ValueError("only parts of type 'text', each with a text, are taken; images and sound are not served")
        if unknown := part.keys() - {"type", "text", "cache_control"}:
            raise ValueError(f"a part has a type and a text; '{min(unknown)}' would not be passed on")
    return "".join(part["text"] for part in content)


def _served_role(role: object) -> object:
    if role in ("tool", "function"):
        raise ValueError(f"'{role}': {TOOLS}")
    return role


class _Message(BaseModel):
    """`name` is taken and not passed on; what else a message has must be empty."""

    model_config = ConfigDict(extra="allow")

    role: Annotated[Literal["system", "developer", "user", "assistant"], BeforeValidator(_served_role)]
    content: Annotated[str | None, BeforeValidator(_text_of)] = None
    name: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> _Message:
        for field, value in (self.model_extra or {}).items():
            if value not in (None, [], {}, ""):
                why = TOOLS if field in ("tool_calls", "function_call") else "only role and content of a message are passed on"
                raise ValueError(f"{field[:LONGEST_NAME]}: {why}")
        if self.content is None and self.role != "assistant":
            raise ValueError("its content is no text; only a message of the assistant may lack one")
        return self

    @property
    def plain(self) -> Message:
        role: Role = "system" if self.role == "developer" else self.role
        return Message(role, self.content or "")


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class _Body(BaseModel):
    model_config = ConfigDict(extra="allow")

    messages: list[_Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


def chat_of(body: bytes, parameters: Mapping[str, object] | None = None) -> Chat:
    """Read a request's body; `parameters` are those of the experiment's model. Raises Problem, status 400, where it is none, or
    asks for what is not passed on."""
    try:
        asked = _Body.model_validate_json(body)
    except ValidationError as error:
        raise _malformed(error) from None
    for field, value in (asked.model_extra or {}).items():
        if why := objection(field, value, parameters or {}):
            _refuse_field(field[:LONGEST_NAME], why)
    usage = asked.stream_options is not None and bool(asked.stream_options.include_usage)
    return Chat(tuple(message.plain for message in asked.messages), bool(asked.stream), usage)


def _refuse_field(field: str, why: str) -> NoReturn:
    field = " ".join(field.split())
    raise Problem(400, f"{field}: {why}", param=field)


def _malformed(error: ValidationError) -> Problem:
    """The first thing that is wrong, in one line."""
    first = error.errors(include_url=False)[0]
    said = " ".join(first["msg"].removeprefix("Value error, ").split())
    param = " ".join(".".join(str(step)[:LONGEST_NAME] for step in first["loc"]).split())
    if first["type"] == "json_invalid":
        return Problem(400, f"the body is no JSON: {said}")
    return Problem(400, f"{param}: {said}" if param else f"the body: {said}", param=param or None)


def completion(reply: Reply, number: int) -> bytes:
    """The whole answer to request `number`. Where nobody counted its tokens, it has no usage."""
    choice = {"index": 0, "finish_reason": reply.finish, "message": {"role": "assistant", "content": reply.text}}
    usage = {"usage": _usage(reply.usage)} if reply.usage else {}
    return _json({**_head(number, "chat.completion"), **usage, "choices": [choice]})


def broken_off(partial: str, number: int) -> bytes:
    """The first bytes of an answer, up to where its text breaks off."""
    whole = completion(Reply(partial), number)
    return whole[: whole.rindex(b'"}}]}')]


def chunks(reply: Reply, number: int, include_usage: bool) -> Iterator[bytes]:
    """The same answer as events of a stream: its text in pieces, how it finished, its usage where asked for, the end."""
    yield from opening_chunks(reply.text, number)
    yield _chunk(number, [{"index": 0, "delta": {}, "finish_reason": reply.finish}])
    if include_usage:
        yield _chunk(number, [], usage=_usage(reply.usage) if reply.usage else None)
    yield DONE


def opening_chunks(text: str, number: int) -> Iterator[bytes]:
    """The chunks that carry a text, without those that end the stream."""
    yield _chunk(number, [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
    for start in range(0, len(text), PIECE):
        yield _chunk(number, [{"index": 0, "delta": {"content": text[start : start + PIECE]}, "finish_reason": None}])


def _chunk(number: int, choices: list[dict[str, Any]], **more: Any) -> bytes:
    return b"data: " + _json({**_head(number, "chat.completion.chunk"), **more, "choices": choices}) + b"\n\n"


def _head(number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": MODEL}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
