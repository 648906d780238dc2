"""Depth: what a failure costs by where in the pipeline it strikes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.arms import Arm, Arms, Condition, arms_of
from bench.analysis.experiments.plans import Written, single_faults
from bench.analysis.frames import Run
from bench.analysis.statistics import Mean
from bench.errors import ResultsError


@dataclass(frozen=True)
class Struck:
    """An arm whose fault strikes one subtask, the `position`th of `length`; `ahead`: how many subtasks lie from it to the next
    checkpoint, both counted. `retry_tokens`: those of a trial that did not end in an error."""

    scenario: str
    model: str
    architecture: str
    subtask: str
    position: int
    length: int
    ahead: int | None
    retry_tokens: Mean
    arm: Arm


def depth(run: Run) -> list[Struck]:
    """By scenario, model, position and architecture. Where two plans strike the same subtask the first one counts.

    Raises ResultsError where not at least two subtasks of a scenario are struck by a plan of their own.
    """
    arms = arms_of(run)
    found = [
        struck
        for scenario in run.names("scenario")
        for model in run.names("model")
        for struck in _struck(run, arms, scenario, model)
    ]
    if len({(one.scenario, one.position) for one in found}) < 2:
        raise ResultsError("needs fault plans with one fault each, of the same kind, at different subtasks")
    return found


def _struck(run: Run, arms: Arms, scenario: str, model: str) -> Iterator[Struck]:
    about = run.manifest["scenarios"].get(scenario, {})
    subtasks: Sequence[str] = about.get("subtasks", ())
    for subtask, plan in _plans_by_subtask(single_faults(run), scenario.partition(":")[0], subtasks).items():
        for architecture, arm in arms.get(Condition(scenario, model, plan), {}).items():
            ahead = _ahead(subtask, about.get("stages", ()))
            position, retried = subtasks.index(subtask) + 1, arm.mean("retry_tokens")
            yield Struck(scenario, model, architecture, subtask, position, len(subtasks), ahead, retried, arm)


def _plans_by_subtask(faults: Mapping[str, Written], pack: str, subtasks: Sequence[str]) -> dict[str, str]:
    """Subtask -> the first plan whose one fault strikes it, in the pipeline's order."""
    plans: dict[str, str] = {}
    for plan, fault in faults.items():
        named = fault["subtask"]
        subtask = str(named.get(pack, "")) if isinstance(named, Mapping) else str(named)
        if subtask in subtasks:
            plans.setdefault(subtask, plan)
    return {subtask: plans[subtask] for subtask in subtasks if subtask in plans}


def _ahead(subtask: str, stages: Sequence[Sequence[str]]) -> int | None:
    return next((len(stage) - stage.index(subtask) for stage in stages if subtask in stage), None)
