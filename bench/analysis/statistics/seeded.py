"""Where random numbers come from."""

from __future__ import annotations

import numpy as np

SEED = 260515425
RESAMPLES = 9999
"""Of a bootstrap, and flips or permutations of a test that cannot list them all."""


def generator() -> np.random.Generator:
    """A new one at the declared seed: each call that is given none draws the same, whatever was drawn before it."""
    return np.random.default_rng(SEED)
