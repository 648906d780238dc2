"""The people of a world: what they answer, and when, by a declared distribution and draws that no architecture influences.

Beside those that the pack declares there is a reviewer of the house, who can be asked about any call. A careful one tries the
call on the world as it is, and approves it where it is done and leaves no more damage than there was: it looks one call ahead.
It takes as long as the first of the pack's people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from bench.seeding import draw_for
from bench.worlds.environment.calling import PackCaller
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import Payload, Person
from bench.worlds.environment.schedule import Pending, Schedule

ANSWER = "answer"
REVIEWER = "house_reviewer"
Manner = Literal["", "says_yes", "answers_late", "contradicts", "never_answers"]
"""In which manner a question is answered, whatever the person's chances are; "" is by these chances."""


class People:
    """A draw depends on the trial's key, who is asked, what about, and how often before.

    tries   (question, now) -> whether the call that a question names is done and leaves no more damage than there was
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
        """Let the answer come, and perhaps its contrary later. Raises KeyError where there is no such person."""
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
        self._schedule.add("answer", ANSWER, at, payload, kind)
        if contradicts:
            later = at.after(minutes=person.minutes)
            self._schedule.add("answer", ANSWER, later, {**payload, "wrong": not wrong}, kind)

    def answer(self, pending: Pending, now: Moment) -> Payload:
        """What the person says now: {ticket, about, who, approved}."""
        person, question = self._people[pending.name], pending.payload["question"]
        if pending.name == REVIEWER:
            careful = self._tries(question, now)
        else:
            careful = self._caller.within(lambda: person.decides(self._caller.reading, question, now))
        approved = pending.payload.get("approved", bool(careful) != pending.payload["wrong"])
        if person.record:
            record = person.record
            self._caller.within(lambda: record(self._caller.writing, question, approved, now))
        return {
            "ticket": pending.payload["ticket"],
            "about": pending.payload["about"],
            "who": pending.name,
            "approved": approved,
        }
