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

JudgmentPlace = tuple[str, ...]


@dataclass(frozen=True)
class BankedReply:
    """A real model's reply to one judgment.

    state        names the state of the world
    repetition   the bank's seed
    right        the right output in that state
    output       the model's output, read by its schema; None if the reply does not fit the schema: only `text` is there then
    rejected     why the verifier rejected it, a `bench.record.events.ViolationKind`; "" if it did not
    notes        fields in free words, which are neither right nor wrong
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
        """Return the wrong fields with the model's values. Empty if the reply is right, or has no fields."""
        output = self.output or {}
        return {name: output[name] for name in output if name not in self.notes and output[name] != self.right.get(name)}

    @property
    def is_right(self) -> bool:
        return self.output is not None and not self.errors


class Bank:
    """The replies of one model in one run. `name` and `digest` are the run's."""

    def __init__(self, name: str, digest: str, model: str, replies: Iterable[BankedReply]):
        self.name, self.digest, self.model = name, digest, model
        self._by_place: dict[JudgmentPlace, list[BankedReply]] = {}
        for reply in replies:
            for place in ((reply.scenario, reply.judgment), (reply.scenario, reply.judgment, reply.instance, reply.state)):
                self._by_place.setdefault(place, []).append(reply)

    @property
    def judgments(self) -> frozenset[JudgmentPlace]:
        """Return the pairs (scenario, judgment) to which the bank has replies."""
        return frozenset(place[:2] for place in self._by_place)

    def knows(self, place: JudgmentPlace) -> bool:
        """Return whether the bank has a reply to this (scenario, judgment, instance, state)."""
        return place in self._by_place

    def draw(self, scenario: str, instance: str, judgment: str, state: str, right: Json, draw: Random) -> Json | str:
        """Return an output, or a text that does not fit the schema, drawn from the replies to this judgment. For a judgment
        that was made at run time, return the right output: no bank has replies to it. A bank that lacks one of the scenario's
        judgments is refused earlier (`bench.worlds.run.bank`)."""
        known = self._by_place.get((scenario, judgment, instance, state))
        every = self._by_place.get((scenario, judgment), [])
        if not every:
            return right
        drawn = draw.choice(known or every)
        if drawn.is_right:
            return right
        if drawn.output is None:
            return drawn.text
        return _with_error_of(right, drawn) or _with_error_of(right, *draw.sample(every, len(every))) or right


def _with_error_of(right: Json, *replies: BankedReply) -> Json | None:
    """Return the right output with the first error of these replies that is an error here too; None if no error is."""
    for reply in replies:
        if any(right.get(name) != value for name, value in reply.errors.items()):
            return {**right, **reply.errors}
    return None
