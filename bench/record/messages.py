"""A message of a request, and its form in a record."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from bench.common.digests import Texts
from bench.common.tokens import count_tokens
from bench.common.values import dataclass, kept
from bench.record.tool_calls import ToolCall, counted_text_of, text_of

MessageRole = Literal["system", "user", "assistant", "tool"]
Timing = Literal["live", "simulated", "recorded"]
"""Whether a trial's seconds are real, simulated or recorded."""


OptionalText = Annotated[str | None, Field(exclude_if=operator.not_)]
"""The digest of a text that most records lack. An empty value is not written, so that a record without it has the same bytes
as before the field existed."""


@dataclass(frozen=True)
class StoredMessage:
    """A message as a record stores it. Empty fields are not written.

    `content` is the digest of its text, `tool_calls` the digest of their JSON, `extra` the digest of its extra fields.
    """

    role: MessageRole
    content: str
    tool_calls: OptionalText = None
    tool_call_id: Annotated[str, Field(exclude_if=operator.not_)] = ""
    extra: OptionalText = None


@dataclass(frozen=True)
class Message:
    """One message of a request.

    role           who speaks
    content        its text
    tool_calls     the tool calls that the assistant made
    tool_call_id   the call whose result a message of role `tool` is
    extra          other fields that the provider gave, and may want back (`bench.record.extra_fields`)
    """

    role: MessageRole
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    extra: str = ""

    def __hash__(self) -> int:
        return hash(self.content)  # that of a text is kept, and few messages of a trial differ in something else alone

    @kept
    def stored_form(self) -> tuple[StoredMessage, Texts]:
        """Return the stored form of the message, and the texts behind its digests: content, tool calls as JSON, and extra
        fields."""
        texts = Texts()
        content, calls = texts.keep(self.content), text_of(self.tool_calls)
        named = texts.keep(calls) if calls else None
        extra = texts.keep(self.extra) if self.extra else None
        return StoredMessage(self.role, content, named, self.tool_call_id, extra), texts

    @kept
    def tokens(self) -> int:
        """Return the number of tokens of the content and of the tool calls, by our tokenizer."""
        return sum(map(count_tokens, filter(None, (self.content, counted_text_of(self.tool_calls)))))


def stored(messages: Iterable[Message], texts: Texts) -> tuple[StoredMessage, ...]:
    """Return messages in the form of a record.

    Args:
        messages: The messages that were sent.
        texts: Gets the texts behind the digests.

    Returns:
        Their stored forms, in the same order.
    """
    each = [message.stored_form for message in messages]
    for _, named in each:
        texts.update(named)
    return tuple([message for message, _ in each])
