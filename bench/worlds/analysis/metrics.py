"""What is measured of a trial in a world."""

from __future__ import annotations

from collections.abc import Callable

from bench.analysis.metrics import Metric
from bench.analysis.trial import TrialReading
from bench.runtime.events import of_kind
from bench.worlds.analysis.workflow import (
    compensations,
    completion_minutes,
    refused_for,
    steps_of,
    tool_retries,
    waiting_for_people,
)
from bench.worlds.environment.damage import DAMAGES
from bench.worlds.runtime.events import ToolCalled, WorldEnded


def _ended(trial: TrialReading) -> WorldEnded | None:
    """Return what became of its world; None where it has none."""
    return next(iter(of_kind(trial.record.events, WorldEnded)), None)


def _damaged(kind: str) -> Callable[[TrialReading], int | None]:
    """Return how often this kind of damage happened, by the journal; None where there is no world."""
    return lambda trial: ended.damage.get(kind) if (ended := _ended(trial)) else None


def _recount_agrees(trial: TrialReading) -> bool | None:
    """Return whether the count from the world's tables says the same as that from its journal, of all that both tell."""
    if (ended := _ended(trial)) is None:
        return None
    told = {kind: count for kind, count in ended.recount.items() if count is not None}
    return all(ended.damage.get(kind) == count for kind, count in told.items())


METRICS = (
    *(Metric(f"damage_{kind}", "Int64", _damaged(kind), harm=True) for kind in DAMAGES),
    Metric("recount_agrees", "boolean", _recount_agrees),
    Metric("lives", "Int64", lambda trial: ended.lives if (ended := _ended(trial)) else None),
    Metric("tool_calls", "int64", lambda trial: len(of_kind(trial.record.events, ToolCalled))),
    Metric("tool_retries", "int64", lambda trial: tool_retries(trial.record.events)),
    Metric("compensated_pairs", "int64", lambda trial: trial.once(compensations)[0]),
    Metric("compensated_out_of_order", "int64", lambda trial: trial.once(compensations)[1]),
    Metric("stale_refused", "int64", lambda trial: refused_for(trial.record.events, "stale")),
    Metric("calls_forbidden", "int64", lambda trial: refused_for(trial.record.events, "forbidden")),
    Metric("calls_over_quota", "int64", lambda trial: refused_for(trial.record.events, "quota", "throttled")),
    Metric("steps_done", "int64", lambda trial: sum(step.done for step in trial.once(steps_of))),
    Metric("steps_failed", "int64", lambda trial: sum(bool(step.why) for step in trial.once(steps_of))),
    Metric("completion_minutes", "Int64", lambda trial: completion_minutes(trial.record.events, trial.once(steps_of))),
    Metric("waiting_for_people_minutes", "int64", lambda trial: waiting_for_people(trial.record.events)),
)
