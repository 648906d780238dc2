"""Find copies: trials that repeat another trial without any random draw. A copy is no further evidence, so copies count once.

A simulated model that never errs gives the same answer in each repetition. If all repetitions of an instance have the same
result, they count as one. If not, something else was drawn at random (a person's answer, a fault), and all count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.read.analysis.frames import Run


def is_error_free(run: Run, model: str) -> bool:
    """Whether a model gives the same outputs in each repetition: it is simulated, without failures, errors or a bank of
    replies."""
    parameters = run.parameters_of(model)
    settings = parameters.model_extra or {}
    can_err = any(settings.get(name) for name in ("failure_rate", "error_rate", "bank"))
    return run.is_simulated(model) and parameters.kind == "simulated" and not can_err


def counted_trials(run: Run, model: str, groups: Sequence[Hashable], values: Sequence[object]) -> NDArray[np.bool_]:
    """Return for each trial of a model whether it counts, as `first_of_copies` says; all count if the model is real or can
    err."""
    return first_of_copies(groups, values) if is_error_free(run, model) else np.ones(len(groups), dtype=bool)


def first_of_copies(groups: Sequence[Hashable], values: Sequence[object]) -> NDArray[np.bool_]:
    """Return for each trial whether it counts. If all trials of a group have the same values, the first counts and the others
    are copies; else all count."""
    by_group: dict[Hashable, set[str]] = {}
    for group, value in zip(groups, values, strict=True):
        by_group.setdefault(group, set()).add(repr(value))
    seen: set[Hashable] = set()
    counts = []
    for group in groups:
        counts.append(len(by_group[group]) > 1 or group not in seen)
        seen.add(group)
    return np.array(counts, dtype=bool)
