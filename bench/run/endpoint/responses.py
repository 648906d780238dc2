"""Read a request of OpenAI's Responses API as the chat completion that it means.

The input is a text, or items: messages, `function_call`, `function_call_output`, `reasoning`, and `item_reference`, which
stands for an item that the endpoint gave in this trial. `previous_response_id` continues the conversation of an answer that the
endpoint gave. A `conversation` is refused. An item of reasoning holds the fields that the provider wants back with the turn
that the item begins; only items that this endpoint gave are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    TypeAdapter,
    model_validator,
)

from bench.common.bounds import BoundedTable, Listed
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.endpoint.carried import NO_FIELDS, ProviderFields, provider_fields_in
from bench.run.endpoint.fields import Restricted, options_among, refuse_others, settings_set_aside
from bench.run.endpoint.messages import text_in
from bench.run.endpoint.response_answers import items_of
from bench.run.endpoint.wire import MAX_MESSAGES, Chat, conversation, exchange_at
from bench.run.trial.endpoint_session import Exchange
from bench.wire.problem import MAX_NAME_CHARS, read_body, refuse_field

CONVERSATION_REMEDY = "no conversation is kept under a name; send all items with each request, or previous_response_id"
READ_FIELDS = frozenset({"input", "instructions", "stream", "stream_options", "tools", "tool_choice", "text", "include"})
READ_FIELDS |= {"max_output_tokens", "parallel_tool_calls", "previous_response_id"}
RESTRICTED: Mapping[str, Restricted] = {
    "conversation": Restricted(CONVERSATION_REMEDY),
    "prompt": Restricted("no prompts are stored here; send the messages"),
    "background": Restricted("replies are given at once; leave the field out", (False,)),
    "top_logprobs": Restricted("no probabilities are given; leave the field out", (0,)),
    "context_management": Restricted("nothing is left out of a conversation here; leave the field out"),
}
LOGPROBS = "message.output_text.logprobs"
TEXT_TYPES = ("input_text", "output_text", "text")


def _text(content: object) -> object:
    """Return text parts as one text. The parts of a reply have further fields, which are dropped."""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        content = [{key: part[key] for key in part if key not in ("annotations", "logprobs")} for part in content]
    return text_in(content, TEXT_TYPES)


class _Item(BaseModel):
    """An item of the input. `id` and `status` come from a reply that the client sends back. Unknown fields must be empty."""

    model_config = ConfigDict(extra="allow")

    id: str | None = None
    status: str | None = None

    @property
    def is_reference(self) -> bool:
        """Whether the item stands for an item that the endpoint gave under its id."""
        return False

    @model_validator(mode="after")
    def _refuse_unfit(self) -> _Item:
        """Raise ValueError for an unknown field that is not empty."""
        for field, value in (self.model_extra or {}).items():
            if value not in (None, [], {}, ""):
                raise ValueError(f"{field[:MAX_NAME_CHARS]}: would not be passed on; leave it out")
        return self


class _MessageItem(_Item):
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_text)]
    phase: str | None = None


class _FunctionCall(_Item):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class _FunctionCallOutput(_Item):
    type: Literal["function_call_output"]
    call_id: str
    output: Annotated[str, BeforeValidator(_text)]


class _Reference(_Item):
    type: Literal["item_reference"]
    id: str

    @property
    def is_reference(self) -> bool:
        return True


class _Reasoning(_Item):
    type: Literal["reasoning"]
    summary: Listed[Any] | None = None
    content: Listed[Any] | None = None
    encrypted_content: Annotated[
        ProviderFields | None, PlainValidator(lambda text: provider_fields_in(text) if text else None)
    ] = None

    @model_validator(mode="after")
    def _require_content_or_id(self) -> _Reasoning:
        """Raise ValueError for an item without content that is no reference either."""
        if self.is_reference and not self.id:
            raise ValueError("give it back as it was given here, or leave out what holds it")
        return self

    @property
    def is_reference(self) -> bool:
        return self.encrypted_content is None


def _kind(item: Any) -> str:
    """Return the type of an item, read or not; "" if it has none."""
    kind = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", "")
    return kind if isinstance(kind, str) else ""


InputItem = Annotated[
    Annotated[_MessageItem, Tag("message")]
    | Annotated[_FunctionCall, Tag("function_call")]
    | Annotated[_FunctionCallOutput, Tag("function_call_output")]
    | Annotated[_Reasoning, Tag("reasoning")]
    | Annotated[_Reference, Tag("item_reference")],
    Discriminator(
        _kind,
        custom_error_type="item",
        custom_error_message="only items of type 'message', 'function_call', 'function_call_output', 'reasoning' and"
        " 'item_reference' are taken",
    ),
]


class _Format(BaseModel):
    """A `response_format` in the form of the Responses API, with all keys on one level."""

    model_config = ConfigDict(extra="allow")

    type: str


class _Text(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: _Format | None = None
    verbosity: Any = None


def _items(value: object) -> object:
    """Return a text as a message of the user, and items unchanged."""
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class _ResponsesBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    input: Annotated[Listed[InputItem], BeforeValidator(_items), Field(max_length=MAX_MESSAGES)]
    instructions: str | None = None
    stream: bool | None = None
    text: _Text | None = None
    tools: Listed[BoundedTable[str, Any]] | None = None
    tool_choice: str | BoundedTable[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    previous_response_id: str | None = None
    include: Listed[str] | None = None


ITEM_ADAPTER: TypeAdapter[InputItem] = TypeAdapter(InputItem)


def chat_of(
    body: bytes, parameters: Mapping[str, object] | None = None, exchanges: Mapping[int, Exchange] | None = None
) -> Chat:
    """Read the body of a request to /v1/responses. Arguments and exceptions are the same as of
    `bench.run.endpoint.wire.chat_of`."""
    request = read_body(body, _ResponsesBody)
    fields = request.model_extra or {}
    refuse_others(fields, RESTRICTED, READ_FIELDS)
    if LOGPROBS in (request.include or ()):
        refuse_field("include", f"{LOGPROBS}: no probabilities are given; leave it out")
    exchanges = exchanges or {}
    earlier: tuple[Message, ...] = ()
    if request.previous_response_id:
        earlier = exchange_at(request.previous_response_id, exchanges, "previous_response_id")[1].conversation
    instructions = [Message("system", request.instructions)] if request.instructions else []
    items = [_resolve_reference(item, exchanges) for item in request.input]
    messages = conversation([*instructions, *earlier, *_messages(items)])
    if not messages:
        refuse_field("input", "there is none; give a text, or items")
    options = options_among(_fields(request), parameters or {})
    verbosity = {"verbosity": request.text.verbosity} if request.text else {}
    hints = settings_set_aside({**fields, **verbosity})
    return Chat(messages, bool(request.stream), options=options, instruction_count=len(instructions), set_aside=hints)


def _resolve_reference(item: InputItem, exchanges: Mapping[int, Exchange]) -> InputItem:
    """Return the item to which a reference refers, and any other item unchanged. Raises Problem if the endpoint gave no item
    with this id."""
    if not item.is_reference or item.id is None:
        return item
    number, exchange = exchange_at(item.id, exchanges, "input")
    original = next((candidate for candidate in items_of(exchange.reply, number) if candidate["id"] == item.id), None)
    if original is None:
        refuse_field("input", f"no item given here is '{item.id[:MAX_NAME_CHARS]}'; send the item itself")
    return ITEM_ADAPTER.validate_python(original)


def _messages(items: Sequence[InputItem]) -> Iterator[Message]:
    """Yield the messages of these items. The text and the tool calls of one turn of the assistant become one message."""
    turn, provider_fields = None, NO_FIELDS
    for item in items:
        if isinstance(item, _FunctionCall):
            call = ToolCall(item.call_id, item.name, item.arguments, provider_fields.calls.get(item.call_id, ""))
            turn = turn or Message("assistant", "", extra=provider_fields.message)
            turn = replace(turn, tool_calls=(*turn.tool_calls, call))
            continue
        if turn:
            yield turn
            turn, provider_fields = None, NO_FIELDS
        if isinstance(item, _Reasoning):
            provider_fields = item.encrypted_content or NO_FIELDS
        elif isinstance(item, _FunctionCallOutput):
            yield Message("tool", item.output, tool_call_id=item.call_id)
        elif isinstance(item, _MessageItem) and item.role == "assistant":
            turn = Message("assistant", item.content, extra=provider_fields.message)
        elif isinstance(item, _MessageItem):
            yield Message("system" if item.role == "developer" else item.role, item.content)
    if turn:
        yield turn


def _fields(request: _ResponsesBody) -> dict[str, Any]:
    """Return the options of a request as fields of a chat completion."""
    choice = request.tool_choice
    if isinstance(choice, dict) and "name" in choice:
        choice = {"type": choice.get("type"), "function": {"name": choice["name"]}}
    return {
        "tools": [_tool(tool) for tool in request.tools or ()],
        "tool_choice": choice,
        "parallel_tool_calls": request.parallel_tool_calls,
        "response_format": _response_format(request.text.format) if request.text and request.text.format else None,
        "max_completion_tokens": request.max_output_tokens,
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as a chat completion has it; any tool that is no function unchanged."""
    if tool.get("type") != "function":
        return dict(tool)  # `options_among` refuses it, with its number
    function = {name: value for name, value in tool.items() if name != "type" and value is not None}
    return {"type": "function", "function": function}


def _response_format(form: _Format) -> dict[str, Any]:
    """Return the `response_format` of a chat completion, in which a schema has a level of its own."""
    fields = {name: value for name, value in (form.model_extra or {}).items() if value is not None}
    return {"type": form.type, "json_schema": fields} if form.type == "json_schema" else {"type": form.type, **fields}
