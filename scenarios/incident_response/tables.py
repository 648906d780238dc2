"""The tables of an incident's world, and the rows with which one begins. `behind` is what no tool shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .case import Case, Service
from .dice import Dice
from .limits import CLOSING_DUE, PAGE_DUE, SLOWEST
from .wordings import CALM, ORDINARY, OVER, OWN, WORDINGS

SCHEMA = """
CREATE TABLE incident (id TEXT NOT NULL, entry TEXT NOT NULL, alert TEXT NOT NULL, needed INTEGER NOT NULL,
  page_due INTEGER NOT NULL, closing_due INTEGER NOT NULL);
CREATE TABLE behind (
  cause TEXT NOT NULL, node TEXT NOT NULL, tool TEXT NOT NULL, target TEXT NOT NULL, least INTEGER NOT NULL,
  severity TEXT NOT NULL, sound INTEGER NOT NULL, settles INTEGER NOT NULL, repairs INTEGER NOT NULL,
  cured_at INTEGER, worse INTEGER NOT NULL DEFAULT 0, escalated INTEGER NOT NULL DEFAULT 0);
CREATE TABLE service (
  name TEXT NOT NULL, calls TEXT NOT NULL, last_line TEXT NOT NULL, log TEXT NOT NULL, version TEXT NOT NULL,
  previous TEXT NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0, schema_changed INTEGER NOT NULL,
  migration_running INTEGER NOT NULL, stateful INTEGER NOT NULL, replicas INTEGER NOT NULL, connections INTEGER NOT NULL);
CREATE TABLE metric (service TEXT NOT NULL, state TEXT NOT NULL, error_pct INTEGER NOT NULL, p95_ms INTEGER NOT NULL);
CREATE TABLE node (name TEXT NOT NULL, drained INTEGER NOT NULL);
CREATE TABLE change (service TEXT NOT NULL, what TEXT NOT NULL);
CREATE TABLE deed (
  tool TEXT NOT NULL, target TEXT NOT NULL, given TEXT NOT NULL, seen TEXT NOT NULL, standing INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL);
CREATE TABLE review (tool TEXT NOT NULL, target TEXT NOT NULL, approved INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE switch (why TEXT NOT NULL, at INTEGER NOT NULL);
"""
STATES = ("healthy", "settling", "failing", "escalated")
HARMLESS = (
    "log level: debug, before info",
    "banner: on, before off",
    "cache: 90 s, before 60 s",
    "batch size: 250, before 200",
)
Rows = Sequence[Mapping[str, Any]]


def rows(case: Case) -> dict[str, Rows]:
    return {
        "incident": [_incident(case)],
        "behind": [_behind(case)],
        "service": [_service(case, one) for one in case.services],
        "metric": list(_metrics(case)),
        "node": [{"name": name, "drained": int(name in case.drained)} for name in nodes(case)],
        "change": _changes(case),
    }


def _incident(case: Case) -> Mapping[str, Any]:
    return {
        "id": case.incident,
        "entry": case.entry,
        "alert": _alert(case),
        "needed": case.needed,
        "page_due": case.moment(PAGE_DUE).total,
        "closing_due": case.moment(CLOSING_DUE).total,
    }


def nodes(case: Case) -> list[str]:
    return [f"node-{number}" for number in range(1, case.nodes + 1)]


def _alert(case: Case) -> str:
    """It tells a peak, which says little of how many fail now."""
    dice = Dice(case.incident, "alert")
    peak = (
        dice.between(20, 70) if case.kind == "noise" else dice.between(max(2, case.error_pct // 2), min(99, case.error_pct * 2))
    )
    return f"{case.entry}: one probe saw {peak}% of requests fail"


def _behind(case: Case) -> Mapping[str, Any]:
    remedy = case.remedy
    least = {"scale": (3 * case.struck.replicas + 1) // 2, "raise_limit": 3 * case.struck.connections // 2}
    return {
        "cause": "noise" if case.kind == "noise" else case.cause,
        "node": case.node,
        "tool": remedy.tool,
        "target": remedy.target,
        "least": least.get(remedy.tool, 0),
        "severity": case.severity,
        "sound": int(case.sound),
        "settles": case.settles,
        "repairs": case.repairs,
    }


def _service(case: Case, one: Service) -> Mapping[str, Any]:
    failing = case.kind != "noise" and one.name in victims(case)
    dice = Dice(case.incident, "log", one.name)
    callee = next((name for name in one.calls if name in (*victims(case), case.suspect)), "")
    blame = [words.format(callee=callee) for words in WORDINGS["none_here"]] if failing else []
    struck = case.kind != "noise" and one.name == case.suspect
    last = dice.pick(OWN) if struck else dice.pick(blame) if blame else dice.pick(CALM)
    return {
        "name": one.name,
        "calls": json.dumps(one.calls),
        "last_line": last,
        "log": json.dumps(_log(case, one, struck, blame, dice)),
        "version": one.version,
        "previous": one.previous,
        "schema_changed": int(one.schema_changed),
        "migration_running": int(one.migration_running),
        "stateful": int(one.stateful),
        "replicas": one.replicas,
        "connections": one.connections,
    }


def victims(case: Case) -> list[str]:
    """The services that fail because one fails that they call."""
    found: list[str] = []
    for one in reversed(case.services):
        if set(one.calls) & {case.suspect, *found}:
            found.append(one.name)
    return found


def _log(case: Case, one: Service, struck: bool, blame: Sequence[str], dice: Dice) -> list[str]:
    said = list(blame)
    if struck:
        names = {"version": one.version, "node": case.node, "connections": one.connections}
        words = WORDINGS[case.cause]
        said = [words[case.wording % len(words)].format(**names)]
    over = [words for cause, words in OVER.items() if cause != case.cause]
    return dice.shuffled([*said, dice.pick(over), *dice.shuffled(ORDINARY)[:2]])


def _metrics(case: Case) -> Iterator[Mapping[str, Any]]:
    """Readings of each service in each state of the cluster. Of a noise, and where nothing fails, they are the same in all."""
    for one in case.services:
        dice = Dice(case.incident, "metrics", one.name)
        well = (dice.below(2), dice.between(60, SLOWEST - 100))
        if case.kind == "noise" and one.name == case.entry:
            well = (case.error_pct, well[1])
        readings = dict.fromkeys(STATES, well)
        if case.kind != "noise" and one.name in (*victims(case), case.suspect):
            failing = case.error_pct if one.name == case.entry else dice.between(2, 90)
            slow = (dice.below(2), dice.between(SLOWEST + 100, 2000))
            readings["settling"] = slow if dice.chance(50) else (dice.between(3, 8), 600)
            readings["failing"] = (failing, dice.between(900, 6000))
            readings["escalated"] = (min(99, failing + 20), dice.between(6000, 9000))
        for state, (error_pct, p95_ms) in readings.items():
            yield {"service": one.name, "state": state, "error_pct": error_pct, "p95_ms": p95_ms}


def _changes(case: Case) -> Rows:
    dice = Dice(case.incident, "changes")
    found = [{"service": dice.pick(case.services).name, "what": what} for what in dice.shuffled(HARMLESS)[:2]]
    if case.cause == "bad_version":
        found.append({"service": case.suspect, "what": f"version {case.struck.version}, before {case.struck.previous}"})
    elif dice.chance(50):
        other = dice.pick([one for one in case.services if one.name != case.suspect])
        found.append({"service": other.name, "what": f"version {other.version}, before {other.previous}"})
    return dice.shuffled(found)
