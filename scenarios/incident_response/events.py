"""What comes in the two hours whatever the agent does, what each event changes, the lead, and the change freeze."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Db, EventKind, Moment, Person, Scheduled

from .case import Case
from .health import cure, is_remedy
from .limits import ALERT, ANSWERS, ANSWERS_LATE
from .reading import of_health
from .steps import STOP

Payload = Mapping[str, Any]


def scheduled(case: Case) -> tuple[Scheduled, ...]:
    """The alert comes three times: it itself, one of another service for the same fault, and once more."""
    which = {"incident": case.incident}
    of_another, again = case.again
    events = [
        Scheduled("alert", "alert", case.moment(ALERT), {**which, "service": case.entry}),
        Scheduled("alert of another", "alert", case.moment(of_another), {**which, "service": case.services[1].name}),
        Scheduled("alert again", "alert", case.moment(again), {**which, "service": case.entry}),
    ]
    if case.deploys:
        whose = {"service": case.deployed, "mends": case.deployed == case.suspect}
        events.append(Scheduled("deploy by another", "deployed", case.moment(case.deploys), whose))
    if case.escalates:
        events.append(Scheduled("it grows worse", "escalated", case.moment(case.escalates), which))
    if case.freeze:
        events.append(Scheduled("change freeze", STOP, case.moment(case.freeze), {**which, "why": "all changes are frozen"}))
    return tuple(events)


def next_patch(version: str) -> str:
    major, minor, patch = version.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def _deploy(db: Db, payload: Payload, now: Moment) -> None:
    """A colleague's version. At the service at fault it repairs what the version before it broke, which is then withdrawn."""
    service = payload["service"]
    before = db.value("SELECT version FROM service WHERE name = ?", service)
    mends = payload["mends"]
    after = next_patch(before)
    said = "UPDATE service SET version = ?, previous = ?, withdrawn = ? WHERE name = ?"
    db.write(said, after, before, int(mends), service)
    db.write("INSERT INTO change VALUES (?, ?)", service, f"version {after}, before {before}")
    if mends:
        cure(db, now)


def _repair(db: Db, _: Payload, now: Moment) -> None:
    cure(db, now)


def _escalate(db: Db, _: Payload, __: Moment) -> None:
    db.write("UPDATE behind SET escalated = 1")


def _freeze(db: Db, payload: Payload, now: Moment) -> None:
    db.write("INSERT INTO switch VALUES (?, ?)", payload["why"], now.total)


def _moved(payload: Payload) -> tuple[str, ...]:
    return (f"deployment of {payload['service']}", *(of_health(payload) if payload["mends"] else ()))


KINDS = (
    EventKind("alert"),
    EventKind("deployed", _deploy, _moved),
    EventKind("repaired", _repair, of_health),
    EventKind("escalated", _escalate, of_health),
    EventKind(STOP, _freeze),
)


def halted(db: Db, _: Moment) -> str:
    return db.value("SELECT why FROM switch") or ""


def _approves(db: Db, question: Payload, _: Moment) -> bool:
    """A careful lead looks at the incident itself, whatever the question says."""
    return is_remedy(db, question["tool"], question["target"]) and bool(db.value("SELECT sound FROM behind"))


def _record(db: Db, question: Payload, approved: bool, now: Moment) -> None:
    db.write("INSERT INTO review VALUES (?, ?, ?, ?)", question["tool"], question["target"], int(approved), now.total)


PEOPLE = {"lead": Person(_approves, _record, minutes=ANSWERS, late=0.2, late_minutes=ANSWERS_LATE)}
