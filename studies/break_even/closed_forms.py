"""The price of a solved task at a failure rate, calculated: the closed forms that a simulation must agree with.

Let a model be right whenever it is not struck. Let a fault that every verifier sees strike each subtask's part of a reply with
chance p, independently. Let n bound the attempts at a subtask. Let t be the price of its first call and u of each further call
(tokens or seconds; u > t if a reason is appended to the prompt).

monolithic   One call for all k subtasks is accepted with chance a = (1 - p)^k. The calls are geometric, cut off at n: call i is
             made with chance (1 - a)^(i - 1), so their expected number is (1 - (1 - a)^n) / a, and the task is solved with
             chance 1 - (1 - a)^n. At one price t a call, the price of a solved task is t / a: the bound n cancels out.

runtime_structured   Each subtask alone is geometric, cut off at n: attempt i is made with chance p^(i - 1), and all fail with
             chance p^n. Subtask j is reached with chance (1 - p^n)^(j - 1) and then costs t + u (p + ... + p^(n - 1)); the
             task is solved with chance (1 - p^n)^k.

static       Within a stage (the subtasks up to a checkpoint) a pass from subtask i on costs all from i to the checkpoint. The
             first struck subtask is f with chance p (1 - p)^(f - i), and the next pass begins there; none is struck with
             chance (1 - p)^(m - i + 1). A subtask asked in every pass runs out of attempts first, so the state of the
             recursion is (where the pass begins, the attempts used by each). Its tree ends after n passes, and the sum over
             it is exact.

What they leave out: a struck output that is handed on is a little shorter than a whole one, and so is the prompt that shows it.
A real model also fails by itself, and is not always right when it passes. A measured price above the closed form shows this.

Derived here, from the definitions of the architectures; no other source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pandas as pd

from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import Metric
from bench.read.claims.closed_forms import calls_of, first_calls, mean_price

CALL_COLUMNS = {"tokens": "tokens", "latency_seconds": "seconds"}
"""Column of the trials -> column of the calls: the prices from which closed forms can be calculated."""


@dataclass(frozen=True)
class Pipeline:
    """first, again    the price of the first and of each further call, by stage and subtask
    attempts        the bound n, at least 1"""

    first: tuple[tuple[float, ...], ...]
    again: tuple[tuple[float, ...], ...]
    attempts: int


@dataclass(frozen=True)
class Expectation:
    """What a trial is expected to spend, and the chance that it is solved."""

    spent: float
    solved: float

    @property
    def per_solved(self) -> float:
        return self.spent / self.solved if self.solved else math.inf


def monolithic(call: float, subtasks: int, rate: float, attempts: int) -> Expectation:
    """Return the expectation. `call`: the price of the one call that does all `subtasks`."""
    failed = 1 - (1 - rate) ** subtasks
    return Expectation(call * sum(failed**made for made in range(attempts)), 1 - failed**attempts)


def runtime_structured(pipeline: Pipeline, rate: float) -> Expectation:
    n = pipeline.attempts
    spent, reached = 0.0, 1.0
    for first, again in zip(chain(*pipeline.first), chain(*pipeline.again), strict=True):
        spent += reached * (first + again * sum(rate**made for made in range(1, n)))
        reached *= 1 - rate**n
    return Expectation(spent, reached)


def static(pipeline: Pipeline, rate: float) -> Expectation:
    spent, reached = 0.0, 1.0
    for first, again in zip(pipeline.first, pipeline.again, strict=True):
        stage = _passes(first, again, rate, pipeline.attempts, 0, (0,) * len(first))
        spent += reached * stage.spent
        reached *= stage.solved
    return Expectation(spent, reached)


def _passes(
    first: Sequence[float], again: Sequence[float], rate: float, most: int, begin: int, used: tuple[int, ...]
) -> Expectation:
    """Return the expectation of a pass from subtask `begin` to the checkpoint, with all further passes that can follow."""
    spent = 0.0
    for place in range(begin, len(first)):
        if used[place] == most:
            return Expectation(spent, 0.0)
        spent += again[place] if used[place] else first[place]
    made = tuple(count + (place >= begin) for place, count in enumerate(used))
    passed = (1 - rate) ** (len(first) - begin)
    for struck in range(begin, len(first)) if rate else ():
        chance = rate * (1 - rate) ** (struck - begin)
        rest = _passes(first, again, rate, most, struck, made)
        spent, passed = spent + chance * rest.spent, passed + chance * rest.solved
    return Expectation(spent, passed)


ClosedForm = Callable[[float], Expectation]
"""Failure rate -> what a trial spends, and its chance of being solved."""


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
    whole = mean_price(first_calls(calls_of(priced, "monolithic"))[column])
    if whole is not None:
        forms["monolithic"] = partial(monolithic, whole, sum(map(len, stages)), attempts=attempts)
    for name, form in (("static", static), ("runtime_structured", runtime_structured)):
        pipeline = _pipeline(calls_of(priced, name), column, stages, attempts, asks_alike=name == "static")
        if pipeline:
            forms[name] = partial(form, pipeline)
    return forms if stages else {}


def _pipeline(
    calls: pd.DataFrame, column: str, stages: Sequence[Sequence[str]], attempts: int, asks_alike: bool
) -> Pipeline | None:
    """Return the pipeline with its prices. If `asks_alike`, each further call has the prompt and the price of the first call;
    else the price is measured on the further calls."""
    first, again = list[tuple[float, ...]](), list[tuple[float, ...]]()
    smooth, further = first_calls(calls), calls[calls["cause"] == "retry"]
    for stage in stages:
        prices = [mean_price(smooth.loc[smooth["subtask"] == name, column]) for name in stage]
        plain = tuple(price for price in prices if price is not None)
        if len(plain) < len(stage):
            return None
        retried = [mean_price(further.loc[further["subtask"] == name, column]) for name in stage]
        first.append(plain)
        again.append(plain if asks_alike else tuple(two or first for first, two in zip(plain, retried, strict=True)))
    return Pipeline(tuple(first), tuple(again), attempts)
