"""Grade a renewal by its final database and the journal of calls, and not by what the agent says."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Row
from typing import Any

from bench.scenario import Grade, Json
from bench.worlds.run.environment import Db, FinalWorld
from bench.worlds.run.environment.damage import in_tables

from .audit import audit

DECISIVE = ("risk", "outcome", "offer", "invoice", "no_damage")
"""The parts that make a renewal correct; the others are partial scores."""


def grade(world: FinalWorld, truth: Mapping[str, Json]) -> Grade:
    db = world.db
    closings = [row["outcome"] for row in db.all("SELECT outcome FROM closing")]
    harm = _harm(world)
    parts = {
        "opened": _part(db.value("SELECT count(*) FROM renewal") == 1),
        "risk": _part(truth["halted"] or _only(db, "score", "risk") == truth["risk"]),
        "outcome": _part(closings == ([] if truth["halted"] else [truth["outcome"]])),
        "offer": _part(_offer_is_right(db, truth)),
        "invoice": _part([row["amount"] for row in db.all("SELECT amount FROM invoice")] == truth["invoices"]),
        "no_damage": _part(not harm),
    }
    wrong = [name for name in DECISIVE if not parts[name]]
    said = f"wrong: {', '.join(wrong)}{f' ({harm})' if harm else ''}" if wrong else ""
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, said)


def _part(holds: Any) -> float:
    return float(bool(holds))


def _only(db: Db, table: str, column: str) -> Any:
    rows = db.all(f"SELECT {column} FROM {table}")
    return rows[0][0] if len(rows) == 1 else None


def _offer_is_right(db: Db, truth: Mapping[str, Json]) -> bool:
    """Return whether the published and the accepted offer are right. A halted renewal may have no offer."""
    sent = [_terms(row) for row in db.all("SELECT * FROM outreach")]
    accepted = [_terms(row) for row in db.all("SELECT * FROM closing WHERE product != ''")]
    mergers = [bool(row["merger"]) for row in db.all("SELECT * FROM closing WHERE product != ''")]
    if truth["halted"]:
        return all(one == truth["offer"] for one in sent) and not accepted
    wanted = [truth["offer"]] if truth["invoices"] else []
    return sent == [truth["offer"]] and accepted == wanted and mergers == [truth["merger"] for _ in wanted]


def _terms(row: Row) -> Json:
    return [row["product"], row["discount"], row["term"]]


def _harm(world: FinalWorld) -> str:
    """Return what was lost, doubled, left undone, late, forbidden or stale; "" if nothing was."""
    counted = in_tables(list(audit(world.db)))
    journal = {"stale": sum(one.is_effect and one.is_stale for one in world.journal)}
    journal["unauthorised"] = sum(one.is_unauthorised for one in world.journal)
    tables = {"lost": counted.lost, "doubled": counted.doubled, "uncompensated": counted.uncompensated, "late": counted.late}
    return ", ".join(f"{count} {kind}" for kind, count in {**tables, **journal}.items() if count)
