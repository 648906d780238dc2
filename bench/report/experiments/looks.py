"""Signs that the experiments' figures share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from bench.report.model_figures import MARKERS

Sign = tuple[str, str]
"""A marker and a colour."""


def signs_of(names: Sequence[str]) -> Mapping[str, Sign]:
    return dict(zip(names, cycle(MARKERS), strict=False))
