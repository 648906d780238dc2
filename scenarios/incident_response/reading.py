"""The tools that read."""

from __future__ import annotations

import json
from typing import Any

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .forms import (
    Alert,
    Capacity,
    Change,
    Changes,
    Deployment,
    Everything,
    Incident,
    Log,
    Metric,
    Metrics,
    OfService,
    Overseen,
    Overview,
    Standing,
    State,
)
from .health import state
from .keys import REMEDIES


def require(db: Db, what: str, name: str) -> None:
    """Raises ToolRefused where there is no such `incident`, `service` or `node`."""
    column = "id" if what == "incident" else "name"
    if db.value(f"SELECT 1 FROM {what} WHERE {column} = ?", name) is None:
        raise ToolRefused(f"there is no {what} {name}")


def of_deployment(arguments: Any) -> tuple[str, ...]:
    return (f"deployment of {arguments.service}",)


def of_capacity(_: Any) -> tuple[str, ...]:
    return ("capacity",)


def of_incident(_: Any) -> tuple[str, ...]:
    """What is known and what was done, as the record has it."""
    return ("incident",)


def of_health(_: Any) -> tuple[str, ...]:
    return ("health",)


def _read_alert(db: Db, arguments: Incident, _: Moment) -> Alert:
    require(db, "incident", arguments.incident)
    return Alert(service=db.value("SELECT entry FROM incident"), text=db.value("SELECT alert FROM incident"))


def _read_metrics(db: Db, _: Everything, now: Moment) -> Metrics:
    found = db.all("SELECT service, error_pct, p95_ms FROM metric WHERE state = ? ORDER BY rowid", state(db, now))
    return Metrics(services=[Metric(**dict(row)) for row in found])


def _read_overview(db: Db, _: Everything, __: Moment) -> Overview:
    found = db.all("SELECT name, calls, last_line FROM service ORDER BY name")
    rows = [Overseen(service=row["name"], calls=json.loads(row["calls"]), last_line=row["last_line"]) for row in found]
    return Overview(services=rows)


def _read_log(db: Db, arguments: OfService, _: Moment) -> Log:
    require(db, "service", arguments.service)
    lines = db.value("SELECT log FROM service WHERE name = ?", arguments.service)
    return Log(service=arguments.service, lines=json.loads(lines))


def _read_changes(db: Db, _: Everything, __: Moment) -> Changes:
    return Changes(changes=[Change(service=row["service"], change=row["what"]) for row in db.all("SELECT * FROM change")])


def _read_deployment(db: Db, arguments: OfService, _: Moment) -> Deployment:
    require(db, "service", arguments.service)
    row = db.row("SELECT * FROM service WHERE name = ?", arguments.service)
    assert row is not None, "it is there"
    flags = {name: bool(row[name]) for name in ("schema_changed", "migration_running", "stateful")}
    same = {name: row[name] for name in ("version", "previous", "replicas", "connections")}
    return Deployment(service=row["name"], previous_withdrawn=bool(row["withdrawn"]), **same, **flags)


def _read_capacity(db: Db, _: Everything, __: Moment) -> Capacity:
    ready, drained = (
        [row["name"] for row in db.all("SELECT name FROM node WHERE drained = ? ORDER BY name", which)] for which in (0, 1)
    )
    return Capacity(ready=ready, drained=drained, needed=db.value("SELECT needed FROM incident"))


def _read_incident(db: Db, arguments: Incident, _: Moment) -> State:
    require(db, "incident", arguments.incident)
    deeds = db.all("SELECT tool, target, given FROM deed WHERE standing ORDER BY rowid")
    known: dict[str, Any] = {}
    for row in deeds:
        if row["tool"] in ("set_severity", "note_finding"):
            known |= json.loads(row["given"])
    known.pop("incident", None)
    done = [Standing(tool=row["tool"], target=row["target"]) for row in deeds if row["tool"] in REMEDIES]
    return State(**known, done=done, paged=[row["target"] for row in deeds if row["tool"] == "page"])


READING = (
    Tool("read_alert", "read", Incident, Alert, _read_alert),
    Tool("read_metrics", "read", Everything, Metrics, _read_metrics, about=of_health),
    Tool("read_overview", "read", Everything, Overview, _read_overview, minutes=2),
    Tool("read_log", "read", OfService, Log, _read_log, minutes=3),
    Tool("read_changes", "read", Everything, Changes, _read_changes, minutes=2),
    Tool("read_deployment", "read", OfService, Deployment, _read_deployment, about=of_deployment),
    Tool("read_capacity", "read", Everything, Capacity, _read_capacity, about=of_capacity),
    Tool("read_incident", "read", Incident, State, _read_incident, about=of_incident),
)
