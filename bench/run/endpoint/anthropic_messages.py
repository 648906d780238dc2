"""Read a request of Anthropic's Messages API as the chat completion that it means.

A client gets the address without its /v1, and sends its key as `x-api-key`. The experiment decides on `thinking` and effort, as
on sampling settings. `cache_control` is accepted and changes no reply. `is_error` of a tool's result is accepted and not passed
on, since chat completions have no such field: the result's text must say it. A message of role `system` keeps its place in the
conversation. Images, documents, and tools that a provider would run are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, PlainValidator, Tag, model_validator

from bench.common.bounds import BoundedTable, Listed
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.endpoint.carried import NO_FIELDS, ProviderFields, provider_fields_in
from bench.run.endpoint.fields import Restricted, options_among, refuse_others, settings_set_aside
from bench.run.endpoint.messages import text_in
from bench.run.endpoint.wire import MAX_MESSAGES, Chat, conversation, exchange_at
from bench.run.models.options import OPTIONS, options_in
from bench.run.trial.endpoint_session import Exchange
from bench.wire.problem import MAX_NAME_CHARS, read_body, refuse_field

INVALID_JSON_KEY = "INVALID_JSON"
"""The key of a tool's arguments that are no JSON object, as in Anthropic's documentation."""
RESTRICTED: Mapping[str, Restricted] = {
    "context_management": Restricted("nothing is left out of a conversation here; leave the field out"),
    "mcp_servers": Restricted("no tools are called here; leave the field out"),
    "container": Restricted("no code is run here; leave the field out"),
    "compaction": Restricted("nothing is left out of a conversation here; leave the field out"),
}
TOOL_FIELDS = frozenset({"type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming"})


class _Block(BaseModel):
    """A content block. Unknown fields must be empty."""

    model_config = ConfigDict(extra="allow")

    cache_control: Any = None

    @model_validator(mode="after")
    def _refuse_unfit(self) -> _Block:
        """Raise ValueError for an unknown field that is not empty."""
        for field, value in (self.model_extra or {}).items():
            if value not in (None, [], {}, ""):
                raise ValueError(f"{field[:MAX_NAME_CHARS]}: would not be passed on; leave it out")
        return self


class _TextBlock(_Block):
    type: Literal["text"]
    text: str


class _Thinking(_Block):
    type: Literal["thinking"]
    thinking: str | None = None
    signature: Annotated[ProviderFields, PlainValidator(provider_fields_in)] = Field(NO_FIELDS, validate_default=True)


class _ToolUse(_Block):
    type: Literal["tool_use"]
    id: Annotated[str, Field(min_length=1)]
    name: str
    input: BoundedTable[str, Any]

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them, or as JSON."""
        invalid = self.input.get(INVALID_JSON_KEY)
        return invalid if isinstance(invalid, str) and len(self.input) == 1 else json.dumps(self.input, ensure_ascii=False)


class _ToolResult(_Block):
    type: Literal["tool_result"]
    tool_use_id: Annotated[str, Field(min_length=1)]
    content: Annotated[str | None, BeforeValidator(text_in)] = None
    is_error: bool | None = None


def _kind(block: Any) -> str:
    """Return the type of a content block, read or not; "" if it has none."""
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", "")
    return kind if isinstance(kind, str) else ""


ContentBlock = Annotated[
    Annotated[_TextBlock, Tag("text")]
    | Annotated[_Thinking, Tag("thinking")]
    | Annotated[_ToolUse, Tag("tool_use")]
    | Annotated[_ToolResult, Tag("tool_result")],
    Discriminator(
        _kind,
        custom_error_type="block",
        custom_error_message="a block has type 'text', 'thinking', 'tool_use' or 'tool_result'; images are not served",
    ),
]


def _blocks(content: object) -> object:
    """Return a text as one text block, and any other content unchanged."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class _Turn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant", "system"]
    content: Annotated[Listed[ContentBlock], BeforeValidator(_blocks), Field(max_length=MAX_MESSAGES)]

    @model_validator(mode="after")
    def _refuse_unfit(self) -> _Turn:
        """Raise ValueError for a content block of a type that the role cannot have."""
        replies = ("tool_use", "thinking")
        misplaced = {"assistant": ("tool_result",), "user": replies, "system": (*replies, "tool_result")}[self.role]
        if wrong := next((block.type for block in self.content if block.type in misplaced), None):
            raise ValueError(f"a message of the {self.role} has no block of type '{wrong}'")
        return self


class _OutputConfig(BaseModel):
    """The output settings of a request. Only `format` is passed on."""

    model_config = ConfigDict(extra="forbid")

    effort: str | None = None
    task_budget: BoundedTable[str, Any] | None = None
    format: BoundedTable[str, Any] | None = None


class _Thread(BaseModel):
    """The field that says whether the request continues the conversation of an earlier answer in this trial. If it does, it has
    the earlier system message and the earlier tools."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["create", "continue"]
    previous_message_id: str | None = None


