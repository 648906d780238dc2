"""Statistics as pure functions on numbers. Each result has its interval or p-value, or None if there is none.

Nothing here returns NaN. A number that does not exist (the mean of nothing, the spread of one value) is None. Random draws come
from the caller's generator, or from a generator with a declared seed that starts anew in each call, so that a report made again
has the same bytes. `reports/calibration` says how well the intervals and tests hold at our sizes.
"""

from bench.read.analysis.measure import Measure
from bench.read.analysis.statistics.bootstrap import percentiles, resampled
from bench.read.analysis.statistics.clusters import Pair, by_unit, effective_number, in_common, independent_number
from bench.read.analysis.statistics.intervals import CONFIDENCE, Mean, amount_of, mean_of, median
from bench.read.analysis.statistics.limits import Limit, Limited, has_width, is_narrow, limits_of
from bench.read.analysis.statistics.mcnemar import RequiredInstances, TwoByTwo, mcnemar_test, required_instances, two_by_two
from bench.read.analysis.statistics.paired import (
    PairedMean,
    Ratio,
    differences_of,
    paired_difference,
    ratio_of_means,
    ratio_of_sums,
)
from bench.read.analysis.statistics.pass_hat import PassHat, pass_hat
from bench.read.analysis.statistics.power import RequiredPairs, found_difference, required_pairs
from bench.read.analysis.statistics.rates import (
    Denominators,
    RateDifference,
    Share,
    exact_share,
    exact_share_by_instance,
    paired_rates,
    ranking_depends,
    share_by_instance,
    share_of,
)
from bench.read.analysis.statistics.reach import beyond_reach, floor_verdict, open_verdict
from bench.read.analysis.statistics.significance import (
    PairedTest,
    generator,
    holm,
    paired_test,
    sign_flip_test,
)

__all__ = [
    "CONFIDENCE",
    "Denominators",
    "Limit",
    "Limited",
    "Mean",
    "Measure",
    "Pair",
    "PairedMean",
    "PairedTest",
    "PassHat",
    "RateDifference",
    "Ratio",
    "RequiredInstances",
    "RequiredPairs",
    "Share",
    "TwoByTwo",
    "amount_of",
    "beyond_reach",
    "by_unit",
    "differences_of",
    "effective_number",
    "exact_share",
    "exact_share_by_instance",
    "floor_verdict",
    "found_difference",
    "generator",
    "has_width",
    "holm",
    "in_common",
    "independent_number",
    "is_narrow",
    "limits_of",
    "mcnemar_test",
    "mean_of",
    "median",
    "open_verdict",
    "paired_difference",
    "paired_rates",
    "paired_test",
    "pass_hat",
    "percentiles",
    "ranking_depends",
    "ratio_of_means",
    "ratio_of_sums",
    "required_instances",
    "required_pairs",
    "resampled",
    "share_by_instance",
    "share_of",
    "sign_flip_test",
    "two_by_two",
]
