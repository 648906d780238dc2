"""Find copies: trials whose result another trial fixed. A copy is no evidence of its own, so all copies count once.

A simulated model that never errs answers each repetition alike. If all repetitions of an instance gave the same result, they
count as one. If not, something else was drawn (a person's answer, a fault), and all count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.read.analysis.frames import Run


def never_errs(run: Run, model: str) -> bool:
    """Return whether a model gives the same outputs in each repetition: it is simulated, without failures or a bank of
    replies."""
    parameters = run.parameters_of(model)
    errs = (parameters.model_extra or {}).get
    return run.is_simulated(model) and parameters.kind == "simulated" and not errs("failure_rate") and not errs("bank")


def counting(run: Run, model: str, groups: Sequence[Hashable], values: Sequence[object]) -> NDArray[np.bool_]:
    """Return for each trial of a model whether it counts (`counted_once`). All trials count if the model is real or can err."""
    return counted_once(groups, values) if never_errs(run, model) else np.ones(len(groups), dtype=bool)


def counted_once(groups: Sequence[Hashable], values: Sequence[object]) -> NDArray[np.bool_]:
    """Return whether each trial counts. If all trials of a group have the same values, only the first does."""
    by_group: dict[Hashable, set[str]] = {}
    for group, value in zip(groups, values, strict=True):
        by_group.setdefault(group, set()).add(repr(value))
    seen: set[Hashable] = set()
    counts = []
    for group in groups:
        counts.append(len(by_group[group]) > 1 or group not in seen)
        seen.add(group)
    return np.array(counts, dtype=bool)
