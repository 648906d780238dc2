"""The policy's verdict on each effect, for a call that is not made yet and for a row in a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Db, Moment, Policy, PolicyVerdict

from .limits import CLOSE, EXPIRY, LONGEST, NOTED_FROM, OUTREACH, VERSION, limit_of
from .reading import price_of_closing
from .writing import standing_offer

Terms = Mapping[str, Any]
"""What was offered or accepted: product, discount, term, and of a closing its outcome and merger."""
ALLOWED = PolicyVerdict()
EARLY = PolicyVerdict("deny", "too early")


def decide(db: Db, tool: str, arguments: Any, now: Moment) -> PolicyVerdict:
    """Return the policy's verdict on a call that is not made yet."""
    terms: dict[str, Any] = arguments.model_dump()
    terms["term"] = terms.get("term_months", 0)
    if tool in ("publish_offer", "send_outreach"):
        offer = standing_offer(db, terms["product"])
        if offer is None:
            return ALLOWED  # the tool refuses
        terms = dict(offer)
    if tool == "open_renewal" and db.value("SELECT 1 FROM renewal"):
        return PolicyVerdict("deny", "open already", "this renewal is open")
    return on(db, tool, terms, now.total)


def on(db: Db, tool: str, terms: Terms, at: int) -> PolicyVerdict:
    """Return the policy's verdict on an effect at a minute. Undo calls, and tools without a rule, are always allowed."""
    match tool:
        case "draft_offer":
            return _terms(db, terms, at)
        case "publish_offer" | "send_outreach":
            return EARLY if at < OUTREACH.total else _terms(db, terms, at)
        case "accept":
            return _accept(db, terms, at)
        case "close":
            return EARLY if at < CLOSE.total else ALLOWED
        case "expire":
            return EARLY if at < EXPIRY.total else ALLOWED
        case "invoice":
            due = price_of_closing(db)
            said = f"the price is {due}"
            return ALLOWED if due in (None, terms["amount"]) else PolicyVerdict("deny", "price", said)
    return ALLOWED


def _terms(db: Db, terms: Terms, at: int) -> PolicyVerdict:
    limit, discount = limit_of(db.value("SELECT name FROM customer")), terms["discount"]
    retired = db.value("SELECT retired_at FROM product WHERE name = ?", terms["product"])
    if retired is not None and retired <= at:
        return PolicyVerdict("deny", "end of life", f"{terms['product']} is no longer sold")
    if discount > limit:
        return PolicyVerdict("deny", "discount", f"{discount}% is more than {limit}%")
    return PolicyVerdict("warn", "discount", f"from {NOTED_FROM}% on it is noted") if discount >= NOTED_FROM else ALLOWED


def _accept(db: Db, terms: Terms, at: int) -> PolicyVerdict:
    """Return the verdict on an acceptance: not before its day, not without the customer's consent, and in some cases not
    without a person's."""
    if at < CLOSE.total:
        return EARLY
    said = db.value("SELECT meaning FROM reply WHERE at <= ? ORDER BY rowid DESC LIMIT 1", at) or "silent"
    if said in ("silent", "leaves"):
        return PolicyVerdict("deny", "no agreement", "the customer has not agreed")
    approved = db.value("SELECT approved FROM review WHERE at <= ? ORDER BY rowid DESC LIMIT 1", at)
    for rule, applies in {
        "merger": terms["merger"] or said == "merges",
        "long term": terms["term"] > LONGEST,
        "discount over policy": said == "haggles",
    }.items():
        if applies and not approved:
            return PolicyVerdict("person", rule, "only with a manager's approval")
    return _terms(db, terms, at)


POLICY = Policy(VERSION, decide)
