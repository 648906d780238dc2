"""The registry of metrics. A metric is a function that reads a value from a trial, and a column of `run.trials`.

A metric with a title is also a row or a column of tables. A metric with `in_costs` is in every table of what a trial costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from bench.common.registry import Part, Registry
from bench.read.analysis.faults import is_silently_corrupted
from bench.read.analysis.measure import Measure
from bench.read.analysis.trial import MEASURED, CallMeasure, TrialReading

DTYPES = ("str", "bool", "boolean", "int64", "Int64", "float64")


@dataclass(frozen=True)
class Metric(Part):
    """A value read from a trial: a column of `run.trials`. A metric with a title is also a row or a column of tables.

    name        the column's name
    dtype       its type in pandas, of DTYPES; `Int64`, `boolean` and `float64` can be missing
    value       (trial) -> its value, in the unit that `title` says; None if the trial has none
    title       its name in tables, with its unit; "" if no table shows it
    digits      digits after the point in our tables; `published_digits`, in the paper's
    percent     whether it is a share in [0, 1], shown in percent
    measure     what it measures; this chooses the interval (`bench.read.analysis.measure`)
    in_costs    whether it is a cost of a trial, shown in every table of costs
    harm        whether it counts what a trial damaged
    """

    dtype: str
    value: Callable[[TrialReading], Any]
    title: str = ""
    digits: int = field(default=0, kw_only=True)
    published_digits: int = field(default=0, kw_only=True)
    percent: bool = field(default=False, kw_only=True)
    measure: Measure = field(default="spent", kw_only=True)
    in_costs: bool = field(default=False, kw_only=True)
    harm: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self.refuse_unknown("dtype", [self.dtype], DTYPES)
        self.refuse_unknown("measure", [self.measure], get_args(Measure))


class Family(NamedTuple):
    """The metrics of a group of calls in a trial: tokens, seconds, number, and tokens by the provider's count."""

    tokens: Metric
    seconds: Metric
    calls: Metric
    usage: Metric
    """Tokens by the provider's count. No table shows them."""

    @property
    def shown(self) -> tuple[Metric, Metric, Metric]:
        """The metrics that tables show."""
        return self.tokens, self.seconds, self.calls


def _family(name: str, title: str, measure: Measure, value_of: Callable[[TrialReading, CallMeasure], float | None]) -> Family:
    """Return the metrics NAME_tokens, NAME_seconds, NAME_calls and NAME_usage.

    `value_of` returns the value of a trial for a measure of its calls. The metric of usage has no title, so no table shows it.
    """

    def value(measured: CallMeasure) -> Callable[[TrialReading], float | None]:
        return lambda trial: value_of(trial, measured)

    titles = {"tokens": f"{title}, tokens", "seconds": f"{title}, s", "calls": f"{title}, calls", "usage": ""}
    digits = {"seconds": 2, "calls": 1}
    metrics = {
        source: Metric(
            f"{name}_{source}", "float64", value(measured), titles[source], digits=digits.get(source, 0), measure=measure
        )
        for source, measured in MEASURED.items()
    }
    return Family(**metrics)


def _seconds_metric(name: str, title: str, value: Callable[[TrialReading], float], digits: int = 2) -> Metric:
    """Return the metric of a part of a trial's time, which is a cost."""
    return Metric(name, "float64", value, title, digits=digits, published_digits=2, in_costs=True)


