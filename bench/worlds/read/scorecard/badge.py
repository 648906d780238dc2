"""A scorecard's badge for a README: the JSON that shields.io reads from an address. https://shields.io/badges/endpoint-badge"""

from __future__ import annotations

import json

from bench.common.errors import ResultsError
from bench.common.escaping import escape_terminal
from bench.worlds.read.scorecard.card import ALL_CRASHES, Scorecard, ScorecardRow
from bench.worlds.read.scorecard.cells import ANY

OFTEN = 0.5
"""The share of struck trials with damage from which the badge is red."""


def badge(card: Scorecard) -> str:
    """Return the badge of one system, from its worst world. Raise ResultsError if the card has several systems."""
    systems = list(dict.fromkeys(row.system for row in card.rows))
    if len(systems) != 1:
        raise ResultsError(f"a badge shows one system, and there are {len(systems)}: name one with --system {systems[0]}")
    row = max(card.rows, key=_badness)
    simulated = " (simulated)" if any(row.whose == "simulated" for row in card.rows) else ""
    message, color = _label_and_value(row)
    label = escape_terminal(f"recovery of {row.system}{simulated}")
    return json.dumps({"schemaVersion": 1, "label": label, "message": message, "color": color}) + "\n"


def _badness(row: ScorecardRow) -> tuple[float, float]:
    """Return a sort key. A row that was not measured is the worst."""
    crashed = row.struck_by(ALL_CRASHES)
    if crashed is None or crashed.right.rate is None or crashed.any_harm.rate is None:
        return (2.0, 1.0)
    return (crashed.any_harm.rate, 1 - crashed.right.rate)


def _label_and_value(row: ScorecardRow) -> tuple[str, str]:
    crashed = row.struck_by(ALL_CRASHES)
    if crashed is None or not crashed.paired:
        return "not measured", "lightgrey"
    right = f"{crashed.right.k}/{crashed.right.n} right after a crash"
    harm = f"{crashed.harm[ANY].per_100.value or 0.0:.0f} effects damaged per 100 crashes"
    if crashed.any_harm.k:
        color = "red" if (crashed.any_harm.rate or 0.0) >= OFTEN else "orange"
    else:
        color = "brightgreen" if crashed.right.k == crashed.right.n else "yellow"
    return f"{right}, {harm}", color
