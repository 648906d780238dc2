"""The world of a payment run: its tables, its tools, the policy, and the audit of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, EventKind, Moment, Policy, PolicyVerdict, Scheduled, Standing, Tool

from .story import InvoiceCase, account_of

SCHEMA = """
CREATE TABLE invoice (
  number INTEGER PRIMARY KEY, supplier TEXT NOT NULL, country TEXT NOT NULL, gross INTEGER NOT NULL, credit INTEGER NOT NULL);
CREATE TABLE payment (
  number INTEGER NOT NULL, amount INTEGER NOT NULL, account TEXT NOT NULL, standing INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL);
"""
Account = Literal["domestic", "foreign"]
BEGINS, ENDS = Moment(0), Moment(5)
MINUTES = 5
"""Of world time that a payment takes."""


class OfInvoice(BaseModel):
    number: int


class Invoice(BaseModel):
    supplier: str
    country: str
    gross: int
    credit: int


class Payment(OfInvoice):
    amount: int = Field(ge=0)
    account: Account


class Done(BaseModel):
    done: bool = True


def rows(invoices: Sequence[InvoiceCase]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    return {"invoice": [vars(invoice) for invoice in invoices]}


def events(invoices: Sequence[InvoiceCase]) -> tuple[Scheduled, ...]:
    return (Scheduled("run opens", "run_opened", Moment(0, 480), {"invoices": len(invoices)}),)


def _read(db: Db, arguments: OfInvoice, _: Moment) -> Invoice:
    row = db.row("SELECT supplier, country, gross, credit FROM invoice WHERE number = ?", arguments.number)
    if row is None:
        raise ToolRefused(f"there is no invoice {arguments.number}")
    return Invoice(**dict(row))


def _pay(db: Db, arguments: Payment, now: Moment) -> Done:
    _read(db, arguments, now)
    terms = (arguments.number, arguments.amount, arguments.account)
    db.write("INSERT INTO payment (number, amount, account, at) VALUES (?, ?, ?, ?)", *terms, now.total)
    return Done()


def _recall(db: Db, arguments: Payment, _: Moment) -> Done:
    terms = (arguments.number, arguments.amount, arguments.account)
    last = "SELECT max(rowid) FROM payment WHERE standing AND (number, amount, account) = (?, ?, ?)"
    if not db.write(f"UPDATE payment SET standing = 0 WHERE rowid = ({last})", *terms):
        raise ToolRefused("no such payment stands")
    return Done()


def _effect(payment: Payment) -> str:
    return effect_of(payment.number, payment.amount, payment.account)


def effect_of(number: int, amount: int, account: str) -> str:
    """Return the business key of a payment: another amount is another effect."""
    return f"{amount} from {account} for invoice {number}"


def _about(arguments: OfInvoice) -> tuple[str, ...]:
    return (f"invoice {arguments.number}",)


TOOLS = (
    Tool("read_invoice", "read", OfInvoice, Invoice, _read, about=_about, description="What an invoice says."),
    Tool(
        "pay",
        "compensable",
        Payment,
        Done,
        _pay,
        _effect,
        undo="recall",
        about=_about,
        minutes=MINUTES,
        description="Pay an invoice.",
    ),
    Tool("recall", "final", Payment, Done, _recall, _effect, about=_about, description="Call a payment back."),
)
KINDS = (EventKind("run_opened"),)


def _decide(db: Db, tool: str, arguments: Any, _: Moment) -> PolicyVerdict:
    return _verdict(db, arguments.number, arguments.amount, arguments.account) if tool == "pay" else PolicyVerdict()


def _verdict(db: Db, number: int, amount: int, account: str) -> PolicyVerdict:
    row = db.row("SELECT gross, country FROM invoice WHERE number = ?", number)
    if row is None:
        return PolicyVerdict()  # the tool refuses
    if amount > row["gross"]:
        return PolicyVerdict("deny", "amount", f"{amount} is more than was invoiced")
    right = account_of(row["country"])
    return PolicyVerdict() if account == right else PolicyVerdict("deny", "account", f"it is paid from {right}")


POLICY = Policy("payments-2026-1", _decide)


def audit(db: Db) -> Iterable[Standing]:
    """Yield each payment with the number of times that it exists and should exist: each invoice once, in its amount and from
    its account. No other payment should exist."""
    found = db.all("SELECT number, amount, account, sum(standing) AS times, count(*) AS made FROM payment GROUP BY 1, 2, 3")
    paid = {(row["number"], row["amount"], row["account"]): row for row in found}
    invoices = db.all("SELECT * FROM invoice ORDER BY number")
    owed = [(row["number"], row["gross"] - row["credit"], account_of(row["country"])) for row in invoices]
    for terms in dict.fromkeys([*owed, *paid]):
        made = paid[terms]["made"] if terms in paid else 0
        against = 0 if _verdict(db, *terms).allows else made
        times = paid[terms]["times"] if terms in paid else 0
        yield Standing(effect_of(*terms), times, terms in owed, compensable=True, unauthorised=against, late=0)
