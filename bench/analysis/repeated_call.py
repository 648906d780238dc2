"""An agent that goes round in a circle: its model makes the same tool call again and again in one trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench.experiment.record import TrialRecord
from bench.models.tool_calls import calls_in
from bench.runtime.events import Called, of_kind

ENOUGH = 20
"""So many equal calls in a trial are no progress."""


def repeated_call(record: TrialRecord, texts: Mapping[str, str]) -> str:
    """Say what the model called again and again, and why; "" where it did not. Calls are compared without their ids.

    Args:
        record: The trial.
        texts: Digest -> text.
    """
    calls = of_kind(record.events, Called)
    made = (calls_in(texts.get(call.tool_calls, "")) for call in calls if call.tool_calls)
    counted = Counter(tuple((call.name, call.arguments) for call in of_reply) for of_reply in made if of_reply)
    times = max(counted.values(), default=0)
    if times < ENOUGH:
        return ""
    text = f"the model made the same tool call {times} times in one trial"
    if all(message.role != "tool" for call in calls for message in call.messages):
        return (
            f"{text}, and this agent sends the tools' results back as text, where a simulated model cannot see them; "
            "use a real model for it, or let it send messages of role 'tool'"
        )
    return text
