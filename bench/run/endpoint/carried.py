"""Write a provider's extra fields as one text that a client sends back, and read them from this text. The fields belong to an
assistant's message and to its tool calls.

A chat completion can hold each of these fields by itself. Each other dialect has one field whose text a client sends back
unchanged, such as a thought's signature, and that field holds this text.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.bounds import Lookup
from bench.record.extra_fields import extra_in, extra_text
from bench.run.endpoint.answers import as_json
from bench.run.models.base import Reply

THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Extra fields in which providers give a model's thoughts as a text."""


@dataclass(frozen=True)
class ProviderFields:
    """The extra fields of an assistant's message, and of its tool calls by id."""

    message: str
    calls: Lookup[str, str]


NO_FIELDS = ProviderFields("", {})


def provider_fields_text(reply: Reply) -> str:
    """Return the text that holds the extra fields of a reply and of its tool calls; "" if they have none."""
    calls = {call.id: call.extra for call in reply.tool_calls if call.extra}
    return as_json({"message": reply.extra, "calls": calls}).decode() if reply.extra or calls else ""


def provider_fields_in(text: object) -> ProviderFields:
    """Parse a text that `provider_fields_text` made. Raises ValueError for any other value."""
    try:
        if not isinstance(text, str):
            raise TypeError
        fields = extra_in(text)
        calls = {id_: extra_text(extra_in(call)) for id_, call in fields["calls"].items()}
        return ProviderFields(extra_text(extra_in(fields["message"])), calls)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("give it back as it was given here, or leave out what holds it") from None


def thought_in(extra: str) -> str:
    """Return the model's thoughts in a reply's extra fields, as a text; "" if they have none."""
    fields = extra_in(extra)
    return next((text for name in THOUGHTS if isinstance(text := fields.get(name), str)), "")
