"""What the tables say of each effect at the end: how often it stands, whether it ought to, and what of it broke the policy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from bench.worlds.run.environment import Db, Standing

from .policy import UNDOES, key_of, on

SETTLING = {"refund": "refund", "exchange": "ship", "cancel": "cancel_order"}
"""What the customer is to have -> the tool that does it for good."""


def audit(db: Db) -> Iterable[Standing]:
    """What is owed follows from the story and the lead's word: a refund that was refused is not owed."""
    deeds, due = db.all("SELECT * FROM deed ORDER BY rowid"), db.value("SELECT closing_due FROM ticket")
    for tool, target, ought in _effects(db):
        rows = [row for row in deeds if (row["tool"], row["target"]) == (tool, target)]
        against = [not on(tool, json.loads(row["given"]), json.loads(row["seen"])).allows for row in rows]
        late = sum(tool == "close_ticket" and row["at"] > due for row in rows)
        times = sum(row["standing"] for row in rows)
        yield Standing(key_of(tool, target), times, ought, tool in UNDOES, unauthorised=sum(against), late=late)


def _effects(db: Db) -> Iterator[tuple[str, str, bool | None]]:
    """Tool, target, and whether it ought to stand, of all that can be done."""
    behind, ticket = db.row("SELECT * FROM behind"), db.value("SELECT id FROM ticket")
    assert behind is not None, "each conversation has one"
    for tool in ("open_ticket", "note_request", "close_ticket"):
        yield tool, ticket, True
    for turn in ("1", "2"):
        yield "reply", turn, True
    refused = db.value("SELECT 1 FROM review WHERE NOT approved AND target = ?", behind["number"]) is not None
    takes = bool(behind["agrees"]) and not refused
    for number in (row["number"] for row in db.all("SELECT number FROM purchase")):
        wanted = takes and number == behind["number"]
        for action, tool in SETTLING.items():
            yield tool, number, True if wanted and behind["action"] == action else None
        yield "reserve", number, wanted and behind["action"] == "exchange"
        yield "change_address", number, number == behind["aside_order"]
