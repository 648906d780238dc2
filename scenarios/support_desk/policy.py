"""The policy's word on each effect: what the gate says of a call, and what an audit says of a deed in the table. Both are
one function of the call and of what was so when it was made (`seen`), which each deed keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.worlds.run.environment import Db, Moment, Policy, PolicyVerdict

from .limits import FREELY, RETURN_DAYS, VERSION

Values = Mapping[str, Any]
ALLOWED = PolicyVerdict()
KEYS: Mapping[str, str] = {
    "open_ticket": "opening of {ticket}",
    "note_request": "request of {ticket}",
    "reply": "reply {turn}",
    "reserve": "reservation for {order}",
    "refund": "refund of {order}",
    "ship": "shipment for {order}",
    "cancel_order": "cancellation of {order}",
    "change_address": "address of {order}",
    "close_ticket": "closing of {ticket}",
}
"""The business key of each effect: two deeds of one key mean the same effect."""
UNDOES: Mapping[str, str] = {"reserve": "release", "change_address": "restore_address"}
"""Tool -> its undo."""


def field_of(tool: str) -> str:
    """Return the argument that says what a tool is done to."""
    return KEYS[tool].partition("{")[2].rstrip("}")


def key_of(tool: str, target: str) -> str:
    """Return the business key of an effect on a target."""
    return KEYS[tool].format(**{field_of(tool): target})


def keyed(tool: str) -> Callable[[Any], str]:
    """Return what makes the business key of a tool's arguments."""
    return lambda arguments: key_of(tool, getattr(arguments, field_of(tool)))


def seen_now(db: Db, tool: str, given: Values) -> dict[str, Any]:
    """Return all that the policy looks at, as it is now."""
    target = str(given[field_of(tool)])
    seen: dict[str, Any] = {
        "before": db.value("SELECT count(*) FROM deed WHERE tool = ? AND target = ? AND standing", tool, target),
        "replies": db.value("SELECT count(DISTINCT target) FROM deed WHERE tool = 'reply'"),
        "meaning": db.value("SELECT meaning FROM line WHERE who = 'customer' ORDER BY rowid DESC LIMIT 1") or "",
        "second": db.value("SELECT count(*) FROM aside"),
    }
    noted = "SELECT target FROM deed WHERE tool = 'reserve' AND standing ORDER BY rowid DESC LIMIT 1"
    seen["reserved"] = db.value(noted) or ""
    asked = "SELECT json_extract(given, '$.order') FROM deed WHERE tool = 'note_request' ORDER BY rowid DESC LIMIT 1"
    order = given.get("order") or db.value(asked)
    row = db.row("SELECT state, days, final_sale, price FROM purchase WHERE number = ?", order)
    approved = db.value("SELECT approved FROM review WHERE target = ? ORDER BY rowid DESC LIMIT 1", order)
    return {**seen, **(dict(row) if row else {}), "approved": approved}


def decide(db: Db, tool: str, arguments: Any, _: Moment) -> PolicyVerdict:
    """Of a call that is still to be made. Undos are always allowed."""
    if tool in UNDOES.values():
        return ALLOWED
    given = arguments.model_dump()
    return on(tool, given, seen_now(db, tool, given))


def on(tool: str, given: Values, seen: Values) -> PolicyVerdict:
    """Of an effect, by what was so when it was made."""
    if seen["before"]:
        return PolicyVerdict("deny", "done already", f"{key_of(tool, given[field_of(tool)])} was done already")
    match tool:
        case "reply":
            return _offer(given, seen) if given["turn"] == 2 else ALLOWED
        case "reserve":
            return _returned(seen)
        case "refund":
            return _refund(given, seen)
        case "ship":
            if seen["reserved"] != given["order"]:
                return PolicyVerdict("deny", "not reserved", "nothing is reserved for it")
            return _returned(seen) if seen["meaning"] == "yes" else _no_consent()
        case "cancel_order":
            return _packing(seen) if seen["meaning"] == "yes" else _no_consent()
        case "change_address":
            return _packing(seen) if seen["second"] else PolicyVerdict("deny", "not asked", "nobody has asked for it")
        case "close_ticket":
            return ALLOWED if seen["replies"] == 2 else PolicyVerdict("deny", "open", "the customer has not had an offer")
    return ALLOWED


def _no_consent() -> PolicyVerdict:
    return PolicyVerdict("deny", "no consent", "the customer has not agreed to it")


def _returned(seen: Values) -> PolicyVerdict:
    if seen.get("state") != "delivered" or seen["days"] > RETURN_DAYS:
        return PolicyVerdict("deny", "terms", f"only what came at most {RETURN_DAYS} days ago goes back")
    return PolicyVerdict("deny", "terms", "what was bought in a final sale stays") if seen["final_sale"] else ALLOWED


def _packing(seen: Values) -> PolicyVerdict:
    return ALLOWED if seen.get("state") == "packing" else PolicyVerdict("deny", "on its way", "it has left the house")


def _offer(given: Values, seen: Values) -> PolicyVerdict:
    """An offer is a promise: what may not be done may not be offered."""
    if given["says"] == "refund":
        verdict = _returned(seen)
        wrong = verdict.allows and given["amount"] != seen["price"]
        return PolicyVerdict("deny", "amount", f"the price is {seen['price']}") if wrong else verdict
    if given["says"] == "exchange":
        return _returned(seen)
    return _packing(seen) if given["says"] == "cancel" else ALLOWED


def _refund(given: Values, seen: Values) -> PolicyVerdict:
    if seen["meaning"] != "yes":
        return _no_consent()
    verdict = _returned(seen)
    if not verdict.allows:
        return verdict
    if given["amount"] != seen["price"]:
        return PolicyVerdict("deny", "amount", f"the price is {seen['price']}")
    if given["amount"] > FREELY and not seen["approved"]:
        return PolicyVerdict("person", "large", "only with the lead's approval")
    return ALLOWED


POLICY = Policy(VERSION, decide)
