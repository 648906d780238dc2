"""An answer that breaks its grader is wrong, with a note; a grader that is broken is an error."""

from __future__ import annotations

import errno
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from little_worlds import REFUNDS, world
from trials import TINY

from bench.run.experiment.grading import grade_of
from bench.run.sandbox import SandboxBroken
from bench.scenario import Answer, Grade, Scenario
from bench.worlds.run.environment import FinalWorld, final_world

WRONG = {**TINY.reference, "total": {"total": 43, "unit": "apples"}}


def breaking(error: BaseException, on_reference: bool = False) -> Scenario:
    """The pack with a grader that raises on wrong totals, or on every one."""

    def grade(answer: Answer, truth: Path) -> Grade:
        if on_reference or answer["total"].total != 42:
            raise error
        return TINY.grade(answer, truth)

    return replace(TINY, grade=grade, graded_by="another")


HOSTILE_WORDS = "\x1b[2J\nlong " * 999
ERRORS = [KeyError("a"), RecursionError("deep"), OverflowError(HOSTILE_WORDS), MemoryError(), OSError(errno.ENAMETOOLONG, "x")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_answer_that_makes_its_grader_raise_is_wrong_and_the_note_names_what_was_raised_and_where(error: Exception) -> None:
    scenario = breaking(error)
    grade = grade_of(scenario, scenario.answer_of(WRONG))
    assert (grade.correct, grade.score) == (False, 0.0)
    assert grade.note.startswith("the grader fails on this answer (experiment/test_grading.py:")
    assert type(error).__name__ in grade.note and grade.note.isprintable() and len(grade.note) < 400
    assert grade_of(scenario, scenario.answer_of(scenario.reference)).correct


def test_a_grader_that_raises_on_the_reference_too_is_an_error_of_the_pack() -> None:
    scenario = breaking(KeyError("a"), on_reference=True)
    with pytest.raises(KeyError):
        grade_of(scenario, scenario.answer_of(WRONG))


def test_a_sandbox_that_cannot_be_used_is_no_fault_of_the_answer() -> None:
    scenario = breaking(SandboxBroken("no launcher"))
    with pytest.raises(SandboxBroken):
        grade_of(scenario, scenario.answer_of(WRONG))


@pytest.mark.parametrize("on_reference", [False, True])
def test_a_world_that_makes_its_grader_raise_is_wrong_unless_the_reference_does_so_too(on_reference: bool) -> None:
    def grade(final: FinalWorld, truth: Path) -> Grade:
        grade = REFUNDS.grade(final, truth)
        if on_reference or not grade.correct:
            raise KeyError("a")
        return grade

    scenario = replace(REFUNDS, grade=grade)
    with closing(world()) as nothing_done:
        nothing_done.end()
        final = final_world(nothing_done.snapshot().content)
    if on_reference:
        with pytest.raises(KeyError):
            grade_of(scenario, final)
    else:
        assert grade_of(scenario, final).note.startswith("the grader fails on this answer")
