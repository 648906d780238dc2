"""The closed forms of the architectures, with prices from the calls that a run made without faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import Metric
from bench.read.analysis.statistics import mean_of
from bench.read.claims import closed_forms
from bench.read.claims.closed_forms import Expectation, Pipeline
from bench.record.config import FAULT_FREE

CALL_COLUMNS = {"tokens": "tokens", "latency_seconds": "seconds"}
"""Column of the trials -> column of the calls: the prices from which closed forms can be calculated."""

ClosedForm = Callable[[float], Expectation]
"""Failure rate -> what a trial spends, and its chance of being solved."""


def _of(frame: pd.DataFrame, architecture: str) -> pd.DataFrame:
    return frame[frame["architecture"] == architecture]


def priced_forms(run: Run, scenario: str, calls: pd.DataFrame, measure: Metric) -> dict[str, ClosedForm]:
    """Return architecture -> its closed form by this measure. Empty if calls do not have the measure. An architecture without a
    form or without fault-free trials is left out."""
    if measure.name not in CALL_COLUMNS:
        return {}
    stages = run.pack(scenario).stages
    attempts = run.config.max_attempts
    priced = calls.assign(tokens=calls["tokens_in"] + calls["tokens_out"])
    column = CALL_COLUMNS[measure.name]
    forms: dict[str, ClosedForm] = {}
    whole = _mean(_smooth(_of(priced, "monolithic"))[column])
    if whole is not None:
        forms["monolithic"] = partial(_monolithic, whole, sum(map(len, stages)), attempts)
    for name, form in (("static", closed_forms.static), ("runtime_structured", closed_forms.runtime_structured)):
        pipeline = _pipeline(_of(priced, name), column, stages, attempts, asks_alike=name == "static")
        if pipeline:
            forms[name] = partial(form, pipeline)
    return forms if stages else {}


@dataclass(frozen=True)
class FirstPrices:
    """Mean tokens of the first calls in fault-free trials: of monolithic's call, and of static's calls by subtask. A subtask
    that was never asked has 0."""

    monolithic: float
    static: Mapping[str, float]

    @property
    def passed(self) -> float:
        """The price of a pass of static."""
        return sum(self.static.values())

    def round_of(self, architecture: str, again: Sequence[str]) -> float | None:
        """Return the tokens of a round of an architecture by the closed form. None for an architecture without a closed form.

        Args:
            architecture: The architecture.
            again: The subtasks from the struck one to the checkpoint that notices it, in order.
        """
        rounds = {
            "monolithic": self.monolithic,
            "static": sum(self.static[name] for name in again),
            "runtime_structured": self.static[again[0]],
        }
        return rounds.get(architecture)


def first_prices(run: Run, scenario: str, model: str) -> FirstPrices | None:
    """Return the first prices. None if monolithic or static has no fault-free calls."""
    calls = run.calls[(run.calls["scenario"] == scenario) & (run.calls["model"] == model)]
    smooth = _smooth(calls)
    smooth = smooth.assign(tokens=smooth["tokens_in"] + smooth["tokens_out"])
    whole, steps = _mean(_of(smooth, "monolithic")["tokens"]), _of(smooth, "static")
    if whole is None or steps.empty:
        return None
    pack = run.pack(scenario)
    names = [name for stage in pack.stages for name in stage] or list(pack.subtasks)
    return FirstPrices(whole, {name: _mean(steps.loc[steps["subtask"] == name, "tokens"]) or 0.0 for name in names})


def _monolithic(call: float, subtasks: int, attempts: int, rate: float) -> Expectation:
    return closed_forms.monolithic(call, subtasks, rate, attempts)


def _pipeline(
    calls: pd.DataFrame, column: str, stages: Sequence[Sequence[str]], attempts: int, asks_alike: bool
) -> Pipeline | None:
    """Return the pipeline with its prices. If `asks_alike`, each further call has the prompt and the price of the first call;
    else the price is measured on the further calls."""
    first, again = list[tuple[float, ...]](), list[tuple[float, ...]]()
    smooth, further = _smooth(calls), calls[calls["cause"] == "retry"]
    for stage in stages:
        prices = [_mean(smooth.loc[smooth["subtask"] == name, column]) for name in stage]
        plain = tuple(price for price in prices if price is not None)
        if len(plain) < len(stage):
            return None
        retried = [_mean(further.loc[further["subtask"] == name, column]) for name in stage]
        first.append(plain)
        again.append(plain if asks_alike else tuple(two or first for first, two in zip(plain, retried, strict=True)))
    return Pipeline(tuple(first), tuple(again), attempts)


def _smooth(calls: pd.DataFrame) -> pd.DataFrame:
    """Return the first calls of trials without faults."""
    return calls[(calls["plan"] == FAULT_FREE) & (calls["cause"] == "first")]


def _mean(prices: pd.Series[float]) -> float | None:
    return mean_of(prices.dropna().astype(float)).mean
