"""Find copies: trials whose result another trial fixed. A copy is no evidence of its own, so all copies count once.

A simulated model that never errs answers each repetition alike. If all repetitions of an instance gave the same result, they
count as one. If not, something else was drawn (a person's answer, a fault), and all count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.read.analysis.frames import Run


def is_error_free(run: Run, model: str) -> bool:
    """Return whether a model gives the same outputs in each repetition: it is simulated, without failures or a bank of
    replies."""
    parameters = run.parameters_of(model)
    errs = (parameters.model_extra or {}).get
    return run.is_simulated(model) and parameters.kind == "simulated" and not errs("failure_rate") and not errs("bank")


def counted_trials(run: Run, model: str, groups: Sequence[Hashable], values: Sequence[object]) -> NDArray[np.bool_]:
    """Return for each trial of a model whether it counts (`first_of_copies`). All count if the model is real or can err."""
    return first_of_copies(groups, values) if is_error_free(run, model) else np.ones(len(groups), dtype=bool)


def first_of_copies(groups: Sequence[Hashable], values: Sequence[object]) -> NDArray[np.bool_]:
    """Return for each trial whether it counts. If all trials of a group have the same values, the first one counts and the
    others are copies."""
    by_group: dict[Hashable, set[str]] = {}
    for group, value in zip(groups, values, strict=True):
        by_group.setdefault(group, set()).add(repr(value))
    seen: set[Hashable] = set()
    counts = []
    for group in groups:
        counts.append(len(by_group[group]) > 1 or group not in seen)
        seen.add(group)
    return np.array(counts, dtype=bool)
