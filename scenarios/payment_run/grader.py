"""Grade a payment run by its table of payments and by the journal of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.scenario import Grade
from bench.worlds.run.environment import FinalWorld
from bench.worlds.run.environment.damage import in_tables

from .world import audit


def grade(world: FinalWorld, truth: Sequence[Sequence[Any]]) -> Grade:
    """Grade a payment run. It is right if each invoice was paid once, in the due amount, and nothing else was paid."""
    rows = world.db.all("SELECT number, amount, account FROM payment WHERE standing")
    paid = [[row["number"], row["amount"], row["account"]] for row in rows]
    right = sum(paid.count(list(payment)) == 1 for payment in truth)
    harm = in_tables(list(audit(world.db))).total + sum(entry.is_effect and entry.is_stale for entry in world.journal)
    parts = {"paid": right / len(truth), "no_damage": float(not harm)}
    correct = right == len(truth) == len(paid) and not harm
    return Grade(correct, sum(parts.values()) / 2, parts, "" if correct else f"{right} of {len(truth)} paid, {harm} harmed")
