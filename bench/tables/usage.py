"""Our tokenizer beside the provider's own count: the ratio that a model has, and the calls that stray from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.analysis.statistics import median

OUTLIER_SHARE = 0.25
OUTLIER_TOKENS = 16
"""A short text may be off by more than a quarter through the chat format's own tokens alone."""


@dataclass(frozen=True)
class UsageRatio:
    """calls      compared: the provider told its count, and we counted something
    untold     calls with a reply for which it told none
    ratio      the median of provider/ours
    outliers   (trial, call)
    """

    direction: Literal["in", "out"]
    calls: int
    untold: int
    ratio: float | None
    outliers: tuple[tuple[str, int], ...]


def usage_ratios(calls: pd.DataFrame) -> tuple[UsageRatio, UsageRatio]:
    """For one model's calls, the prompts' and the replies' tokens."""
    return _usage(calls, "in"), _usage(calls, "out")


def _usage(calls: pd.DataFrame, direction: Literal["in", "out"]) -> UsageRatio:
    replied = calls[calls["failure"] == ""]
    counted = replied[replied[f"usage_{direction}"].notna()]
    compared = counted[counted[f"tokens_{direction}"] > 0]
    ours, theirs = compared[f"tokens_{direction}"].tolist(), compared[f"usage_{direction}"].tolist()
    ratio = median([their / our for our, their in zip(ours, theirs, strict=True)])
    named = zip(compared["trial"].tolist(), compared["call"].tolist(), ours, theirs, strict=True)
    outliers = tuple((trial, call) for trial, call, our, their in named if ratio is not None and _strays(their, ratio * our))
    return UsageRatio(direction, len(compared), len(replied) - len(counted), ratio, outliers)


def _strays(counted: int, expected: float) -> bool:
    return abs(counted - expected) > max(OUTLIER_SHARE * expected, OUTLIER_TOKENS)
