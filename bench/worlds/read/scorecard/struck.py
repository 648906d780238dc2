"""Find which kind of failure struck which trial."""

from __future__ import annotations

import pandas as pd

from bench.read.analysis.frames import Run
from bench.worlds.read.scorecard.card import ALL_CRASHES

CRASH_POINTS = ("before", "unacknowledged", "unrecorded", "recorded", "mid_stream")
SHOWN_FIRST = (ALL_CRASHES, *(f"process:{point}" for point in CRASH_POINTS), "tool:lost_ack")
MIXED, NOT_STRUCK = "mixed", ""
"""The values of the column `by` for trials that several kinds of failures struck, and for trials that none struck."""


def kinds_of_failure(run: Run, plans: list[str]) -> list[str]:
    """Return the kinds of failure of these plans: crashes first, in the order of the moments of an effect."""
    kinds = {f"{fault.point}:{fault.effect}" for plan in plans for fault in run.config.faults_of(plan)}
    faults = run.faults[run.faults["plan"].isin(plans)]
    kinds |= {f"{point}:{effect}" for point, effect in zip(faults["point"], faults["effect"], strict=True)}
    if any(is_crash(kind) for kind in kinds):
        kinds.add(ALL_CRASHES)
    ranks = {name: rank for rank, name in enumerate(SHOWN_FIRST)}
    return sorted(kinds, key=lambda name: (ranks.get(name, len(ranks)), name))


def is_crash(by: str) -> bool:
    """Return whether this kind of failure is a crash."""
    return by.startswith("process:")


def belongs(by: str, kind: str) -> bool:
    """Return whether a trial that was struck by the failure `by` counts for this kind of failure."""
    return by == kind or (kind == ALL_CRASHES and is_crash(by))


def with_strikes(trials: pd.DataFrame, faults: pd.DataFrame) -> pd.DataFrame:
    """Add two columns to the trials. `by` is the failure that struck the trial ("" for none, `mixed` for several kinds,
    `process:*` for crashes at several points). `failures` is the number of processes that died, or of faults that were
    delivered."""
    delivered = faults[faults["delivered"]]
    kinds: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for trial, point, effect in zip(delivered["trial"], delivered["point"], delivered["effect"], strict=True):
        kinds.setdefault(trial, set()).add(f"{point}:{effect}")
        counts[trial] = counts.get(trial, 0) + 1
    by = [_failure_of(kinds.get(trial, set())) for trial in trials["trial"]]
    died = (trials["lives"].fillna(1).astype(int) - 1).clip(lower=1)  # after its last death no agent need have started again
    delivered_counts = [counts.get(trial, 0) for trial in trials["trial"]]
    failures = [deaths if is_crash(kind) else count for kind, deaths, count in zip(by, died, delivered_counts, strict=True)]
    return trials.assign(by=pd.array(by, dtype="str"), failures=failures)


def _failure_of(kinds: set[str]) -> str:
    """Return the value of the column `by` for a trial that these kinds of failure struck."""
    if not kinds:
        return NOT_STRUCK
    if len(kinds) == 1:
        return next(iter(kinds))
    return ALL_CRASHES if all(map(is_crash, kinds)) else MIXED
