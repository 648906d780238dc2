"""The commonest agent keeps nothing and sends no key: how often it began anew is said, and what to change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from driven import driven, matrix_of
from trials import Fault

from bench.record.record import TrialRecord
from bench.rerun.began_anew import RestartCount, restart_lines
from bench.rerun.diagnose import diagnose
from bench.rerun.diagnosis_text import diagnosis_lines, trial_lines
from bench.rerun.rerun import RerunArm, RerunnableTrial
from bench.run.trial import loop

KILLED: list[Fault] = [{"point": "process", "effect": "unacknowledged", "tool": "refund", "attempts": [1, 2]}]
"""Twice after an order was reserved for, which every process does first."""


@pytest.fixture(scope="module")
def careless() -> TrialRecord:
    return driven(["python", "clerk.py"], KILLED).record


def test_an_agent_without_notes_and_keys_begins_anew_at_each_restart(careless: TrialRecord) -> None:
    anew = RestartCount.of(careless)
    assert anew.from_start == anew.restarts > 0
    assert not anew.has_keys
    sentence, remedy = restart_lines([careless])
    restarts = f"{anew.from_start} of {anew.restarts} restarts"
    assert sentence == f"The agent began its work anew at {restarts}: it keeps no state and sends no key."
    assert "Idempotency-Key" in remedy and "docs/own_agent_in_a_world.md" in remedy


def test_an_agent_that_keeps_notes_goes_on(careless: TrialRecord) -> None:
    careful = driven(["python", "clerk.py", "careful"], KILLED).record
    assert RestartCount.of(careful).from_start == 0
    assert RestartCount.of(careful).restarts > 0
    assert restart_lines([careful]) == []
    assert " in 1 of 2 trials: " in restart_lines([careless, careful])[0]


def test_an_effect_that_is_repeated_after_a_crash_is_no_beginning_anew(careless: TrialRecord) -> None:
    first = next(event for event in careless.events if event.kind == "tool" and event.access != "read")  # type: ignore[union-attr]
    again = replace(first, life=2)  # type: ignore[type-var]
    assert RestartCount.of(replace(careless, events=(first, again))) == RestartCount(0, 1, False)


def test_the_diagnosis_says_so_in_place_of_other_advice() -> None:
    matrix = matrix_of(["python", "clerk.py"], KILLED)
    arm = RerunArm(matrix.specs[0], matrix)
    diagnosis = loop.run(diagnose(RerunnableTrial(Path("commands"), loop.run(arm.run(arm.spec.plan)).record, arm)))
    assert any(line.startswith("The agent began its work anew at ") for line in trial_lines(diagnosis))
    lines = diagnosis_lines("commands", 1, [diagnosis])
    assert [line.split(":")[0] for line in lines if line.startswith("What to do")] == ["What to do about it"]
