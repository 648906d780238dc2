"""Detect an agent that makes no progress, because its model makes the same tool call again and again in one trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from bench.record.events import Called, of_kind
from bench.record.record import TrialRecord
from bench.record.tool_calls import ToolCall, calls_in

MIN_EQUAL_CALLS = 20
"""The number of equal calls in a trial from which on the agent is taken to make no progress."""


class RepeatedCalls:
    """The tool calls in one trial's replies, counted as the replies come. Calls that differ only in their ids are equal."""

    def __init__(self) -> None:
        self._made: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._gets_results = False

    def add(self, roles: Iterable[str], calls: Collection[ToolCall]) -> None:
        """Count a reply.

        Args:
            roles: The roles of the messages that the model was sent.
            calls: The tool calls in its reply.
        """
        self._gets_results = self._gets_results or "tool" in roles
        if calls:
            self._made[tuple((call.name, call.arguments) for call in calls)] += 1

    @property
    def description(self) -> str:
        """The repeated call and its likely reason, in words; "" if no call was repeated MIN_EQUAL_CALLS times."""
        times = max(self._made.values(), default=0)
        if times < MIN_EQUAL_CALLS:
            return ""
        text = f"the model made the same tool call {times} times in one trial"
        if self._gets_results:
            return text
        return (
            f"{text}, and this agent sends the tools' results back as text, where a simulated model cannot see them; "
            "use a real model for it, or let it send messages of role 'tool'"
        )


def repeated_call(record: TrialRecord, texts: Mapping[str, str]) -> str:
    """Return the call that the model repeated in a trial and the likely reason, in words; "" if it repeated none.

    Args:
        record: The trial.
        texts: Digest -> text.
    """
    repeated = RepeatedCalls()
    for call in of_kind(record.events, Called):
        repeated.add((message.role for message in call.messages), calls_in(texts.get(call.tool_calls or "", "")))
    return repeated.description
