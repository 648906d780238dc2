"""The tools that change the world. They refuse little: the policy says what is allowed, and an agent that ignores the policy
does harm."""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Row
from typing import Any

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .forms import Accept, Close, Closing, Customer, Done, Draft, Invoice, Note, OfProduct, Score
from .limits import CLOSING_DUE, OUTREACH_DUE
from .reading import offer_to, price_of_closing, reply_of, require

DONE = Done()


def _open_renewal(db: Db, arguments: Customer, now: Moment) -> Done:
    require(db, arguments.customer)
    db.write("INSERT INTO renewal VALUES (?)", now.total)
    return DONE


def _note_crm(db: Db, arguments: Note, now: Moment) -> Done:
    require(db, arguments.customer)
    db.write("INSERT INTO note (text, at) VALUES (?, ?)", arguments.text, now.total)
    return DONE


def _remove_note(db: Db, arguments: Customer, _: Moment) -> Done:
    require(db, arguments.customer)
    if not db.write("UPDATE note SET standing = 0 WHERE rowid = (SELECT max(rowid) FROM note WHERE standing)"):
        raise ToolRefused("no note stands")
    return DONE


def _score_churn(db: Db, arguments: Score, now: Moment) -> Done:
    require(db, arguments.customer)
    db.write("INSERT INTO score VALUES (?, ?)", arguments.risk, now.total)
    return DONE


def _draft_offer(db: Db, arguments: Draft, now: Moment) -> Done:
    require(db, arguments.customer)
    if db.value("SELECT 1 FROM product WHERE name = ?", arguments.product) is None:
        raise ToolRefused(f"there is no product {arguments.product}")
    values = (arguments.product, arguments.discount, arguments.term_months, now.total)
    db.write("INSERT INTO offer (product, discount, term, at) VALUES (?, ?, ?, ?)", *values)
    return DONE


def standing_offer(db: Db, product: str) -> Row | None:
    return db.row("SELECT * FROM offer WHERE standing AND product = ? ORDER BY rowid DESC LIMIT 1", product)


def _withdraw_offer(db: Db, arguments: OfProduct, _: Moment) -> Done:
    require(db, arguments.customer)
    if db.value("SELECT 1 FROM publication WHERE product = ?", arguments.product):
        raise ToolRefused(f"the offer of {arguments.product} is published and cannot be withdrawn")
    last = "SELECT max(rowid) FROM offer WHERE standing AND product = ?"
    if not db.write(f"UPDATE offer SET standing = 0 WHERE rowid = ({last})", arguments.product):
        raise ToolRefused(f"no offer of {arguments.product} stands")
    return DONE


