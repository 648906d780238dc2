"""The closed form of a round: which of two architectures pays more for a retry, by the sizes of their calls alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import mean_of
from bench.record.config import FAULT_FREE

NEAR = 0.05
"""A ratio of rounds this near to 1 decides nothing: it ignores that a struck output is shorter, and that a reason is told."""


def agrees_with_side(ratio: float, side: int) -> bool:
    """Return whether a ratio of rounds agrees with the measured side: 1 if the first round is dearer, -1 if the second is."""
    return abs(ratio - 1) >= NEAR and (ratio > 1) is (side > 0)


@dataclass(frozen=True)
class FirstPrices:
    """Mean tokens of the first calls in fault-free trials: of monolithic's call, and of static's calls by subtask. A subtask
    that was never asked has 0."""

    monolithic: float
    static: Mapping[str, float]

    @property
    def pass_price(self) -> float:
        """The tokens of a pass of static: the sum over its subtasks."""
        return sum(self.static.values())

    def round_of(self, architecture: str, again: Mapping[str, Sequence[str]]) -> float | None:
        """Return the tokens of a round of an architecture by the closed form. None for an architecture without a closed form.

        Args:
            architecture: The architecture.
            again: The subtasks that an architecture asks for again. A round of monolithic is its whole call.
        """
        if architecture == "monolithic":
            return self.monolithic
        return sum(self.static[name] for name in again[architecture]) if architecture in again else None


def first_prices(run: Run, scenario: str, model: str) -> FirstPrices | None:
    """Return the first prices. None if monolithic or static has no fault-free calls."""
    calls = run.calls[(run.calls["scenario"] == scenario) & (run.calls["model"] == model)]
    smooth = first_calls(calls)
    smooth = smooth.assign(tokens=smooth["tokens_in"] + smooth["tokens_out"])
    whole, steps = mean_price(calls_of(smooth, "monolithic")["tokens"]), calls_of(smooth, "static")
    if whole is None or steps.empty:
        return None
    pack = run.pack(scenario)
    names = [name for stage in pack.stages for name in stage] or list(pack.subtasks)
    return FirstPrices(whole, {name: mean_price(steps.loc[steps["subtask"] == name, "tokens"]) or 0.0 for name in names})


def calls_of(frame: pd.DataFrame, architecture: str) -> pd.DataFrame:
    """Return the rows of one architecture."""
    return frame[frame["architecture"] == architecture]


def first_calls(calls: pd.DataFrame) -> pd.DataFrame:
    """Return the first calls of trials without faults."""
    return calls[(calls["plan"] == FAULT_FREE) & (calls["cause"] == "first")]


def mean_price(prices: pd.Series[float]) -> float | None:
    """Return the mean of the known prices; None if no price is known."""
    return mean_of(prices.dropna().astype(float)).mean