class _MessagesBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    messages: Listed[_Turn] = Field(min_length=1, max_length=MAX_MESSAGES)
    system: Annotated[str | None, BeforeValidator(text_in)] = None
    stream: bool | None = None
    tools: Listed[BoundedTable[str, Any]] | None = None
    tool_choice: BoundedTable[str, Any] | None = None
    stop_sequences: Listed[str] | None = None
    max_tokens: int | None = None
    output_config: _OutputConfig | None = None
    thread: _Thread | None = None


def chat_of(
    body: bytes, parameters: Mapping[str, object] | None = None, exchanges: Mapping[int, Exchange] | None = None
) -> Chat:
    """Read the body of a request to /v1/messages. Arguments and exceptions are the same as of
    `bench.run.endpoint.wire.chat_of`."""
    request = read_body(body, _MessagesBody)
    fields = request.model_extra or {}
    for field in fields.keys() & set(OPTIONS):
        refuse_field(field, "it is a field of chat completions; ask as Anthropic's messages do, or at /v1/chat/completions")
    refuse_others(fields, RESTRICTED, frozenset(_MessagesBody.model_fields))
    hints = settings_set_aside({**fields, "effort": request.output_config.effort if request.output_config else None})
    messages, options = tuple(_messages(request)), _fields(request)
    if request.thread and request.thread.type == "continue":
        _, earlier = exchange_at(request.thread.previous_message_id or "", exchanges or {}, "thread")
        messages = (*earlier.conversation, *messages)
        options["tools"] = options["tools"] or options_in(earlier.options).get("tools")
    return Chat(conversation(messages), bool(request.stream), options=options_among(options, parameters or {}), set_aside=hints)


def _messages(request: _MessagesBody) -> Iterator[Message]:
    """Yield the messages of a request. A turn's tool results come before its text, since providers demand that order."""
    if request.system:
        yield Message("system", request.system)
    for turn in request.messages:
        texts = [block.text for block in turn.content if isinstance(block, _TextBlock)]
        thoughts = [block.signature for block in turn.content if isinstance(block, _Thinking)]
        call_fields = {id_: extra for thought in thoughts for id_, extra in thought.calls.items()}
        tool_uses = [block for block in turn.content if isinstance(block, _ToolUse)]
        calls = [ToolCall(block.id, block.name, block.arguments, call_fields.get(block.id, "")) for block in tool_uses]
        results = [block for block in turn.content if isinstance(block, _ToolResult)]
        for result in results:
            yield Message("tool", result.content or "", tool_call_id=result.tool_use_id)
        if texts or not results:
            yield Message(turn.role, "\n\n".join(texts), tuple(calls), extra=thoughts[-1].message if thoughts else "")


def _fields(request: _MessagesBody) -> dict[str, Any]:
    """Return the options of a request as fields of a chat completion."""
    choice = request.tool_choice or {}
    return {
        "tools": [_tool(tool, number) for number, tool in enumerate(request.tools or ())],
        "tool_choice": _choice(choice) if choice else None,
        "parallel_tool_calls": False if choice.get("disable_parallel_tool_use") else None,
        "response_format": _response_format(request.output_config),
        "stop": request.stop_sequences,
        "max_completion_tokens": request.max_tokens,
    }


def _tool(tool: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a tool as a chat completion has it. Raises Problem for a tool that the client would not run, or that has unknown
    fields."""
    if tool.get("type") not in (None, "custom") or "input_schema" not in tool:
        refuse_field("tools", f"{number}: only tools that the client runs, each with a name and an input_schema, are passed on")
    if unknown := {name for name, value in tool.items() if value not in (None, [], {}, False)} - TOOL_FIELDS:
        refuse_field("tools", f"{number}: {min(unknown)[:MAX_NAME_CHARS]}: would not be passed on; leave it out")
    function = {name: tool[name] for name in ("name", "description", "strict") if tool.get(name) is not None}
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}


def _choice(choice: Mapping[str, Any]) -> Any:
    """Return the `tool_choice` of a chat completion. Raises Problem for an unknown type."""
    kind = choice.get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    choices = {"auto": "auto", "any": "required", "none": "none"}
    if not isinstance(kind, str) or kind not in choices:
        refuse_field("tool_choice", "give a type: 'auto', 'any', 'none', or 'tool' with its name")
    return choices[kind]


def _response_format(config: _OutputConfig | None) -> dict[str, Any] | None:
    """Return the `response_format` of a chat completion; None if no format is wanted. Raises Problem for an unknown type."""
    if config is None or config.format is None:
        return None
    if config.format.get("type") != "json_schema":
        refuse_field("output_config", "format: only a type 'json_schema', with its schema, is passed on")
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": config.format.get("schema")}}
