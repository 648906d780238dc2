"""A simulated proposer that errs at a declared rate. After a rejection it is right at measured or assumed rates.

A declared share of its wrong outputs lacks a required field. In the other wrong outputs one value is exchanged for another that
the schema allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from bench.record.messages import Message
from bench.run.answers.exchanged import exchange
from bench.run.models.rejections import NOT_ACCEPTED, REJECTED
from bench.scenario import Json, Output

RepairSignal = Literal["typed", "untyped", "completed"]
"""What a proposer is told about its last output: why it was rejected; only that it was rejected; or that all went well."""
DEFAULT_LACK_SHARE = 0.5
"""The share of wrong outputs that lack a required field, if none is declared. It is an assumption."""


@dataclass(frozen=True)
class ErringRepair:
    """The reply of a recorded model to a rejection of its output: whether it was accepted, and whether it was right."""

    scenario: str
    instance: str
    judgment: str
    state: str
    signal: RepairSignal
    is_accepted: bool
    is_right: bool


@dataclass(frozen=True)
class Learning:
    """The rates at which a reply after each signal is right. `source` says where the rates come from; a manifest shows it."""

    right: Mapping[RepairSignal, float]
    source: str

    @property
    def as_parameters(self) -> dict[str, object]:
        return {"right": dict(self.right), "source": self.source}


def measure_rates(run: str, model: str, repairs: Sequence[ErringRepair]) -> Learning:
    """Return the rates in a run of `every_repair`. A signal without replies has no rate."""
    replies: dict[RepairSignal, list[bool]] = {}
    for repair in repairs:
        replies.setdefault(repair.signal, []).append(repair.is_right)
    counts = ", ".join(f"{signal} {sum(right)} of {len(right)}" for signal, right in replies.items())
    rates = {signal: sum(right) / len(right) for signal, right in replies.items()}
    return Learning(rates, f"measured on {model} in {run}: {counts}")


def signal_in(messages: Sequence[Message]) -> RepairSignal | None:
    """Return the signal about the last output in these messages; None at a first attempt."""
    text = messages[-1].content
    if REJECTED not in text:
        return None
    return "untyped" if NOT_ACCEPTED in text[text.rindex(REJECTED) :] else "typed"


@dataclass(frozen=True)
class Erring:
    """A source of right and wrong outputs. `error_rate` applies to first attempts, and to later attempts if `learning` has no
    rate for the signal. `lacks_a_field` is the share of wrong outputs that lack a required field."""

    error_rate: float
    learning: Learning | None = None
    lacks_a_field: float = DEFAULT_LACK_SHARE

    def output(self, right: Json, schema: type[Output], signal: RepairSignal | None, draw: Random) -> Json:
        """Return the right output, or a wrong output in its place.

        The same draw decides whatever the signal is, so that two boundaries that differ only in their signal draw the same.
        """
        chance = draw.random()
        if chance >= self._wrong_after(signal) or not isinstance(right, dict):
            return right
        required = [name for name, field in schema.model_fields.items() if field.is_required() and name in right]
        if required and draw.random() < self.lacks_a_field:
            forgotten = draw.choice(required)
            return {name: value for name, value in right.items() if name != forgotten}
        return exchange(right, schema, draw) or right

    def _wrong_after(self, signal: RepairSignal | None) -> float:
        """Return the rate of wrong outputs after a signal."""
        if signal is None or self.learning is None or signal not in self.learning.right:
            return self.error_rate
        return 1.0 - self.learning.right[signal] if self.error_rate else 0.0
