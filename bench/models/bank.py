"""A bank of replies: what a real model once said to single judgments, beside what would have been right.

A simulated model that has one errs as that model did. Asked for a judgment in a state that the bank knows, it draws one of the
replies to just that; in any other state, one of all replies to that judgment, whose error is put upon the output that is right
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from bench.scenario import Json

JudgmentPlace = tuple[str, ...]


@dataclass(frozen=True)
class BankedReply:
    """One judgment, asked once.

    state      names the state of the world; `repetition` is the bank's seed
    right      the right output in that state
    output     the model's, as its schema reads it; None where it does not fit its schema, and then `text` is all there is
    rejected   why the verifier turned it away, a `bench.runtime.verification.ViolationKind`; "" where it did not
    notes      fields in free words, which are neither right nor wrong
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
        """The fields that are wrong, as they were said; none where the reply is right, or has no fields at all."""
        output = self.output or {}
        return {name: output[name] for name in output if name not in self.notes and output[name] != self.right.get(name)}

    @property
    def is_right(self) -> bool:
        return self.output is not None and not self.errors


class Bank:
    """`name` and `digest` are those of the run that it was recorded in, `model` the model's."""

    def __init__(self, name: str, digest: str, model: str, replies: Iterable[BankedReply]):
        self.name, self.digest, self.model = name, digest, model
        self._by_place: dict[JudgmentPlace, list[BankedReply]] = {}
        for reply in replies:
            for place in ((reply.scenario, reply.judgment), (reply.scenario, reply.judgment, reply.instance, reply.state)):
                self._by_place.setdefault(place, []).append(reply)

    @property
    def judgments(self) -> frozenset[JudgmentPlace]:
        """(scenario, judgment) of those that it holds replies to."""
        return frozenset(place[:2] for place in self._by_place)

    def knows(self, place: JudgmentPlace) -> bool:
        """Whether it holds a reply to this (scenario, judgment, instance, state)."""
        return place in self._by_place

    def draw(self, scenario: str, instance: str, judgment: str, state: str, right: Json, draw: Random) -> Json | str:
        """An output, or a text that is none. Of a judgment that was made at run time, and so is in no bank, the right output:
        a bank without one of the scenario's own is refused before (`bench.worlds.bank`)."""
        known = self._by_place.get((scenario, judgment, instance, state))
        every = self._by_place.get((scenario, judgment), [])
        if not every:
            return right
        drawn = draw.choice(known or every)
        if drawn.is_right:
            return right
        if drawn.output is None:
            return drawn.text
        return _upon(right, drawn) or _upon(right, *draw.sample(every, len(every))) or right


def _upon(right: Json, *replies: BankedReply) -> Json | None:
    """The right output with the first error among these replies that is one here as well; None where none is."""
    for reply in replies:
        if any(right.get(name) != value for name, value in reply.errors.items()):
            return {**right, **reply.errors}
    return None
