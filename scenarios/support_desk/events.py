"""What comes in the conversation, what each event changes, and the lead who is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Db, EventKind, Moment, Person, Scheduled

from .customer import first_message
from .limits import ANSWERS, ANSWERS_LATE, FIRST
from .story import Case

Payload = Mapping[str, Any]


def scheduled(case: Case) -> tuple[Scheduled, ...]:
    """Return the first message, and the same in other words where the customer repeats it by e-mail."""
    first = {"ticket": case.ticket, "text": first_message(case)}
    events = [Scheduled("first message", "message", case.moment(FIRST), first)]
    if case.repeats:
        again = {"ticket": case.ticket, "text": first_message(case, again=1)}
        events.append(Scheduled("first message again", "message", case.moment(case.repeats), again))
    return tuple(events)


def _first(db: Db, payload: Payload, now: Moment) -> None:
    """What is repeated by e-mail is no further line of the conversation."""
    if db.value("SELECT 1 FROM line") is None:
        _say(db, {**payload, "meaning": "wants"}, now)


def _say(db: Db, payload: Payload, _: Moment) -> None:
    db.write("INSERT INTO line VALUES ('customer', ?, ?)", payload["text"], payload["meaning"])


def _ask_more(db: Db, payload: Payload, _: Moment) -> None:
    db.write("INSERT INTO aside VALUES (?)", payload["text"])


def _move(db: Db, payload: Payload, _: Moment) -> None:
    db.write("UPDATE account SET address = ?", payload["address"])


def of_conversation(_: Any) -> tuple[str, ...]:
    """Return what a message changes."""
    return ("conversation",)


KINDS = (
    EventKind("message", _first),
    EventKind("turn_2", _say, of_conversation),
    EventKind("turn_3", _say, of_conversation),
    EventKind("second_request", _ask_more, lambda _: ("aside",)),
    EventKind("moved", _move, lambda _: ("account",)),
)


def _approves(db: Db, question: Payload, _: Moment) -> bool:
    """A careful lead looks at the order itself, whatever the question says."""
    behind = db.row("SELECT number, action, sound FROM behind")
    return behind is not None and (behind["number"], behind["action"]) == (question["order"], "refund") and behind["sound"]


def _record(db: Db, question: Payload, approved: bool, now: Moment) -> None:
    db.write("INSERT INTO review VALUES (?, ?, ?)", question["order"], int(approved), now.total)


PEOPLE = {"lead": Person(_approves, _record, minutes=ANSWERS, late=0.2, late_minutes=ANSWERS_LATE)}
