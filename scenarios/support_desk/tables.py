"""The tables of a conversation's world, and the rows that it begins with. No tool shows `behind` and `transition`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from .customer import second_request, transitions
from .limits import CLOSING_DUE
from .story import Case

SCHEMA = """
CREATE TABLE account (name TEXT NOT NULL, address TEXT NOT NULL);
CREATE TABLE ticket (id TEXT NOT NULL, closing_due INTEGER NOT NULL);
CREATE TABLE purchase (
  number TEXT NOT NULL, item TEXT NOT NULL, size TEXT NOT NULL, price INTEGER NOT NULL, state TEXT NOT NULL,
  days INTEGER NOT NULL, final_sale INTEGER NOT NULL, address TEXT NOT NULL);
CREATE TABLE stock (item TEXT NOT NULL, size TEXT NOT NULL, remaining INTEGER NOT NULL);
CREATE TABLE line (who TEXT NOT NULL, text TEXT NOT NULL, meaning TEXT NOT NULL);
CREATE TABLE aside (text TEXT NOT NULL);
CREATE TABLE behind (
  state INTEGER NOT NULL, number TEXT NOT NULL, action TEXT NOT NULL, amount INTEGER NOT NULL, size TEXT NOT NULL,
  agrees INTEGER NOT NULL, sound INTEGER NOT NULL, aside TEXT NOT NULL, aside_order TEXT NOT NULL, moves_to TEXT NOT NULL);
CREATE TABLE transition (
  state INTEGER NOT NULL, heard TEXT NOT NULL, text TEXT NOT NULL, meaning TEXT NOT NULL, minutes INTEGER NOT NULL);
CREATE TABLE deed (
  tool TEXT NOT NULL, target TEXT NOT NULL, given TEXT NOT NULL, seen TEXT NOT NULL, standing INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL);
CREATE TABLE review (target TEXT NOT NULL, approved INTEGER NOT NULL, at INTEGER NOT NULL);
"""
Rows = Sequence[Mapping[str, Any]]


def rows(case: Case) -> dict[str, Rows]:
    """Return the rows of each table that has some in the beginning."""
    stocked = [(order.item, order.size, 3) for order in case.orders]
    stocked += [(case.about.item, case.size, case.left)] if case.wants == "exchange" else []
    return {
        "account": [{"name": case.name, "address": case.address}],
        "ticket": [{"id": case.ticket, "closing_due": case.moment(CLOSING_DUE).total}],
        "purchase": [_purchase(asdict(order)) for order in sorted(case.orders, key=lambda order: order.order)],
        "stock": [{"item": item, "size": size, "remaining": left} for item, size, left in stocked],
        "behind": [_behind(case)],
        "transition": transitions(case),
    }


def _purchase(order: dict[str, Any]) -> Mapping[str, Any]:
    return {"number": order.pop("order"), **order, "final_sale": int(order["final_sale"])}


def _behind(case: Case) -> Mapping[str, Any]:
    return {
        "state": 1,
        "number": case.about.order,
        "action": case.action,
        "amount": case.amount,
        "size": case.size if case.action == "exchange" else "none",
        "agrees": int(case.agrees),
        "sound": int(case.sound),
        "aside": second_request(case) if case.aside else "",
        "aside_order": case.orders[1].order if case.aside_is_due else "",
        "moves_to": case.moves_to,
    }