def _to_standing(table: str, db: Db, arguments: OfProduct, now: Moment) -> Row:
    """Write the terms of the current offer into a table of sent items."""
    require(db, arguments.customer)
    offer = standing_offer(db, arguments.product)
    if offer is None:
        raise ToolRefused(f"no offer of {arguments.product} stands")
    db.write(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", offer["product"], offer["discount"], offer["term"], now.total)
    return offer


def _publish_offer(db: Db, arguments: OfProduct, now: Moment) -> Done:
    _to_standing("publication", db, arguments, now)
    return DONE


def _send_outreach(db: Db, arguments: OfProduct, now: Moment) -> Done:
    """Send the offer. The customer answers some days later, or never."""
    offer = _to_standing("outreach", db, arguments, now)
    behind = db.row("SELECT * FROM behind")
    assert behind is not None, "each customer has one"
    enough = offer["discount"] >= behind["settles_for"] or behind["meaning"] == "leaves"
    meaning, text = (behind["meaning"], behind["text"]) if enough else ("haggles", behind["haggling"])
    if behind["meaning"] != "silent":
        payload = {"customer": arguments.customer, "meaning": meaning, "text": text}
        db.later("reply", now.after(days=behind["reply_after"]), payload, f"reply of {arguments.customer}")
    return DONE


def _accept(db: Db, arguments: Accept, now: Moment) -> Closing:
    require(db, arguments.customer)
    values = (arguments.product, arguments.discount, arguments.term_months)
    if db.value("SELECT 1 FROM publication WHERE (product, discount, term) = (?, ?, ?)", *values) is None:
        raise ToolRefused("no offer of these terms was published")
    same = db.value("SELECT product FROM customer") == arguments.product
    outcome = "renewed" if same and not arguments.merger else "restructured"
    return _closed(db, outcome, now, *values, arguments.merger)


def _close(db: Db, arguments: Close, now: Moment) -> Closing:
    require(db, arguments.customer)
    return _closed(db, arguments.outcome, now)


def _expire(db: Db, arguments: Customer, now: Moment) -> Closing:
    require(db, arguments.customer)
    return _closed(db, "expired", now)


def _closed(
    db: Db, outcome: str, now: Moment, product: str = "", discount: int = 0, term: int = 0, merger: bool = False
) -> Closing:
    db.write("INSERT INTO closing VALUES (?, ?, ?, ?, ?, ?)", outcome, product, discount, term, int(merger), now.total)
    return Closing.model_validate({"outcome": outcome})


def _invoice(db: Db, arguments: Invoice, now: Moment) -> Done:
    require(db, arguments.customer)
    if price_of_closing(db) is None:
        raise ToolRefused("nothing is accepted that could be invoiced")
    db.write("INSERT INTO invoice VALUES (?, ?)", arguments.amount, now.total)
    return DONE


def _key(words: str) -> Callable[[Any], str]:
    """Return the function that makes a business key from fields of the arguments."""
    return lambda arguments: words.format(**arguments.model_dump())


def _by(moment: Moment) -> Callable[[Db, Any], Moment]:
    return lambda _, __: moment


def _both(arguments: Any) -> tuple[str, ...]:
    return (*offer_to(arguments), *reply_of(arguments))


OFFER, CLOSING = _key("offer of {product} to {customer}"), _key("closing of {customer}")

WRITING = (
    Tool("open_renewal", "final", Customer, Done, _open_renewal, _key("renewal of {customer}")),
    Tool("note_crm", "compensable", Note, Done, _note_crm, _key("note on {customer}"), "remove_note", lambda one, _: _who(one)),
    Tool("remove_note", "final", Customer, Done, _remove_note, _key("note on {customer}")),
    Tool("score_churn", "final", Score, Done, _score_churn, _key("score of {customer}"), about=offer_to),
    Tool("draft_offer", "compensable", Draft, Done, _draft_offer, OFFER, "withdraw_offer", lambda one, _: _what(one), offer_to),
    Tool("withdraw_offer", "final", OfProduct, Done, _withdraw_offer, OFFER, about=offer_to),
    Tool(
        "publish_offer",
        "final",
        OfProduct,
        Done,
        _publish_offer,
        _key("publication of {product} to {customer}"),
        about=offer_to,
        due=_by(OUTREACH_DUE),
    ),
    Tool(
        "send_outreach",
        "final",
        OfProduct,
        Done,
        _send_outreach,
        _key("outreach to {customer}"),
        about=offer_to,
        due=_by(OUTREACH_DUE),
    ),
    Tool("accept", "final", Accept, Closing, _accept, CLOSING, about=_both, due=_by(CLOSING_DUE)),
    Tool("close", "final", Close, Closing, _close, CLOSING, about=_both, due=_by(CLOSING_DUE)),
    Tool("expire", "final", Customer, Closing, _expire, CLOSING, about=_both, due=_by(CLOSING_DUE)),
    Tool("invoice", "final", Invoice, Done, _invoice, _key("invoice to {customer}"), due=_by(CLOSING_DUE)),
)


def _who(arguments: Any) -> dict[str, str]:
    return {"customer": arguments.customer}


def _what(arguments: Any) -> dict[str, str]:
    return {"customer": arguments.customer, "product": arguments.product}
