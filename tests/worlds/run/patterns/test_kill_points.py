"""A kill at every moment of a pattern's process, and what is left of it when the next process has gone on.

A moment is a step of the process: before a call of the model, around each call of a tool, around each write to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from trips import BARE, REMEDIED, Says, Trip, effects, environment, harm, stored, worked

from bench.record.form import Form
from bench.record.world_events import WorldEnded
from bench.run.architectures.registry import ARCHITECTURES, load_architecture
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Model
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.entries import MODEL_LED
from bench.worlds.run.environment import Environment
from bench.worlds.run.patterns.compensation import FOR_A_PERSON
from bench.worlds.run.runtime.process import Process, When

PLAIN, FULL, PRIVATE, DEAR = Trip(1, 300), Trip(1, 300, hotel="full"), Trip(1, 800, reason="private"), Trip(1, 900)
PLANNED = ["book_flight", "book_hotel", "book_car", "pay", "send"]


class DiesOnce(Process):
    """Dies at the moment with this number."""

    moment: int
    passed = 0

    def _die_if(self, due: Callable[[When], bool]) -> None:
        self.passed += not self.is_dead
        if self.passed == self.moment and not self.is_dead:
            self.die()
        super()._die_if(due)


def worked_with_kill(pattern: str, form: Form, world: Environment, moment: int, model: Model | None = None) -> TrialResult:
    whole = load_architecture(ARCHITECTURES[pattern], form=form)

    async def dying(task: Task, workbench: Workbench) -> None:
        process: Any = workbench.world.acting.process
        if workbench.world.life == 1:
            process.__class__, process.moment = DiesOnce, moment
        await whole(task, workbench)

    return worked(dying, world=world, model=model)


def killed(pattern: str, form: Form, world: Environment, *lines: str) -> Iterator[TrialResult]:
    """The trial with a kill at each of its moments. `lines` are what its model says before it says what is right.

    A pattern that is led by a model has many more moments, and every third of them is tried.
    """
    for moment in count(1, 3 if pattern in MODEL_LED else 1):
        result = worked_with_kill(pattern, form, world, moment, Says(*lines) if lines else None)
        if next(event.lives for event in result.record.events if isinstance(event, WorldEnded)) == 1:
            assert moment > len(PLANNED)
            return
        yield result


def left(result: TrialResult) -> tuple[object, ...]:
    return result.record.outcome, harm(result), effects(result), stored(result, FOR_A_PERSON)


@pytest.mark.parametrize("pattern", MODEL_LED)
@pytest.mark.parametrize("trip", [PRIVATE, *(pytest.param(trip, marks=pytest.mark.endurance) for trip in (PLAIN, FULL, DEAR))])
def test_with_remedies_a_kill_at_any_moment_changes_no_effect_and_no_note_for_a_person(pattern: str, trip: Trip) -> None:
    calm = worked(pattern, REMEDIED, trips=[trip])
    for result in killed(pattern, REMEDIED, environment([trip])):
        assert left(result) == left(calm)


@pytest.mark.parametrize("pattern", MODEL_LED)
def test_bare_a_kill_doubles_at_most_the_effect_of_the_step_in_which_it_struck(pattern: str) -> None:
    doubled = list[str]()
    for result in killed(pattern, BARE, environment([PLAIN])):
        again = [tool for tool in PLANNED if effects(result).count(tool) == 2]
        assert sorted(effects(result)) == sorted([*PLANNED, *again]) and len(again) <= 1
        assert harm(result).get("doubled", 0) == len(again)
        doubled += again
    assert set(doubled) == set(PLANNED)
