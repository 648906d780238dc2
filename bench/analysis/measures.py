"""What is measured of a trial: a measure is one row here, and so one row of every table that shows them all."""

from __future__ import annotations

from dataclasses import dataclass


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
SPENT = (Measure("cost", "Cost $", 5), COSTS[0], COSTS[1])
"""What is put by each solved task."""
COMPARED = (COSTS[0], RETRY_TOKENS, COSTS[1], SCORE)
"""What arms are compared by, pair by pair."""
