"""A bank of replies: the replies of a real model to single judgments, each with the right output.

A simulated model with a bank errs as that model did. If the bank knows the state that is judged, the model draws one of the
replies recorded in that state. In any other state it draws from all replies to the judgment, and applies the drawn reply's
error to the output that is right here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from bench.scenario import Json

JudgmentKey = tuple[str, ...]
"""(scenario, judgment), or (scenario, judgment, instance, state)."""


@dataclass(frozen=True)
class BankedReply:
    """A real model's reply to one judgment.

    state        the name of the state of the world
    repetition   the number of the repetition in the bank's run
    right        the right output in that state
    output       the model's output, read by its schema; None if the reply does not fit the schema, and only `text` is known
    rejected     why the verifier rejected it, a `bench.record.events.ViolationKind`; "" if it did not
    text         the reply's text
    notes        the names of fields with free text, which are neither right nor wrong
    """

    scenario: str
    instance: str
    judgment: str
    state: str
    repetition: int
    right: Mapping[str, Json]
    output: Mapping[str, Json] | None
    rejected: str
    text: str
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> dict[str, Json]:
        """Return the wrong fields with the model's values; empty if the reply is right, or has no fields."""
        output = self.output or {}
        return {name: output[name] for name in output if name not in self.notes and output[name] != self.right.get(name)}

    @property
    def is_right(self) -> bool:
        """Whether the reply has an output without an error."""
        return self.output is not None and not self.errors


class Bank:
    """The replies of one model in one run. `name` and `digest` are the run's name and digest."""

    def __init__(self, name: str, digest: str, model: str, replies: Iterable[BankedReply]):
        self.name, self.digest, self.model = name, digest, model
        self._by_key: dict[JudgmentKey, list[BankedReply]] = {}
        for reply in replies:
            for key in ((reply.scenario, reply.judgment), (reply.scenario, reply.judgment, reply.instance, reply.state)):
                self._by_key.setdefault(key, []).append(reply)

    @property
    def judgments(self) -> frozenset[JudgmentKey]:
        """Return the pairs (scenario, judgment) to which the bank has replies."""
        return frozenset(key[:2] for key in self._by_key)

    def knows(self, key: JudgmentKey) -> bool:
        """Return whether the bank has a reply to this (scenario, judgment, instance, state)."""
        return key in self._by_key

    def draw(self, scenario: str, instance: str, judgment: str, state: str, right: Json, draw: Random) -> Json | str:
        """Return an output, or a text that does not fit the schema, drawn from the replies to this judgment. For a judgment
        that was added at run time, return the right output: no bank has replies to it. A bank that lacks one of the scenario's
        judgments is refused earlier (`bench.worlds.run.simulated.bank`)."""
        in_state = self._by_key.get((scenario, judgment, instance, state))
        in_any_state = self._by_key.get((scenario, judgment), [])
        if not in_any_state:
            return right
        drawn = draw.choice(in_state or in_any_state)
        if drawn.is_right:
            return right
        if drawn.output is None:
            return drawn.text
        # A wrong output: the right output with the error of the drawn reply, or, if that error does not fit, of another reply.
        return _with_error_of(right, drawn) or _with_error_of(right, *draw.sample(in_any_state, len(in_any_state))) or right


def _with_error_of(right: Json, *replies: BankedReply) -> Json | None:
    """Return the right output with the errors of the first of these replies that are errors here too; None if no reply has
    such errors."""
    for reply in replies:
        if any(right.get(name) != value for name, value in reply.errors.items()):
            return {**right, **reply.errors}
    return None
