"""Carry a provider's extra fields through a client: those of an assistant's message and of its tool calls, as one text that the
client sends back.

Chat completions have a place for each of these fields. Each other dialect has one place for a text that a client gives back
unchanged, such as a thought's signature, and carries this text there.
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
class Carried:
    """The extra fields of an assistant's message, and of its tool calls by id."""

    message: str
    calls: Lookup[str, str]


NOTHING = Carried("", {})


def carried_text(reply: Reply) -> str:
    """Return the text that holds the extra fields of a reply and of its tool calls; "" if they have none."""
    of_calls = {call.id: call.extra for call in reply.tool_calls if call.extra}
    return as_json({"message": reply.extra, "calls": of_calls}).decode() if reply.extra or of_calls else ""


def carried_in(text: object) -> Carried:
    """Parse a text that `carried_text` made. Raises ValueError for any other value."""
    try:
        if not isinstance(text, str):
            raise TypeError
        given = extra_in(text)
        calls = {id_: extra_text(extra_in(call)) for id_, call in given["calls"].items()}
        return Carried(extra_text(extra_in(given["message"])), calls)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("give it back as it was given here, or leave out what holds it") from None


def thought_in(extra: str) -> str:
    """Return the model's thoughts in a reply's extra fields, as a text; "" if they have none."""
    fields = extra_in(extra)
    return next((text for name in THOUGHTS if isinstance(text := fields.get(name), str)), "")
