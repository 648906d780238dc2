"""Tools that change the world. They refuse little: what is allowed is the policy's word, and whoever ignores it does harm."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .forms import Announcement, Closing, Done, Found, Graded, Incident, Limit, OfNode, OfService, Page, Scaling
from .health import cure, harms, is_enough, is_remedy, relapse, worsen
from .keys import UNDOES, field_of, keyed
from .limits import LENGTH
from .policy import seen_now, target_of
from .reading import of_capacity, of_deployment, of_health, of_incident, require

DONE = Done()
KNOWN = ("incident", "service", "node")
Run = Callable[[Db, Any, Moment], Done]
Seen = Mapping[str, Any]


def _written(tool: str, then: Run | None = None) -> Run:
    """A tool that writes its deed, with what was so when it was made, and then does what it does to the cluster."""

    def run(db: Db, arguments: BaseModel, now: Moment) -> Done:
        given = arguments.model_dump()
        for what in KNOWN:
            if what in given and tool != "note_finding":
                require(db, what, given[what])
        target = target_of(tool, given)
        seen = seen_now(db, tool, target, now)
        values = (tool, target, json.dumps(given), json.dumps(seen), now.total)
        db.write("INSERT INTO deed (tool, target, given, seen, at) VALUES (?, ?, ?, ?, ?)", *values)
        if harms(tool, seen):
            worsen(db)
        return then(db, arguments, now) if then else DONE

    return run


def _page(db: Db, arguments: Page, now: Moment) -> Done:
    """The owner repairs it by hand, or the provider what is its own, some time later or not in time."""
    behind = db.row("SELECT cause, repairs FROM behind")
    assert behind is not None, "each incident has one"
    wanted = "provider" if behind["cause"] == "provider_outage" else "owner"
    if arguments.who == wanted and behind["repairs"] < LENGTH:
        db.later("repaired", now.after(minutes=behind["repairs"]), {"incident": arguments.incident}, f"repair by {wanted}")
    return DONE


def _repairs(tool: str) -> Run:
    """What may be the remedy."""

    def run(db: Db, arguments: Any, now: Moment) -> Done:
        if is_remedy(db, tool, getattr(arguments, field_of(tool))):
            cure(db, now)
        return DONE

    return run


def _roll_back(db: Db, arguments: OfService, now: Moment) -> Done:
    """To the version before. Across a schema change of which no good comes the data does not fit any more."""
    db.write(SWAP, arguments.service)
    crossed = db.value("SELECT schema_changed FROM service WHERE name = ?", arguments.service)
    if crossed and not db.value("SELECT sound FROM behind"):
        worsen(db)
    return _repairs("roll_back")(db, arguments, now)


SWAP = "UPDATE service SET version = previous, previous = version WHERE name = ?"


def _sized(tool: str, column: str) -> Run:
    """Sets a number of a service; too small a one repairs nothing."""

    def run(db: Db, arguments: Any, now: Moment) -> Done:
        number = getattr(arguments, column)
        db.write(f"UPDATE service SET {column} = ? WHERE name = ?", number, arguments.service)
        if is_remedy(db, tool, arguments.service) and is_enough(db, number):
            cure(db, now)
        return DONE

    return run


def _drain(db: Db, arguments: OfNode, _: Moment) -> Done:
    db.write("UPDATE node SET drained = 1 WHERE name = ?", arguments.node)
    return DONE


def _taken_back(tool: str, then: Callable[[Db, str, Seen], None]) -> Run:
    """Takes back the last deed of a tool that stands, and what had been so before it is so again."""

    def run(db: Db, arguments: Any, _: Moment) -> Done:
        name = getattr(arguments, field_of(tool))
        last = db.row("SELECT rowid, seen FROM deed WHERE standing AND tool = ? AND target = ? ORDER BY rowid DESC", tool, name)
        if last is None:
            raise ToolRefused(f"no {tool} of {name} stands")
        db.write("UPDATE deed SET standing = 0 WHERE rowid = ?", last["rowid"])
        then(db, name, json.loads(last["seen"]))
        if tool != "drain" and is_remedy(db, tool, name):
            relapse(db)
        return DONE

    return run


def _undrain(db: Db, node: str, seen: Seen) -> None:
    db.write("UPDATE node SET drained = ? WHERE name = ?", seen["drained"], node)


def _roll_forward(db: Db, service: str, _: Seen) -> None:
    db.write(SWAP, service)


def _resized(column: str) -> Callable[[Db, str, Seen], None]:
    return lambda db, service, seen: _set(db, column, service, seen[column])


def _set(db: Db, column: str, service: str, number: int) -> None:
    db.write(f"UPDATE service SET {column} = ? WHERE name = ?", number, service)


def _recorded(arguments: Any) -> tuple[str, ...]:
    """Whatever is done is decided on by the record and by how the cluster is, and is noted in the record."""
    return (*of_incident(arguments), *of_health(arguments))


def _mending(arguments: Any) -> tuple[str, ...]:
    where = of_capacity(arguments) if isinstance(arguments, OfNode) else of_deployment(arguments)
    return (*where, *_recorded(arguments))


def _due(which: str) -> Callable[[Db, Any], Moment]:
    return lambda db, _: Moment.of(db.value(f"SELECT {which} FROM incident"))


def _whom(tool: str) -> Callable[[Any, Any], dict[str, str]]:
    """The arguments of the undo."""
    return lambda arguments, _: {field_of(tool): getattr(arguments, field_of(tool))}


def _final(name: str, arguments: type[BaseModel], about: Any, then: Run | None = None, due: Any = None) -> Tool:
    return Tool(name, "final", arguments, Done, _written(name, then), keyed(name), about=about, due=due)


def _compensable(name: str, arguments: type[BaseModel], about: Any, then: Run, back: Callable[..., None]) -> tuple[Tool, Tool]:
    """A tool and its undo."""
    undo, whose = UNDOES[name], OfNode if name == "drain" else OfService
    return (
        Tool(name, "compensable", arguments, Done, _written(name, then), keyed(name), undo, _whom(name), about),
        Tool(undo, "final", whose, Done, _taken_back(name, back), keyed(name), about=about),
    )


WRITING = (
    _final("open_incident", Incident, _recorded),
    _final("set_severity", Graded, _recorded),
    _final("announce", Announcement, _recorded),
    _final("page", Page, _recorded, _page, due=_due("page_due")),
    _final("note_finding", Found, _recorded),
    *_compensable("roll_back", OfService, _mending, _roll_back, _roll_forward),
    *_compensable("scale", Scaling, _mending, _sized("scale", "replicas"), _resized("replicas")),
    *_compensable("raise_limit", Limit, _mending, _sized("raise_limit", "connections"), _resized("connections")),
    *_compensable("drain", OfNode, _mending, _drain, _undrain),
    _final("reboot", OfNode, _mending, _repairs("reboot")),
    _final("restart", OfService, _mending, _repairs("restart")),
    _final("renew_certificate", OfService, _mending, _repairs("renew_certificate")),
    _final("free_disk", OfService, _mending, _repairs("free_disk")),
    _final("close_incident", Closing, _recorded, due=_due("closing_due")),
)
