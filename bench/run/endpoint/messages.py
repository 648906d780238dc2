"""Validate and convert the messages of a chat completion's request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from bench.common.bounds import Listed
from bench.record.extra_fields import extra_text
from bench.record.messages import Message, MessageRole
from bench.record.tool_calls import ToolCall, call_extra
from bench.wire.problem import MAX_NAME_CHARS


def text_in(content: object, kinds: tuple[str, ...] = ("text",)) -> object:
    """Return the text of a message's content: its parts joined, if it is a list, else the content itself. Raises ValueError for
    a part that is neither of these kinds nor a model's refusal."""
    if not isinstance(content, list):
        return content
    parts = [_refusal_as_text(part) for part in content]
    for part in parts:
        if not isinstance(part, dict) or part.get("type") not in kinds or not isinstance(part.get("text"), str):
            raise ValueError(f"only parts of type '{kinds[0]}', each with a text, are taken; images and sound are not served")
        if unknown := {name for name, value in part.items() if value not in ([], None)} - {"type", "text", "cache_control"}:
            raise ValueError(f"a part has a type and a text; '{min(unknown)}' would not be passed on")
    return "".join(part["text"] for part in parts)


def _refusal_as_text(part: Any) -> Any:
    """Return a part of type `refusal` as a text part, and any other part unchanged. The endpoint had sent the refusal as a
    reply's text."""
    if isinstance(part, dict) and part.get("type") == "refusal":
        return {"type": "text", **{"text" if name == "refusal" else name: part[name] for name in part if name != "type"}}
    return part


def _served_role(role: object) -> object:
    """Return the role unchanged. Raises ValueError for the role `function`, with the remedy."""
    if role == "function":
        raise ValueError("'function': functions have become tools; give role 'tool' and a tool_call_id")
    return role


class _Function(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    arguments: str


class _ToolCall(BaseModel):
    """A tool call in a received message. `index` is accepted and not passed on, since a client can keep it from a stream; other
    fields are passed on."""

    model_config = ConfigDict(extra="allow")

    id: str
    type: Literal["function"] = "function"
    function: _Function
    index: int | None = None

    @property
    def plain(self) -> ToolCall:
        """The tool call as a trial records it."""
        extra = call_extra(self.model_extra or {}, self.function.model_extra or {})
        return ToolCall(self.id, self.function.name, self.function.arguments, extra)


REFUSED_FIELDS = {
    "audio": "images and sound are not served",
    "images": "images and sound are not served",
    "function_call": "functions have become tools; give tool_calls",
}
"""Field of an assistant's message -> why it is refused: token counts do not cover its content."""


class ReceivedMessage(BaseModel):
    """A received message. `name` is accepted and not passed on. Other fields of an assistant's message are the provider's and
    are passed on unchanged. In other messages they must be empty, except `cache_control`, which text parts can also have."""

    model_config = ConfigDict(extra="allow")

    role: Annotated[Literal["system", "developer", "user", "assistant", "tool"], BeforeValidator(_served_role)]
    content: Annotated[str | None, BeforeValidator(text_in)] = None
    name: str | None = None
    tool_calls: Listed[_ToolCall] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _refuse_unfit(self) -> ReceivedMessage:
        """Raise ValueError for a message that cannot be passed on, or whose fields do not fit its role."""
        for field, value in (self.model_extra or {}).items():
            if value in (None, [], {}, "") or field == "cache_control":
                continue
            if self.role != "assistant":
                raise ValueError(f"{field[:MAX_NAME_CHARS]}: only role, content and tool calls of a message are passed on")
            if field in REFUSED_FIELDS:
                raise ValueError(f"{field}: {REFUSED_FIELDS[field]}")
        if self.content is None and self.role not in ("assistant", "tool"):
            raise ValueError("its content is no text; only a message of the assistant or of a tool may lack one")
        if self.tool_calls and self.role != "assistant":
            raise ValueError("tool_calls: only the assistant makes them")
        if (self.role == "tool") != bool(self.tool_call_id):
            raise ValueError("tool_call_id: a message of role 'tool', and no other, names the call that it answers")
        return self

    @property
    def plain(self) -> Message:
        """The message as a trial records it."""
        role: MessageRole = "system" if self.role == "developer" else self.role
        calls = tuple(call.plain for call in self.tool_calls or ())
        extra = extra_text(self.model_extra or {}) if role == "assistant" else ""
        return Message(role, self.content or "", calls, self.tool_call_id or "", extra)


def refuse_results_without_call(messages: tuple[Message, ...]) -> None:
    """Raise ValueError for a tool's result without an earlier call, which no provider accepts."""
    call_ids = set[str]()
    for number, message in enumerate(messages):
        call_ids.update(call.id for call in message.tool_calls)
        if message.tool_call_id and message.tool_call_id not in call_ids:
            raise ValueError(f"messages.{number}: no tool call before it is '{message.tool_call_id[:MAX_NAME_CHARS]}'")
