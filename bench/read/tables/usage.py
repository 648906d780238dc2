"""Our tokenizer's count against the provider's: each model's ratio, and the calls far from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.read.analysis.statistics import median

OUTLIER_SHARE = 0.25
OUTLIER_TOKENS = 16
"""The chat format's own tokens alone can move a short text by more than a quarter."""


@dataclass(frozen=True)
class UsageRatio:
    """The provider's token counts divided by ours, in one direction.

    calls      calls compared: the provider told its count, and ours is above 0
    untold     calls with a reply but without the provider's count
    ratio      the median of provider/ours
    outliers   (trial, call)
    """

    direction: Literal["in", "out"]
    calls: int
    untold: int
    ratio: float | None
    outliers: tuple[tuple[str, int], ...]


def usage_ratios(calls: pd.DataFrame) -> tuple[UsageRatio, UsageRatio]:
    """Return the ratios of one model's calls, for prompts and for replies."""
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
