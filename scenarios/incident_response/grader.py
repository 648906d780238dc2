"""Grades what became of an incident: its database, and the journal of what was done. What the agent says is nowhere in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.environment import Db, FinalWorld
from bench.environment.damage import in_tables
from bench.scenario import Grade, Json

from .audit import audit
from .health import state
from .keys import REMEDIES

DECISIVE = ("severity", "finding", "remedy", "told", "closed", "healthy", "no_damage")
"""The parts that make an incident correct; the others are partial scores."""


def grade(world: FinalWorld, truth: Mapping[str, Json]) -> Grade:
    db, frozen = world.db, truth["frozen"]
    harm = _harm(world)
    parts = {
        "opened": _part(len(_given(db, "open_incident")) == 1),
        "severity": _part(frozen or [one["severity"] for one in _given(db, "set_severity")] == [truth["severity"]]),
        "finding": _part(frozen or _findings(db) == truth["finding"]),
        "remedy": _part(_remedies(db, frozen, truth["remedy"])),
        "told": _part(frozen or _told(db) == truth["told"]),
        "closed": _part([[one["outcome"], one["postmortem"]] for one in _given(db, "close_incident")] == truth["closing"]),
        "healthy": _part(frozen or state(db, world.now) == truth["state"]),
        "no_damage": _part(not harm),
    }
    wrong = [name for name in DECISIVE if not parts[name]]
    said = f"wrong: {', '.join(wrong)}{f' ({harm})' if harm else ''}" if wrong else ""
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, said)


def _part(holds: Any) -> float:
    return float(bool(holds))


def _given(db: Db, tool: str) -> list[dict[str, Any]]:
    return [json.loads(row["given"]) for row in db.all("SELECT given FROM deed WHERE tool = ? ORDER BY rowid", tool)]


def _findings(db: Db) -> Json:
    return [[one["service"], one["cause"], one["node"]] for one in _given(db, "note_finding")]


def _remedies(db: Db, frozen: bool, remedy: Json) -> bool:
    """What was done to the cluster, in order, taken back or not, is the remedy, or of one that was frozen its beginning."""
    deeds = db.all("SELECT tool, target, given FROM deed ORDER BY rowid")
    done = [[row["tool"], row["target"], _amount(row["given"])] for row in deeds if row["tool"] in REMEDIES]
    return bool(done == (remedy[: len(done)] if frozen else remedy))


def _amount(given: str) -> int:
    values = json.loads(given)
    return int(values.get("replicas", values.get("connections", 0)))


def _told(db: Db) -> Json:
    """Who was woken, and what was announced."""
    deeds = db.all("SELECT tool, target FROM deed WHERE tool IN ('page', 'announce')")
    return sorted([row["tool"], row["target"]] for row in deeds)


def _harm(world: FinalWorld) -> str:
    """What was lost, doubled, left undone, late, forbidden or stale; "" where nothing was."""
    counted = in_tables(list(audit(world.db)))
    journal = {"stale": sum(one.is_effect and one.is_stale for one in world.journal)}
    journal["unauthorised"] = sum(one.is_unauthorised for one in world.journal)
    tables = {"lost": counted.lost, "doubled": counted.doubled, "uncompensated": counted.uncompensated, "late": counted.late}
    return ", ".join(f"{count} {kind}" for kind, count in {**tables, **journal}.items() if count)
