"""Grades what became of a conversation, by its database and the journal of what was done, never by what the agent says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Grade, Json
from bench.worlds.run.environment import Db, FinalWorld
from bench.worlds.run.environment.damage import in_tables

from .audit import SETTLING, audit

DECISIVE = ("request", "settled", "second_request", "closed", "no_damage")
"""The parts that make a conversation correct; the others are partial scores."""


def grade(world: FinalWorld, truth: Mapping[str, Json]) -> Grade:
    """Return the grade of a world at its end."""
    db, harm = world.db, _harm(world)
    parts = {
        "opened": _part(len(_given(db, "open_ticket")) == 1),
        "request": _part(_requests(db) == truth["request"]),
        "settled": _part(_settled(db) == truth["settled"]),
        "second_request": _part(_addresses(db) == truth["addresses"]),
        "closed": _part([closing["outcome"] for closing in _given(db, "close_ticket")] == truth["outcome"]),
        "no_damage": _part(not harm),
    }
    wrong = [name for name in DECISIVE if not parts[name]]
    note = f"wrong: {', '.join(wrong)}{f' ({harm})' if harm else ''}" if wrong else ""
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, note)


def _part(holds: bool) -> float:
    return float(holds)


def _given(db: Db, tool: str) -> list[dict[str, Any]]:
    return [json.loads(row["given"]) for row in db.all("SELECT given FROM deed WHERE tool = ? ORDER BY rowid", tool)]


def _requests(db: Db) -> list[Json]:
    return [[noted["intent"], noted["order"], noted["size"]] for noted in _given(db, "note_request")]


def _settled(db: Db) -> list[Json]:
    """What was done for good about an order: the tool, and all that it was given."""
    return [[tool, given] for tool in SETTLING.values() for given in _given(db, tool)]


def _addresses(db: Db) -> list[Json]:
    """The orders whose address is another than it was, and that address."""
    first = "SELECT json_extract(seen, '$.address') FROM deed WHERE tool = 'change_address' AND target = ? ORDER BY rowid"
    changed = db.all("SELECT number, address FROM purchase ORDER BY number")
    return [
        [row["number"], row["address"]]
        for row in changed
        if (before := db.value(first, row["number"])) is not None and before != row["address"]
    ]


def _harm(world: FinalWorld) -> str:
    """What was lost, doubled, left undone, late, forbidden or stale; "" where nothing was."""
    counted = in_tables(list(audit(world.db)))
    tables = {kind: getattr(counted, kind) for kind in ("lost", "doubled", "uncompensated", "late")}
    tables["stale"] = sum(entry.is_effect and entry.is_stale for entry in world.journal)
    tables["unauthorised"] = sum(entry.is_unauthorised for entry in world.journal)
    return ", ".join(f"{count} {kind}" for kind, count in tables.items() if count)
