"""Tools that change the world. They refuse little: what is allowed is the policy's word, and whoever ignores it does harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .customer import hear
from .forms import Closing, Done, NewAddress, OfOrder, OfTicket, Refund, Reply, Request, Shipment, Sized
from .policy import UNDOES, field_of, keyed, seen_now
from .reading import of, require

DONE = Done()
Run = Callable[[Db, Any, Moment], Done]
Then = Callable[[Db, dict[str, Any], Moment], None]
WORDS = {
    "which_order": "Which order is it about?",
    "confirm": "Thank you. Did we understand you rightly?",
    "refund": "We would return {amount} to you. Shall we?",
    "exchange": "We would send you size {size} in exchange. Shall we?",
    "cancel": "We would cancel the order. Shall we?",
    "refuse": "I am sorry, our terms do not allow it.",
}


def _written(tool: str, then: Then | None = None) -> Run:
    """Make a tool that writes its deed, with what was so when it was made, and then does what it does."""

    def run(db: Db, arguments: BaseModel, now: Moment) -> Done:
        given = arguments.model_dump()
        require(db, given)
        values = (tool, str(given[field_of(tool)]), json.dumps(given), json.dumps(_seen(db, tool, given)), now.total)
        if then:
            then(db, given, now)
        db.write("INSERT INTO deed (tool, target, given, seen, at) VALUES (?, ?, ?, ?, ?)", *values)
        return DONE

    return run


def _seen(db: Db, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the policy sees, and what an undo has to restore."""
    before = db.value("SELECT address FROM purchase WHERE number = ?", given.get("order"))
    return {**seen_now(db, tool, given), "address": before}


def _reply(db: Db, given: dict[str, Any], now: Moment) -> None:
    db.write("INSERT INTO line VALUES ('desk', ?, '')", WORDS[given["says"]].format(**given))
    hear(db, given, now)


CHANGE_STOCK = (
    "UPDATE stock SET remaining = remaining + ? WHERE (item, size) = ((SELECT item FROM purchase WHERE number = ?), ?) "
    "AND remaining + ? >= 0"
)


def _reserve(db: Db, given: dict[str, Any], _: Moment) -> None:
    if not db.write(CHANGE_STOCK, -1, given["order"], given["size"], -1):
        raise ToolRefused(f"none of size {given['size']} is left")


def _readdress(db: Db, given: dict[str, Any], _: Moment) -> None:
    db.write("UPDATE purchase SET address = ? WHERE number = ?", given["address"], given["order"])


def _taken_back(tool: str, restore: Callable[[Db, dict[str, Any], dict[str, Any]], None]) -> Run:
    """Make a tool that takes back the last deed of another that stands."""

    def run(db: Db, arguments: Any, _: Moment) -> Done:
        sql = "SELECT rowid, given, seen FROM deed WHERE standing AND tool = ? AND target = ? ORDER BY rowid DESC"
        last = db.row(sql, tool, arguments.order)
        if last is None:
            raise ToolRefused(f"no {tool} of {arguments.order} stands")
        db.write("UPDATE deed SET standing = 0 WHERE rowid = ?", last["rowid"])
        restore(db, json.loads(last["given"]), json.loads(last["seen"]))
        return DONE

    return run


def _release(db: Db, given: dict[str, Any], _: dict[str, Any]) -> None:
    db.write(CHANGE_STOCK, 1, given["order"], given["size"], 1)


def _restore(db: Db, given: dict[str, Any], seen: dict[str, Any]) -> None:
    db.write("UPDATE purchase SET address = ? WHERE number = ?", seen["address"], given["order"])


def _due(db: Db, _: Any) -> Moment:
    return Moment.of(db.value("SELECT closing_due FROM ticket"))


def _final(name: str, arguments: type[BaseModel], about: Any, then: Then | None = None, due: Any = None) -> Tool:
    return Tool(name, "final", arguments, Done, _written(name, then), keyed(name), about=about, due=due)


def _compensable(name: str, arguments: type[BaseModel], about: Any, then: Then, back: Callable[..., None]) -> tuple[Tool, Tool]:
    """Make a tool and its undo."""

    def whose(given: Any, _: Any) -> dict[str, str]:
        return {"order": given.order}

    undo = UNDOES[name]
    return (
        Tool(name, "compensable", arguments, Done, _written(name, then), keyed(name), undo, whose, about),
        Tool(undo, "final", OfOrder, Done, _taken_back(name, back), keyed(name), about=about),
    )


TALK, RECORD = of("conversation", "ticket"), of("orders", "conversation", "ticket")
WRITING = (
    _final("open_ticket", OfTicket, of("ticket")),
    _final("note_request", Request, TALK),
    _final("reply", Reply, TALK, _reply),
    *_compensable("reserve", Sized, of("stock", "ticket"), _reserve, _release),
    _final("refund", Refund, RECORD),
    _final("ship", Shipment, of("account", "orders", "conversation", "ticket")),
    _final("cancel_order", OfOrder, RECORD),
    *_compensable("change_address", NewAddress, of("aside", "orders", "ticket"), _readdress, _restore),
    _final("close_ticket", Closing, TALK, due=_due),
)
