"""The recovery scorecard: what happened to each system's work and its world when the system was killed and started again."""

from bench.worlds.read.scorecard.build import scorecard_of
from bench.worlds.read.scorecard.card import ALL_CRASHES, VERSION, Scorecard, ScorecardRow, Struck, as_json, read_scorecard
from bench.worlds.read.scorecard.compare import CardComparison, compare_scorecards

__all__ = [
    "ALL_CRASHES",
    "VERSION",
    "CardComparison",
    "Scorecard",
    "ScorecardRow",
    "Struck",
    "as_json",
    "compare_scorecards",
    "read_scorecard",
    "scorecard_of",
]
