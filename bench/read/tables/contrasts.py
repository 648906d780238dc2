"""Contrasts between cells of an experiment. Each instance gives one value, and resampled instances give the intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.read.analysis.statistics import Mean, percentiles, resampled
from bench.read.render.cells import BoundedNumber


@dataclass(frozen=True)
class BootstrapMean:
    """The mean over instances, with its 95% interval by bootstrap. The interval is missing for fewer than two instances, or if
    all their values are equal."""

    value: float | None
    low: float | None
    high: float | None
    instances: int

    def cell(self, digits: int = 2) -> BoundedNumber:
        """Return the mean with its interval, as a table shows it."""
        return BoundedNumber.of(Mean(self.instances, self.value, None, self.low, self.high, "effect"), digits)


def bootstrap_mean(values: Mapping[str, float]) -> BootstrapMean:
    """Return the mean of `values`, one for each instance. Its interval has the expanded percentiles of 2,000 resamples of the
    instances."""
    if not values:
        return BootstrapMean(None, None, None, 0)
    numbers, instances = np.array([values[instance] for instance in sorted(values)], dtype=float), len(values)
    if instances < 2 or not np.ptp(numbers):
        return BootstrapMean(float(numbers.mean()), None, None, instances)
    resampled_means = np.concatenate([weights @ numbers / instances for weights in resampled(instances)])
    return BootstrapMean(float(numbers.mean()), *percentiles(resampled_means, instances), instances)
