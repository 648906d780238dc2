"""Read OpenAI's Responses API: a request to /v1/responses becomes the chat completion that it means.

Input is a text, or items: messages, `function_call`, `function_call_output`, `reasoning`. A client sends all of them each time:
nothing is kept between requests, so `previous_response_id` and `conversation` are refused. An item of reasoning holds what the
provider wants back with the turn that it begins; only items that this endpoint gave are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, PlainValidator, Tag, model_validator

from bench.bounds import BoundedTable, Listed, Lookup
from bench.endpoint.fields import Restricted, objection, options_among
from bench.endpoint.messages import text_in
from bench.endpoint.problem import LONGEST_NAME, read_body, refuse_field
from bench.endpoint.wire import MOST_MESSAGES, Chat, conversation
from bench.models.base import Message
from bench.models.extra_fields import extra_in, extra_text
from bench.models.tool_calls import ToolCall

KEPT = "what was said before is not kept here; send all items with each request"
READ = frozenset({"input", "instructions", "stream", "stream_options", "tools", "tool_choice", "text", "max_output_tokens"})
READ |= {"parallel_tool_calls", "include", "reasoning", "truncation"}
RESTRICTED: Mapping[str, Restricted] = {
    "previous_response_id": Restricted(KEPT),
    "conversation": Restricted(KEPT),
    "prompt": Restricted("no prompts are stored here; send the messages"),
    "background": Restricted("replies are given at once; leave the field out", (False,)),
    "top_logprobs": Restricted("no probabilities are given; leave the field out", (0,)),
    "max_tool_calls": Restricted("no tools are called here; leave the field out"),
    "context_management": Restricted("nothing is left out of a conversation here; leave the field out"),
}
TEXTS = ("input_text", "output_text", "text")


def _text(content: object) -> object:
    """Return text parts as one text. A reply's parts have further fields, which are dropped."""
    if isinstance(content, list):
        plain = [
            {key: part[key] for key in part if key not in ("annotations", "logprobs")} for part in content if _is_object(part)
        ]
        content = plain if len(plain) == len(content) else content
    return text_in(content, TEXTS)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


class _Item(BaseModel):
    """An input item. `id` and `status` come from a reply that is given back. Unknown fields must be empty."""

    model_config = ConfigDict(extra="allow")

    id: str | None = None
    status: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> _Item:
        for field, value in (self.model_extra or {}).items():
            if value not in (None, [], {}, ""):
                raise ValueError(f"{field[:LONGEST_NAME]}: would not be passed on; leave it out")
        return self


class _MessageItem(_Item):
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_text)]
    phase: str | None = None


class _Called(_Item):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class _Output(_Item):
    type: Literal["function_call_output"]
    call_id: str
    output: Annotated[str, BeforeValidator(_text)]


@dataclass(frozen=True)
class _Carried:
    """The `encrypted_content` of a reasoning item: the extra fields of the turn's message, and of its calls by id."""

    message: str
    calls: Lookup[str, str]


NOTHING = _Carried("", {})


def _carried(text: Any) -> _Carried:
    """Read `encrypted_content`. Raises ValueError if this endpoint did not give it."""
    try:
        given = extra_in(text)
        calls = {id_: extra_text(extra_in(call)) for id_, call in given["calls"].items()}
        return _Carried(extra_text(extra_in(given["message"])), calls)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("give it back as it was given here, or leave the item out") from None


class _Reasoned(_Item):
    type: Literal["reasoning"]
    summary: Listed[Any] | None = None
    content: Listed[Any] | None = None
    encrypted_content: Annotated[_Carried, PlainValidator(_carried)] = Field(NOTHING, validate_default=True)


def _kind(item: Any) -> str:
    kind = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", "")
    return kind if isinstance(kind, str) else ""


InputItem = Annotated[
    Annotated[_MessageItem, Tag("message")]
    | Annotated[_Called, Tag("function_call")]
    | Annotated[_Output, Tag("function_call_output")]
    | Annotated[_Reasoned, Tag("reasoning")],
    Discriminator(
        _kind,
        custom_error_type="item",
        custom_error_message="only items of type 'message', 'function_call', 'function_call_output' and 'reasoning' are taken",
    ),
]


class _Format(BaseModel):
    """A `response_format` as the Responses API writes it: flat."""

    model_config = ConfigDict(extra="allow")

    type: str


class _Text(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: _Format | None = None
    verbosity: Literal["medium"] | None = None


def _items(given: object) -> object:
    """Return a text as a message of the user; items unchanged."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class _ResponsesBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    input: Annotated[Listed[InputItem], BeforeValidator(_items), Field(max_length=MOST_MESSAGES)]
    instructions: str | None = None
    stream: bool | None = None
    text: _Text | None = None
    tools: Listed[BoundedTable[str, Any]] | None = None
    tool_choice: str | BoundedTable[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None


def chat_of(body: bytes, parameters: Mapping[str, object] | None = None) -> Chat:
    """Read a request's body, as `bench.endpoint.wire.chat_of` reads a chat completion's."""
    asked = read_body(body, _ResponsesBody)
    for field, value in (asked.model_extra or {}).items():
        if why := objection(field, value, RESTRICTED, READ):
            refuse_field(field, why)
    messages = conversation(_messages(asked))
    if not messages:
        refuse_field("input", "there is none; give a text, or items")
    return Chat(messages, bool(asked.stream), options=options_among(_fields(asked), parameters or {}))


def _messages(asked: _ResponsesBody) -> Iterator[Message]:
    """Yield the messages. An assistant's text and calls of one turn are one message."""
    if asked.instructions:
        yield Message("system", asked.instructions)
    turn, carried = None, NOTHING
    for item in asked.input:
        if isinstance(item, _Called):
            call = ToolCall(item.call_id, item.name, item.arguments, carried.calls.get(item.call_id, ""))
            turn = turn or Message("assistant", "", extra=carried.message)
            turn = replace(turn, tool_calls=(*turn.tool_calls, call))
            continue
        if turn:
            yield turn
            turn, carried = None, NOTHING
        if isinstance(item, _Reasoned):
            carried = item.encrypted_content
        elif isinstance(item, _Output):
            yield Message("tool", item.output, tool_call_id=item.call_id)
        elif item.role == "assistant":
            turn = Message("assistant", item.content, extra=carried.message)
        else:
            yield Message("system" if item.role == "developer" else item.role, item.content)
    if turn:
        yield turn


def _fields(asked: _ResponsesBody) -> dict[str, Any]:
    """Return the options as a chat completion has them."""
    choice = asked.tool_choice
    if isinstance(choice, dict) and "name" in choice:
        choice = {"type": choice.get("type"), "function": {"name": choice["name"]}}
    return {
        "tools": [_tool(tool) for tool in asked.tools or ()],
        "tool_choice": choice,
        "parallel_tool_calls": asked.parallel_tool_calls,
        "response_format": _response_format(asked.text.format) if asked.text and asked.text.format else None,
        "max_completion_tokens": asked.max_output_tokens,
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        return dict(tool)  # it is refused later, with its place
    function = {name: value for name, value in tool.items() if name != "type" and value is not None}
    return {"type": "function", "function": function}


def _response_format(wanted: _Format) -> dict[str, Any]:
    unknown = {name: value for name, value in (wanted.model_extra or {}).items() if value is not None}
    return {"type": wanted.type, "json_schema": unknown} if wanted.type == "json_schema" else {"type": wanted.type, **unknown}
