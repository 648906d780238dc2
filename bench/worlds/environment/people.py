"""The people of a world: what they answer, and when, by a declared distribution and draws that no architecture influences."""

from __future__ import annotations

from collections.abc import Mapping

from bench.seeding import draw_for
from bench.worlds.environment.calling import PackCaller
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import Payload, Person
from bench.worlds.environment.schedule import Pending, Schedule

ANSWER = "answer"


class People:
    """A draw depends on the trial's key, who is asked, what about, and how often before."""

    def __init__(self, people: Mapping[str, Person], drawn_from: tuple[object, ...], schedule: Schedule, caller: PackCaller):
        self._people, self.drawn_from = people, drawn_from
        self._schedule, self._caller = schedule, caller

    def ask(self, kind: str, about: str, question: Payload, ticket: str, times: int) -> None:
        """Let the answer come, and perhaps its contrary later. Raises KeyError where there is no such person."""
        person = self._people[kind]
        draw = draw_for(*self.drawn_from, "person", kind, about, times)
        silent, late, wrong, contradicts = (
            draw.random() < chance for chance in (person.silent, person.late, person.wrong, person.contradicts)
        )
        if silent:
            return
        at = self._schedule.now.after(minutes=person.late_minutes if late else person.minutes)
        payload = {"ticket": ticket, "about": about, "question": dict(question), "wrong": wrong}
        self._schedule.add("answer", ANSWER, at, payload, kind)
        if contradicts:
            later = at.after(minutes=person.minutes)
            self._schedule.add("answer", ANSWER, later, {**payload, "wrong": not wrong}, kind)

    def answer(self, pending: Pending, now: Moment) -> Payload:
        """What the person says now: {ticket, about, who, approved}."""
        person, question = self._people[pending.name], pending.payload["question"]
        careful = self._caller.within(lambda: person.decides(self._caller.reading, question, now))
        approved = bool(careful) != pending.payload["wrong"]
        if person.record:
            record = person.record
            self._caller.within(lambda: record(self._caller.writing, question, approved, now))
        return {
            "ticket": pending.payload["ticket"],
            "about": pending.payload["about"],
            "who": pending.name,
            "approved": approved,
        }
