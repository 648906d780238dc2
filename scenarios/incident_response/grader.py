"""Grades what became of an incident: its database, and the journal of what was done. What the agent says is nowhere in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.scenario import Grade, Json
from bench.worlds.run.environment import Db, FinalWorld
from bench.worlds.run.environment.damage import in_tables

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
        "severity": _part(_is(_severities(db), [truth["severity"]], frozen)),
        "finding": _part(_is(_findings(db), truth["finding"], frozen)),
        "remedy": _part(_is(_remedies(db), truth["remedy"], frozen)),
        "told": _part(_is(_told(db), truth["told"], frozen)),
        "closed": _part([[one["outcome"], one["postmortem"]] for one in _given(db, "close_incident")] == truth["closing"]),
        "healthy": _part(frozen or state(db, world.now) == truth["state"]),
        "no_damage": _part(not harm),
    }
    wrong = [name for name in DECISIVE if not parts[name]]
    said = f"wrong: {', '.join(wrong)}{f' ({harm})' if harm else ''}" if wrong else ""
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, said)


def _part(holds: Any) -> float:
    return float(bool(holds))


def _is(done: Sequence[Json], right: Sequence[Json], frozen: bool) -> bool:
    """Whether it is what was right, each once; of an incident that was frozen, some of it."""
    left = list(right)
    for one in done:
        if one not in left:
            return False
        left.remove(one)
    return frozen or not left


def _given(db: Db, tool: str) -> list[dict[str, Any]]:
    return [json.loads(row["given"]) for row in db.all("SELECT given FROM deed WHERE tool = ? ORDER BY rowid", tool)]


def _severities(db: Db) -> list[Json]:
    return [one["severity"] for one in _given(db, "set_severity")]


def _findings(db: Db) -> list[Json]:
    return [[one["service"], one["cause"], one["node"]] for one in _given(db, "note_finding")]


def _remedies(db: Db) -> list[Json]:
    """What was done to the cluster, taken back or not. That a node is drained before it is started anew is the policy's."""
    deeds = db.all("SELECT tool, target, given FROM deed")
    return [[row["tool"], row["target"], _amount(row["given"])] for row in deeds if row["tool"] in REMEDIES]


def _amount(given: str) -> int:
    values = json.loads(given)
    return int(values.get("replicas", values.get("connections", 0)))


def _told(db: Db) -> list[Json]:
    """Who was woken, and what was announced."""
    return [[row["tool"], row["target"]] for row in db.all("SELECT tool, target FROM deed WHERE tool IN ('page', 'announce')")]


def _harm(world: FinalWorld) -> str:
    """What was lost, doubled, left undone, late, forbidden or stale; "" where nothing was."""
    counted = in_tables(list(audit(world.db)))
    journal = {"stale": sum(one.is_effect and one.is_stale for one in world.journal)}
    journal["unauthorised"] = sum(one.is_unauthorised for one in world.journal)
    tables = {"lost": counted.lost, "doubled": counted.doubled, "uncompensated": counted.uncompensated, "late": counted.late}
    return ", ".join(f"{count} {kind}" for kind, count in {**tables, **journal}.items() if count)
