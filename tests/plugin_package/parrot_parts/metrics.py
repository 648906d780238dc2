"""A metric: the tokens of the first calls."""

from __future__ import annotations

from bench.read.analysis.metrics import Metric
from bench.read.analysis.trial import TrialReading


def first_tokens(trial: TrialReading) -> int:
    return sum(entry.tokens for entry in trial.entries if entry.call.cause == "first")


PART = Metric("first_tokens", "int64", first_tokens, "First tokens", in_costs=True)
