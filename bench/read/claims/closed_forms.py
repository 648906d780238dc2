"""The closed form of a retry: the tokens of a round by the sizes of calls alone, and which of two architectures pays more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import mean_of
from bench.record.config import FAULT_FREE

MIN_RATIO_GAP = 0.05
"""A closed form's ratio of two rounds decides nothing if it is nearer to 1 than this. It neglects that a struck output is
shorter, and that the next prompt tells the reason of the rejection."""


def agrees_with_side(ratio: float, side: int) -> bool:
    """Whether the closed form's ratio of two rounds agrees with the measurement, and is not too near to 1 (MIN_RATIO_GAP).
    `side` is 1 if the first round was measured as dearer, -1 if the second was."""
    return abs(ratio - 1) >= MIN_RATIO_GAP and (ratio > 1) is (side > 0)


@dataclass(frozen=True)
class FirstPrices:
    """The mean tokens of the first calls of trials without faults: of monolithic's call, and of static's calls by subtask. A
    subtask that was never asked for has 0."""

    monolithic: float
    static: Mapping[str, float]

    @property
    def pass_price(self) -> float:
        """The tokens of a pass of static: the sum over its subtasks."""
        return sum(self.static.values())

    def round_of(self, architecture: str, asked_again: Mapping[str, Sequence[str]]) -> float | None:
        """Return the tokens of a round of an architecture by the closed form. None for an architecture without a closed form.

        Args:
            architecture: The architecture.
            asked_again: Architecture -> the subtasks that its round asks for again. A round of monolithic is its whole call.
        """
        if architecture == "monolithic":
            return self.monolithic
        return sum(self.static[name] for name in asked_again[architecture]) if architecture in asked_again else None


def first_prices(run: Run, scenario: str, model: str) -> FirstPrices | None:
    """Return the mean tokens of a model's first calls on a scenario. None if monolithic or static has no fault-free calls."""
    calls = first_calls(run.calls[(run.calls["scenario"] == scenario) & (run.calls["model"] == model)])
    calls = calls.assign(tokens=calls["tokens_in"] + calls["tokens_out"])
    monolithic, static = mean_price(calls_of(calls, "monolithic")["tokens"]), calls_of(calls, "static")
    if monolithic is None or static.empty:
        return None
    pack = run.pack(scenario)
    names = [name for stage in pack.stages for name in stage] or list(pack.subtasks)
    return FirstPrices(monolithic, {name: mean_price(static.loc[static["subtask"] == name, "tokens"]) or 0.0 for name in names})


def calls_of(frame: pd.DataFrame, architecture: str) -> pd.DataFrame:
    """Return the rows of one architecture."""
    return frame[frame["architecture"] == architecture]


def first_calls(calls: pd.DataFrame) -> pd.DataFrame:
    """Return the first calls of trials without faults."""
    return calls[(calls["plan"] == FAULT_FREE) & (calls["cause"] == "first")]


def mean_price(prices: pd.Series[float]) -> float | None:
    """Return the mean of the known prices; None if no price is known."""
    return mean_of(prices.dropna().astype(float)).mean
