"""The method for the interval of each kind of number. `reports/calibration` decided each choice and gives the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

MethodKind = Literal["difference", "amount", "score", "ratio", "rate", "rate by instance", "difference of rates", "break-even"]
"""An amount cannot be negative (tokens, seconds, calls, dollars). A score is between 0 and 1."""


@dataclass(frozen=True)
class Method:
    name: str
    reason: str


METHODS: Mapping[MethodKind, Method] = MappingProxyType(
    {
        "difference": Method(
            "Student's t",
            "a difference has no bound, and those of pairs lie about as evenly as their mean needs; below ten pairs both "
            "percentile and BCa hold the truth less often",
        ),
        "amount": Method(
            "Student's t of the mean's logarithm",
            "never below 0; where values are many zeros and a few large ones it holds the truth more often than Student's t "
            "as it stands, and where they lie close together it is the same; the bootstrap-t has no upper bound there",
        ),
        "score": Method("Student's t of the mean's logit", "never below 0 or above 1, and else as of an amount"),
        "ratio": Method(
            "Student's t of the ratio's logarithm",
            "never below 0 and never without an upper bound, as Fieller's is; where the upper mean is many zeros and a few "
            "large values it holds the truth more often",
        ),
        "rate": Method("Wilson's", "right in the mean over all rates; Clopper and Pearson's is wider than it need be"),
        "rate by instance": Method(
            "Wilson's, of the effective number",
            "outputs of one trial are alike: each taken by itself, they give intervals that are far too narrow",
        ),
        "difference of rates": Method("Bonett and Price's", "keeps its level at every N, also where pairs mostly agree"),
        "break-even": Method(
            "expanded percentiles of resampled pairs",
            "a ratio of two differences, either of which may be none: its ends may lie at 0 or nowhere, as no formula's can",
        ),
    }
)


def ends(mean: float, error: float, kind: Literal["difference", "amount", "score"]) -> tuple[float, float]:
    """Return the ends of a mean's interval. `error` is the standard error times the quantile of t. The interval is symmetric on
    the scale of the kind.

    The error is moved to that scale by the delta method: by the scale's slope at the mean. An amount's mean is above 0 and a
    score's between 0 and 1: otherwise all values are equal, and there is no interval.

    Source: Oehlert, A note on the delta method, The American Statistician 46 (1992).
    """
    if kind == "difference":
        return mean - error, mean + error
    if kind == "amount":
        factor = math.exp(error / mean)
        return mean / factor, mean * factor
    odds, factor = mean / (1 - mean), math.exp(error / (mean * (1 - mean)))
    return odds / factor / (1 + odds / factor), odds * factor / (1 + odds * factor)
