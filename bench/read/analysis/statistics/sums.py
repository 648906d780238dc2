"""The ratio of two totals, of which the first can be negative: effects divided by crashes, for instance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.read.analysis.statistics.intervals import mean_of, t_quantile
from bench.read.analysis.statistics.paired import Ratio


def ratio_of_sums(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Return the sum of `above` divided by the sum of `below`, with the 95% interval by Student's t and the delta method.

    Each unit is a cluster: an instance with all its trials, or a trial if there is one instance. There is no interval below two
    units, or if all units have the same ratio, which shows no spread.

    Source: Cochran, Sampling Techniques, 3rd edition (1977), section 6.4. `METHODS` says why Student's t for what has a sign.
    Raises ValueError for a unit whose `below` is not above 0.
    """
    units = len(below)
    if not all(amount > 0 for amount in below):
        raise ValueError("a unit has nothing to put its total by")
    if not units:
        return Ratio(0, None, None, None)
    whole = math.fsum(below)
    ratio = math.fsum(above) / whole
    if units == 1 or len({value / by for value, by in zip(above, below, strict=True)}) == 1:
        return Ratio(units, ratio, None, None)
    rest = mean_of(value - ratio * by for value, by in zip(above, below, strict=True))
    error = t_quantile(units - 1) * (rest.sd or 0.0) * math.sqrt(units) / whole
    return Ratio(units, ratio, ratio - error, ratio + error)
