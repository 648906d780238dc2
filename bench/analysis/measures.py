"""What is measured of a trial: a measure is one row here, and so one row of every table that shows them all; and what a solved
task costs by it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.statistics import ratio_of_means


@dataclass(frozen=True)
class Measure:
    """A column of a run's trials. `digits` behind the point for ours, `published_digits` for the paper's."""

    column: str
    title: str
    digits: int = 0
    published_digits: int = 0
    percent: bool = False


COSTS = (
    Measure("tokens", "Tokens"),
    Measure("latency_seconds", "Latency s", 2, 2),
    Measure("api_seconds", "LLM API s", 2, 2),
    Measure("waiting_seconds", "Waiting s", 2, 2),
    Measure("framework_seconds", "Framework s", 4, 2),
    Measure("calls", "LLM calls", 1),
)
SOLVED = Measure("correct", "Solved", percent=True)
SCORE = Measure("score", "Score", 3)
RETRY_TOKENS = Measure("retry_tokens", "Retry tokens")
FIRST_ROUND = (
    Measure("first_round_tokens", "First round, tokens"),
    Measure("first_round_seconds", "First round, s", 2),
    Measure("first_round_calls", "First round, calls", 1),
)
"""What is asked again at once after a fault was noticed: what the paper's retry tokens mean."""
PRICE = (
    Measure("price_tokens", "Price, tokens"),
    Measure("price_seconds", "Price, s", 2),
    Measure("price_calls", "Price, calls", 1),
)
"""All that is asked again because of a fault that mattered."""
FIRST_PASS = (
    Measure("first_pass_tokens", "First pass, tokens"),
    Measure("first_pass_seconds", "First pass, s", 2),
    Measure("first_pass_calls", "First pass, calls", 1),
)
"""The first attempts alone: what the structure costs when nothing fails."""
PUBLISHED_PASS, PUBLISHED_ROUND = "tokens", "retry_tokens"
"""The published figures that stand for a first pass and a first round: the tokens of a run without a failure, and what the
paper says of retries, which is of one."""
LEAST_PRICED = 5
"""Of fewer trials (of several instances: instances) no price is told."""
SPENT = (Measure("cost", "Cost $", 5), COSTS[0], COSTS[1])
"""What is put by each solved task."""
COMPARED = (COSTS[0], RETRY_TOKENS, COSTS[1], SCORE)
"""What arms are compared by, pair by pair."""


# By what was solved


@dataclass(frozen=True)
class PerSolved:
    """`spent` over `trials` trials, of which `solved` were solved.

    spent       None where it is unknown, and then all others of it are
    value       spent by solved; None where nothing was solved
    low, high   95% interval of that ratio, over the trials, or over several instances; None below two of them
    units       those that the interval is of: trials, or instances
    """

    spent: float | None
    solved: int
    trials: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    units: int = 0


def per_solved(trials: pd.DataFrame, column: str) -> PerSolved:
    """Of all these trials that were to solve something, errors among them, for they were paid as well."""
    trials = trials[trials["outcome"] != "ungraded"]
    solved = trials["outcome"].eq("solved")
    if trials[column].isna().any():
        return PerSolved(None, int(solved.sum()), len(trials))
    ratio = ratio_of_means(_by_unit(trials, trials[column]), _by_unit(trials, solved))
    return PerSolved(math.fsum(trials[column]), int(solved.sum()), len(trials), ratio.ratio, ratio.low, ratio.high, ratio.pairs)


def _by_unit(trials: pd.DataFrame, values: pd.Series[float] | pd.Series[bool]) -> dict[Hashable, float]:
    """The value of each trial; of several instances, the sum of each."""
    instances = instances_of(trials)
    if len(set(instances)) < 2:
        return dict(enumerate(map(float, values)))
    sums: dict[Hashable, float] = dict.fromkeys(instances, 0.0)
    for instance, value in zip(instances, values, strict=True):
        sums[instance] += float(value)
    return sums
