"""The numbers in a cell of the scorecard: the effect of one kind of failure on one system."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from bench.read.analysis.arms import ANSWERED, instances_of
from bench.read.analysis.statistics import (
    PassHat,
    Ratio,
    Share,
    exact_share_by_instance,
    has_width,
    pass_hat,
    ratio_of_means,
    ratio_of_sums,
)
from bench.record.damage import DAMAGES
from bench.worlds.read.beyond_control import COST_COLUMNS
from bench.worlds.read.scorecard.card import HarmRates, RatePerFailure, Struck

PASS_HAT_KS = (1, 2, 4, 8)
WORK_COLUMNS = ("tokens", "calls", "tool_calls")
ANY_KIND = "any"
"""All kinds of damage together. An effect that is damaged in several ways counts under each."""


def struck_cell(by: str, trials: pd.DataFrame, paired: pd.DataFrame) -> Struck:
    """Return the cell of one kind of failure. `trials` were struck by it. `paired` are the trials that have a control, from
    `beyond_control`, with their number of `failures`."""
    compared = paired[paired["outcome"].isin(ANSWERED) & paired["outcome_control"].isin(ANSWERED)]
    return Struck(
        by=by,
        failures=int(trials["failures"].sum()),
        trials=len(trials),
        instances=len(set(instances_of(trials))),
        right=share_of(trials, trials["outcome"].eq("solved")),
        pass_hat=pass_hats(trials),
        paired=len(paired),
        any_harm=share_of(paired, (paired[[f"beyond_{kind}" for kind in DAMAGES]] > 0).any(axis=1)),
        harm={kind: _harm_rates(paired, beyond_of(paired, kind)) for kind in (*DAMAGES, ANY_KIND)},
        compared=len(compared),
        work={what: _ratio(compared, compared[what], compared[f"{what}_control"]) for what in WORK_COLUMNS},
        recovery={what: _for_each_failure(compared, compared[f"beyond_{what}"]) for what in COST_COLUMNS},
        distinct=_distinct(trials),
    )


def _distinct(trials: pd.DataFrame) -> int:
    """Return the number of trials without copies. A copy exists because a system can get the same answers and do the same after
    two kinds of failure."""
    compared_columns = ["instance", "outcome", "failures", *WORK_COLUMNS, *(f"damage_{kind}" for kind in DAMAGES)]
    return len(trials.drop_duplicates(compared_columns))


def share_of(trials: pd.DataFrame, holds: pd.Series[bool]) -> Share:
    """Return the exact share of these trials for which `holds` is true, clustered by instance."""
    return exact_share_by_instance(instances_of(trials), [bool(value) for value in holds])


def beyond_of(paired: pd.DataFrame, kind: str) -> pd.Series[int]:
    """Return, for each trial, the number of damaged effects minus the control's number."""
    if kind == ANY_KIND:
        return paired[[f"beyond_{kind}" for kind in DAMAGES]].sum(axis=1).astype("Int64")
    return paired[f"beyond_{kind}"]


def pass_hats(trials: pd.DataFrame) -> tuple[PassHat, ...]:
    """Return pass^k of these trials for each k of `PASS_HAT_KS`."""
    right = trials["outcome"].eq("solved")
    tasks = [(int(group.sum()), len(group)) for _, group in right.groupby(instances_of(trials))]
    return tuple(pass_hat(k, tasks) for k in PASS_HAT_KS)


def _harm_rates(paired: pd.DataFrame, beyond: pd.Series[int]) -> HarmRates:
    """Return the rates of damage in these pairs. `beyond` is the number of damaged effects minus the control's number."""
    known = beyond.notna()
    beyond, paired = beyond[known].astype(int), paired[known]
    after = share_of(paired, beyond > 0)
    # If no trial is below 0, the interval is not below 0 either.
    is_signed = (beyond < 0).any()
    rate = _for_each_failure(paired, 100 * beyond) if is_signed else _ratio(paired, 100 * beyond, paired["failures"])
    if len(beyond) and not beyond.any():  # zero in all trials has no spread, but has an upper bound
        rate = RatePerFailure(0.0, 0.0, 100 * (after.high or 0.0), rate.n, rate.units)
    more, fewer = (int(surplus.clip(lower=0).sum()) for surplus in (beyond, -beyond))
    return HarmRates(int(beyond.sum()), more, fewer, rate, after)


def _for_each_failure(paired: pd.DataFrame, beyond: pd.Series[int]) -> RatePerFailure:
    """Return the sum of `beyond` divided by the number of failures, with its interval."""
    failures = _by_unit(paired, paired["failures"])
    ratio = ratio_of_sums(list(_by_unit(paired, beyond).values()), list(failures.values()))
    return _rate(ratio, len(paired))


def _ratio(paired: pd.DataFrame, numerators: pd.Series[int], denominators: pd.Series[int]) -> RatePerFailure:
    """Return the ratio of two means over these pairs, with its interval."""
    return _rate(ratio_of_means(_by_unit(paired, numerators), _by_unit(paired, denominators)), len(paired))


def _rate(ratio: Ratio, n: int) -> RatePerFailure:
    """Return a ratio over `n` trials as a rate. An interval without width is left out."""
    low, high = (ratio.low, ratio.high) if has_width(ratio) else (None, None)
    return RatePerFailure(ratio.ratio, low, high, n, ratio.pairs)


def _by_unit(trials: pd.DataFrame, values: Sequence[float] | pd.Series[int]) -> Mapping[Hashable, float]:
    """Return the sum of the values of each instance. If there is only one instance, return the value of each trial."""
    instances = instances_of(trials)
    units: Sequence[Hashable] = instances if len(set(instances)) > 1 else trials["trial"].tolist()
    by_unit: dict[Hashable, list[float]] = {}
    for unit, value in zip(units, values, strict=True):
        by_unit.setdefault(unit, []).append(float(value))
    return {unit: math.fsum(values) for unit, values in by_unit.items()}
