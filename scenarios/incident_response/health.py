"""How the cluster is, and what makes it better or worse. Nothing is run: an action is followed in this small model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Db, Moment


def state(db: Db, now: Moment) -> str:
    """One of `tables.STATES`."""
    behind = db.row("SELECT * FROM behind")
    assert behind is not None, "each incident has one"
    if behind["cause"] == "noise" and not behind["worse"]:
        return "healthy"
    if behind["worse"] or behind["cured_at"] is None:
        return "escalated" if behind["escalated"] else "failing"
    return "settling" if now.total < behind["cured_at"] + behind["settles"] else "healthy"


def cure(db: Db, now: Moment) -> None:
    db.write("UPDATE behind SET cured_at = ? WHERE cured_at IS NULL", now.total)


def relapse(db: Db) -> None:
    """What had repaired it was taken back."""
    db.write("UPDATE behind SET cured_at = NULL")


def worsen(db: Db) -> None:
    """Something was done that nobody can take back."""
    db.write("UPDATE behind SET worse = 1")


def is_remedy(db: Db, tool: str, target: str) -> bool:
    return db.value("SELECT 1 FROM behind WHERE tool = ? AND target = ?", tool, target) is not None


def is_enough(db: Db, amount: int) -> bool:
    return bool(amount >= db.value("SELECT least FROM behind"))


def harms(tool: str, seen: Mapping[str, Any]) -> bool:
    """Whether doing this, as things stand, breaks something that was whole."""
    match tool:
        case "restart":
            return bool(seen["migration_running"])
        case "roll_back":
            return bool(seen["withdrawn"])
        case "drain":
            return bool(seen["left"] < seen["needed"])
        case "reboot":
            return not seen["drained"]
    return False