TOKENS = Metric("tokens", "int64", lambda trial: trial.record.tokens, "Tokens", in_costs=True)
LATENCY = _seconds_metric("latency_seconds", "Latency s", lambda trial: trial.latency)
API = _seconds_metric("api_seconds", "LLM API s", lambda trial: trial.record.api_seconds)
WAITING = _seconds_metric("waiting_seconds", "Waiting s", lambda trial: trial.record.waiting_seconds)
FRAMEWORK = _seconds_metric("framework_seconds", "Framework s", lambda trial: trial.record.framework_seconds, 4)
CALLS = Metric("calls", "int64", lambda trial: len(trial.entries), "LLM calls", digits=1, in_costs=True)
SOLVED = Metric("correct", "boolean", lambda trial: trial.solved, "Solved", percent=True, measure="score")
SCORE = Metric("score", "float64", lambda trial: trial.score, "Score", digits=3, measure="score")
RETRY_TOKENS = Metric("retry_tokens", "int64", lambda trial: trial.retry_tokens, "Retry tokens", measure="retry")
COST = Metric("cost", "float64", lambda trial: trial.tariff.cost(trial.record), "Cost $", digits=5)
FIRST_ROUND = _family("first_round", "First round", "first_round", TrialReading.first_round)
"""The calls that are made again at once after a fault was noticed."""
PRICE = _family("price", "Price", "price", TrialReading.price)
"""All calls that are made again because of an effective fault."""
FIRST_PASS = _family("first_pass", "First pass", "spent", TrialReading.first_pass)
"""The first attempts, which show what the structure costs when nothing fails."""
OURS: tuple[Metric, ...] = (
    Metric("outcome", "str", lambda trial: trial.outcome),
    SOLVED,
    SCORE,
    Metric("note", "str", lambda trial: trial.record.grade.note if trial.is_graded and trial.record.grade else ""),
    TOKENS,
    RETRY_TOKENS,
    Metric("rejections", "int64", lambda trial: trial.failures.rejections, measure="retry"),
    *FIRST_ROUND,
    *PRICE,
    *FIRST_PASS,
    Metric("in_answer", "int64", lambda trial: trial.accounts["in_answer"]),
    Metric("rejected", "int64", lambda trial: trial.accounts["rejected"]),
    Metric("superseded", "int64", lambda trial: trial.accounts["superseded"]),
    Metric("redundant", "int64", lambda trial: trial.accounts["redundant"]),
    Metric("lost", "int64", lambda trial: trial.accounts["lost"]),
    Metric("judging", "int64", lambda trial: trial.accounts["judging"]),
    CALLS,
    Metric("faults_planned", "int64", lambda trial: trial.faults("planned")),
    Metric("faults_delivered", "int64", lambda trial: trial.faults("delivered")),
    Metric("faults_not_applicable", "int64", lambda trial: trial.faults("not_applicable")),
    Metric("faults_detected", "int64", lambda trial: trial.faults("detected")),
    Metric(
        "silent_corruption",
        "bool",
        lambda trial: trial.outcome != "error" and is_silently_corrupted(trial.record, trial.receipts),
    ),
    Metric("undetected_failure", "bool", lambda trial: trial.outcome == "wrong" and trial.passed_every_check),
    API,
    WAITING,
    FRAMEWORK,
    LATENCY,
    Metric("timing", "str", lambda trial: trial.record.timing),
    COST,
    Metric("reason", "str", lambda trial: trial.imbalance or trial.record.reason),
)
METRICS = Registry("metric", Metric)
PUBLISHED_PASS, PUBLISHED_ROUND = "tokens", "retry_tokens"
"""The paper's rows that are compared with a first pass and a first round: the tokens of a run without a failure, and the retry
tokens, which are those of one retry."""
MIN_PRICED_TRIALS = 5
"""The least number of trials with which a price is reported, or of instances if there are several."""
SPENT = (COST, TOKENS, LATENCY)
"""The metrics that are divided by the number of solved tasks."""
COMPARED = (TOKENS, RETRY_TOKENS, LATENCY, SCORE)
"""The metrics by which arms are compared pair by pair."""


def costs() -> list[Metric]:
    """Return the metrics of a trial's cost, in the order of tables.

    Returns:
        Tokens, seconds and calls, then further metrics that are `in_costs`.
    """
    first = (TOKENS, LATENCY, API, WAITING, FRAMEWORK, CALLS)
    return [*first, *(metric for metric in METRICS if metric.in_costs and metric not in first)]


def measure_of(column: str) -> Measure:
    """Return what a column of a run's trials measures.

    Args:
        column: The column's name.

    Returns:
        The metric's measure; `spent` if the column is no metric.
    """
    return METRICS[column].measure if column in METRICS else "spent"
