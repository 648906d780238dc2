"""Depth: what a failure costs by where in the pipeline it strikes, and by how long the pipeline is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis.arms import Arm, Arms, Condition, arms_of
from bench.analysis.experiments.context import slope_of
from bench.analysis.experiments.plans import Written, single_faults
from bench.analysis.frames import Run
from bench.analysis.statistics import Mean
from bench.errors import ResultsError

End = Literal["first", "last"]


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

    @property
    def end(self) -> End | None:
        """Whether it is the pipeline's first or last subtask. Where there is but one, it is the first."""
        if self.position == 1:
            return "first"
        return "last" if self.position == self.length else None


@dataclass(frozen=True)
class Lengthened:
    """One architecture on one pack in several sizes, the fault at the same end of the pipeline.

    lengths  (how many subtasks, the arm of that size), ascending
    slope    retry tokens more by subtask added, as `bench.analysis.experiments.context` makes its slope
    """

    pack: str
    model: str
    end: End
    architecture: str
    lengths: tuple[tuple[int, Arm], ...]
    slope: Mean


@dataclass(frozen=True)
class Depth:
    """Either may be empty, not both."""

    positions: tuple[Struck, ...]
    lengths: tuple[Lengthened, ...]


def depth(run: Run) -> Depth:
    """By position: every scenario that is struck at two subtasks or more; by length: every pack in sizes that differ in it.

    Raises ResultsError where the run has neither.
    """
    struck = _struck(run)
    found = Depth(_at_several_positions(struck), _at_several_lengths(struck))
    if not (found.positions or found.lengths):
        needed = "fault plans with one fault each, of the same kind, at different subtasks, or a pack in several lengths"
        raise ResultsError(f"needs {needed}")
    return found


def _struck(run: Run) -> list[Struck]:
    """By scenario, model, position and architecture. Where two plans strike the same subtask the first one counts."""
    arms = arms_of(run)
    return [
        struck
        for scenario in run.names("scenario")
        for model in run.names("model")
        for struck in _struck_in(run, arms, scenario, model)
    ]


def _struck_in(run: Run, arms: Arms, scenario: str, model: str) -> Iterator[Struck]:
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


def _at_several_positions(struck: Sequence[Struck]) -> tuple[Struck, ...]:
    positions: dict[str, set[int]] = {}
    for one in struck:
        positions.setdefault(one.scenario, set()).add(one.position)
    return tuple(one for one in struck if len(positions[one.scenario]) > 1)


def _at_several_lengths(struck: Iterable[Struck]) -> tuple[Lengthened, ...]:
    """By pack, model, end and architecture. Of two sizes of one length the first counts."""
    found: dict[tuple[str, str, End, str], dict[int, Arm]] = {}
    for one in struck:
        if one.end and len(one.arm.usable):
            key = (one.scenario.partition(":")[0], one.model, one.end, one.architecture)
            found.setdefault(key, {}).setdefault(one.length, one.arm)
    several = [(key, tuple(sorted(arms.items(), key=lambda of: of[0]))) for key, arms in found.items() if len(arms) > 1]
    return tuple(Lengthened(*key, lengths, slope_of(lengths)) for key, lengths in several)
