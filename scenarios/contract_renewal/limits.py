"""The renewal policy as numbers and moments. `documents/policy.md` says the same in words; a test compares the two."""

from __future__ import annotations

from bench.worlds.run.environment import Moment

VERSION = "renewal-2026-1"
MOST_BY_RISK = {"low": 10, "medium": 20, "high": 30}
"""Percent of discount."""
MOST = 30
NOTED_FROM = 20
"""From this discount on the policy warns, and allows."""
NAMED = {"Northwind Rail": 35, "Halden Ports": 40}
"""Customers whose limit is their own, whatever their risk."""
LONGEST = 36
"""Months. A longer term needs a person."""
TERMS = (12, 24, 36, 48, 60)

BEGINS, ENDS = Moment(-90), Moment(2)
OPENS, OUTREACH, CLOSE, EXPIRY = Moment(-90, 480), Moment(-30, 480), Moment(-7, 480), Moment(0, 480)
END_OF_LIFE = Moment(-47, 600)
OUTREACH_DUE, CLOSING_DUE = OUTREACH.after(days=2), EXPIRY.after(days=1)


def most_for(name: str, risk: str) -> int:
    """Return the highest discount that this customer may be offered."""
    return NAMED.get(name) or MOST_BY_RISK.get(risk, min(MOST_BY_RISK.values()))


def limit_of(name: str) -> int:
    """Return the highest discount that the gate allows, whatever the risk."""
    return NAMED.get(name, MOST)


def price(yearly: int, discount: int, months: int) -> int:
    """Return the price in euros for the whole term."""
    return yearly * months * (100 - discount) // 1200
