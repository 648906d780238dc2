"""Statistics as pure functions on numbers: each result carries its uncertainty, and None stands where there is none.

Nothing here returns NaN. What does not exist (the mean of nothing, the spread of one value) is None. What is drawn at random
is drawn from a generator that the caller hands in, or from one that begins at the same declared seed in each call, so that a
report made again has the same bytes. How well the intervals and tests hold at our sizes is in `reports/calibration`.
"""

from bench.analysis.statistics.clusters import FEWEST_PACKS, Pooled, Refused, over_packs_at_large, over_these_packs
from bench.analysis.statistics.denominators import Denominators, denominators, ranking_depends
from bench.analysis.statistics.families import holm
from bench.analysis.statistics.groups import Groups, groups_differ, rates_differ
from bench.analysis.statistics.intervals import CONFIDENCE, Mean, Method, bootstrap_of, known, mean_of, median
from bench.analysis.statistics.limits import Limit, limits_of
from bench.analysis.statistics.paired import (
    Paired,
    PairedTest,
    Ratio,
    paired_difference,
    paired_test,
    rank_biserial,
    ratio_of_means,
)
from bench.analysis.statistics.power import RequiredPairs, required_pairs
from bench.analysis.statistics.rates import (
    RateDifference,
    Share,
    paired_rates,
    pass_at_k,
    pass_hat_k,
    share_of,
)
from bench.analysis.statistics.seeded import generator

__all__ = [
    "CONFIDENCE",
    "FEWEST_PACKS",
    "Denominators",
    "Groups",
    "Limit",
    "Mean",
    "Method",
    "Paired",
    "PairedTest",
    "Pooled",
    "RateDifference",
    "Ratio",
    "Refused",
    "RequiredPairs",
    "Share",
    "bootstrap_of",
    "denominators",
    "generator",
    "groups_differ",
    "holm",
    "known",
    "limits_of",
    "mean_of",
    "median",
    "over_packs_at_large",
    "over_these_packs",
    "paired_difference",
    "paired_rates",
    "paired_test",
    "pass_at_k",
    "pass_hat_k",
    "rank_biserial",
    "ranking_depends",
    "rates_differ",
    "ratio_of_means",
    "required_pairs",
    "share_of",
]
