"""The people of a world. Declared chances and random draws decide their answers and the time of the answers; no architecture
influences the draws.

Beside the pack's people there is a built-in reviewer, who can be asked about any call. A careful reviewer tries the call on the
present world and approves it if it is done and leaves no more damage than before: it looks one call ahead. It takes as long as
the first of the pack's people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from bench.common.seeding import draw_for
from bench.record.moment import Moment
from bench.worlds.run.environment.calling import PackCaller
from bench.worlds.run.environment.parts import Payload, Person
from bench.worlds.run.environment.schedule import Pending, Schedule

ANSWER = "answer"
REVIEWER = "house_reviewer"
MODEL = "a model"
"""The name of a model that has answered in a person's place. Its approval is not recorded, so that the policy goes on to want a
person."""
Manner = Literal["", "says_yes", "answers_late", "contradicts", "never_answers", "model_answers"]
"""The manner in which a question is answered. "" follows the person's chances; each other manner overrides them. With
`model_answers` a model says yes within a minute, and the person answers as usual."""


class People:
    """The people who can be asked in a world. A draw depends on the trial's key, the person, the subject of the question, and
    how often it was asked before.

    tries   (question, now) -> whether the call in a question is done and leaves no more damage than before
    """

    def __init__(
        self,
        people: Mapping[str, Person],
        drawn_from: tuple[object, ...],
        schedule: Schedule,
        caller: PackCaller,
        tries: Callable[[Payload, Moment], bool],
    ):
        first = next(iter(people.values()), Person(lambda *_: True))
        self._people = {REVIEWER: replace(first, record=None), **people}
        self.drawn_from = drawn_from
        self._schedule, self._caller, self._tries = schedule, caller, tries

    def ask(self, kind: str, about: str, question: Payload, ticket: str, times: int, manner: Manner = "") -> None:
        """Schedule the answer to a question, perhaps a contrary answer later, or no answer, by a random draw and the `manner`
        that a fault gives the person. Raises KeyError if there is no person of this kind."""
        person = self._people[kind]
        draw = draw_for(*self.drawn_from, "person", kind, about, times)
        silent, late, wrong, contradicts = (
            draw.random() < chance for chance in (person.silent, person.late, person.wrong, person.contradicts)
        )
        late, contradicts = late or manner == "answers_late", contradicts or manner == "contradicts"
        if silent or manner == "never_answers":
            return
        at = self._schedule.now.after(minutes=person.late_minutes if late else person.minutes)
        payload = {"ticket": ticket, "about": about, "question": dict(question), "wrong": wrong}
        if manner == "says_yes":
            payload["approved"] = True
        if manner == "model_answers":
            self._schedule.add("answer", ANSWER, self._schedule.now.after(minutes=1), {**payload, "who": MODEL}, kind)
        self._schedule.add("answer", ANSWER, at, payload, kind)
        if contradicts:
            later = at.after(minutes=person.minutes)
            self._schedule.add("answer", ANSWER, later, {**payload, "wrong": not wrong}, kind)

    def answer(self, pending: Pending, now: Moment) -> Payload:
        """Return the answer of the person, or of a model in the person's place, at this moment: {ticket, about, who,
        approved}."""
        if pending.payload.get("who") == MODEL:
            return {"ticket": pending.payload["ticket"], "about": pending.payload["about"], "who": MODEL, "approved": True}
        person, question = self._people[pending.name], pending.payload["question"]
        if pending.name == REVIEWER:
            careful = self._tries(question, now)
        else:
            careful = self._caller.call_pack(lambda: person.decides(self._caller.reading, question, now))
        approved = pending.payload.get("approved", bool(careful) != pending.payload["wrong"])
        if person.record:
            record = person.record
            self._caller.call_pack(lambda: record(self._caller.writing, question, approved, now))
        return {
            "ticket": pending.payload["ticket"],
            "about": pending.payload["about"],
            "who": pending.name,
            "approved": approved,
        }
