"""Units are resampled as often as they are, and what is kept of it stays small."""

from __future__ import annotations

import tracemalloc
from collections import deque

import numpy as np

from bench.read.analysis.statistics.bootstrap import resampled


def test_each_resample_has_as_many_units_as_there_are() -> None:
    counts = np.concatenate(list(resampled(7, 50)))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()


def test_of_many_units_a_byte_each_is_kept_in_a_resample() -> None:
    units, resamples = 70_000, 40
    tracemalloc.start()
    try:
        deque(resampled(units, resamples), maxlen=0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert units * resamples <= kept < 1.5 * units * resamples
