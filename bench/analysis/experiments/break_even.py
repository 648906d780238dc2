"""Break-even: what a solved task costs at each failure rate, and from which rate on one architecture overtakes another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from bench.analysis.arms import FAULT_FREE
from bench.analysis.experiments import closed_forms
from bench.analysis.experiments.closed_forms import Expected, Pipeline
from bench.analysis.experiments.crossing import Crossing, Trials, crossing, crossing_of
from bench.analysis.experiments.plans import failure_rates
from bench.analysis.frames import Run
from bench.analysis.measures import SPENT, Measure
from bench.analysis.per_solved import PerSolved, per_solved
from bench.analysis.statistics import Share, known, mean_of, share_of

CALL_COLUMNS = {"tokens": "tokens", "latency_seconds": "seconds"}
"""Column of the trials -> that of the calls: a price that calls have, too, and that closed forms can be reckoned from."""
GRID = 501
"""Rates at which closed forms are compared."""

Form = Callable[[float], Expected]


@dataclass(frozen=True)
class Point:
    """`expected`: by the closed form; None where there is none."""

    rate: float
    solved: Share
    spent: PerSolved
    expected: float | None


@dataclass(frozen=True)
class Overtaking:
    """`second` is dearer than `first` at the lowest rate. `expected` is where the closed forms cross, None without them."""

    first: str
    second: str
    found: Crossing
    expected: float | None


@dataclass(frozen=True)
class BreakEven:
    """One measure in one scenario with one model: a curve for each architecture, and where they cross."""

    scenario: str
    model: str
    measure: Measure
    curves: Mapping[str, tuple[Point, ...]]
    overtakings: tuple[Overtaking, ...]


def break_even(run: Run) -> list[BreakEven]:
    """By scenario, model and measure; a measure that is unknown, as cost is without prices, is left out.

    Raises ResultsError where the run has not at least two failure rates.
    """
    rates = failure_rates(run)
    found = []
    for (scenario, model), trials in run.trials.groupby(["scenario", "model"], sort=False):
        calls = run.calls[(run.calls["scenario"] == scenario) & (run.calls["model"] == model)]
        for measure in SPENT:
            if trials[measure.column].notna().all():
                names = [name for name in run.names("architecture") if name in set(trials["architecture"])]
                forms = _forms(run, str(scenario), calls, measure) if measure.column in CALL_COLUMNS else {}
                curves = {name: _curve(_of(trials, name), rates, measure.column, forms.get(name)) for name in names}
                overtakings = _overtakings(trials, names, rates, measure.column, forms)
                found.append(BreakEven(str(scenario), str(model), measure, curves, overtakings))
    return found


def _of(frame: pd.DataFrame, architecture: str) -> pd.DataFrame:
    return frame[frame["architecture"] == architecture]


def _curve(trials: pd.DataFrame, rates: Mapping[str, float], column: str, form: Form | None) -> tuple[Point, ...]:
    points = []
    for plan, rate in rates.items():
        own = trials[trials["fault"] == plan]
        spent = per_solved(own, column)
        points.append(Point(rate, share_of(spent.solved, spent.trials), spent, form(rate).per_solved if form else None))
    return tuple(points)


def _overtakings(
    trials: pd.DataFrame, names: Sequence[str], rates: Mapping[str, float], column: str, forms: Mapping[str, Form]
) -> tuple[Overtaking, ...]:
    found = []
    for pair in combinations(names, 2):
        both = _complete(trials, pair, rates)
        if both["repetition"].nunique() > 1:
            grids = {name: _grid(_of(both, name), rates, column) for name in pair}
            first, second = sorted(pair, key=lambda name: _dearness(grids[name]))
            expected = _expected(forms[first], forms[second], max(rates.values())) if {*pair} <= forms.keys() else None
            result = crossing(list(rates.values()), grids[first], grids[second])
            found.append(Overtaking(first, second, result, expected))
    return tuple(found)


def _complete(trials: pd.DataFrame, pair: Sequence[str], rates: Mapping[str, float]) -> pd.DataFrame:
    """The trials of both at these rates, of the repetitions of which none is missing."""
    both = trials[trials["architecture"].isin(pair) & trials["fault"].isin(list(rates))]
    counts = both.groupby("repetition")["trial"].transform("size")
    return both[counts == len(pair) * len(rates)]


def _grid(trials: pd.DataFrame, rates: Mapping[str, float], column: str) -> Trials:
    spent = trials.pivot_table(index="repetition", columns="fault", values=column, sort=True)[list(rates)]
    solved = trials.assign(solved=trials["outcome"].eq("solved")).pivot(index="repetition", columns="fault", values="solved")
    return Trials(spent.to_numpy(float), solved[list(rates)].to_numpy(float))


def _dearness(trials: Trials) -> tuple[float, float]:
    """How dear it is at the lowest rate; of two that are equal there, the one that is cheaper in the end counts as dearer, so
    that it is the one to overtake."""
    worth = trials.worth()
    return -float(worth[0]), float(worth[-1])


def _expected(first: Form, second: Form, highest: float) -> float:
    rates = np.linspace(0.0, highest, GRID).tolist()
    worths = [np.array([1 / form(rate).per_solved for rate in rates]) for form in (first, second)]
    return crossing_of(rates, *worths)


# Closed forms, with the prices of the calls that the run made


def _forms(run: Run, scenario: str, calls: pd.DataFrame, measure: Measure) -> dict[str, Form]:
    """Those of the architectures that have one, where the run has trials without faults to take the prices from."""
    stages = run.manifest["scenarios"].get(scenario, {}).get("stages", [])
    attempts = int(run.manifest["config"]["max_attempts"])
    priced = calls.assign(tokens=calls["tokens_in"] + calls["tokens_out"])
    column = CALL_COLUMNS[measure.column]
    forms: dict[str, Form] = {}
    whole = _mean(_smooth(_of(priced, "monolithic"))[column])
    if whole is not None:
        forms["monolithic"] = partial(_monolithic, whole, sum(map(len, stages)), attempts)
    for name, form in (("static", closed_forms.static), ("runtime_structured", closed_forms.runtime_structured)):
        pipeline = _pipeline(_of(priced, name), column, stages, attempts, asks_alike=name == "static")
        if pipeline:
            forms[name] = partial(form, pipeline)
    return forms if stages else {}


def _monolithic(call: float, subtasks: int, attempts: int, rate: float) -> Expected:
    return closed_forms.monolithic(call, subtasks, rate, attempts)


def _pipeline(
    calls: pd.DataFrame, column: str, stages: Sequence[Sequence[str]], attempts: int, asks_alike: bool
) -> Pipeline | None:
    """`asks_alike`: a further call has the first one's prompt, and so its price; else it has that of the further calls made."""
    first, again = list[tuple[float, ...]](), list[tuple[float, ...]]()
    smooth, further = _smooth(calls), calls[calls["cause"] == "retry"]
    for stage in stages:
        prices = [_mean(smooth.loc[smooth["subtask"] == name, column]) for name in stage]
        plain = tuple(price for price in prices if price is not None)
        if len(plain) < len(stage):
            return None
        retried = [_mean(further.loc[further["subtask"] == name, column]) for name in stage]
        first.append(plain)
        again.append(plain if asks_alike else tuple(two or one for one, two in zip(plain, retried, strict=True)))
    return Pipeline(tuple(first), tuple(again), attempts)


def _smooth(calls: pd.DataFrame) -> pd.DataFrame:
    """First calls in trials without faults."""
    return calls[(calls["fault"] == FAULT_FREE) & (calls["cause"] == "first")]


def _mean(prices: pd.Series[float]) -> float | None:
    return mean_of(known(prices)).mean
