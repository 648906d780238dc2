"""Outside of a world a verifier that knows what was struck, and a repair with its reason, are asked as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from trials import ROOTS

from bench.common.errors import NotRecorded
from bench.record.messages import Timing
from bench.rerun.diagnose import Diagnosis, FailedEntry, counts_by_verdict, diagnose, is_failed
from bench.rerun.diagnosis_text import diagnosis_lines, trial_lines
from bench.rerun.mended_parts import IGNORES_REASONS, NO_STRUCK_OUTPUT, NO_WORLD
from bench.rerun.rerun import RerunArm, RerunnableTrial
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.models.base import Request
from bench.run.models.rejections import REJECTED
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.trial import loop
from bench.scenario import Json, Scenario

WRONG = [{"point": "output", "effect": "wrong_value", "subtask": "total", "attempts": [1]}]
ARCHITECTURES = ("monolithic", "static", "runtime_structured")


class Listening(SimulatedModel):
    """A model that forgets a field of `total` until it is told why that was rejected."""

    timing: Timing = "recorded"

    def _output(self, scenario: Scenario, name: str, request: Request, draw: Random) -> Json | str:
        right = super()._output(scenario, name, request, draw)
        text = request.messages[-1].content
        hears = REJECTED in text and "Field required" in text
        if name != "total" or hears or not isinstance(right, dict):
            return right
        return {field: value for field, value in right.items() if field != "unit"}


class Recorded(Listening):
    """The same, with no reply to any reason."""

    def _output(self, scenario: Scenario, name: str, request: Request, draw: Random) -> Json | str:
        if REJECTED in request.messages[-1].content:
            raise NotRecorded("no reply to a reason")
        return super()._output(scenario, name, request, draw)


def diagnosed(
    architecture: str, faults: Sequence[Mapping[str, Any]], model: type[SimulatedModel] = SimulatedModel, **settings: Any
) -> Diagnosis:
    values = {
        "name": "outside",
        "scenarios": ["tiny"],
        "architectures": [architecture],
        "models": ["m"],
        "model": {"m": {"kind": "simulated"}},
        "plans": ["plan"],
        "plan": {"plan": {"faults": faults}},
        "repetitions": 1,
        "seed": 3,
        **settings,
    }
    matrix = build_matrix(Config.model_validate(values), ROOTS, "code")
    matrix = replace(matrix, models={"m": model("m", SimulatedSettings(), matrix.scenarios)})
    arm = RerunArm(matrix.specs[0], matrix)
    record = loop.run(arm.run(arm.spec.plan)).record
    assert is_failed(record), record.outcome
    return loop.run(diagnose(RerunnableTrial(Path("outside"), record, arm)))


def minimal(diagnosis: Diagnosis) -> dict[FailedEntry, list[set[str]]]:
    return {entry.entry: [set(parts) for parts in entry.minimal] for entry in diagnosis.entries}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_wrong_value_that_passed_every_check_is_explained_by_a_verifier_that_knows_it(architecture: str) -> None:
    diagnosis = diagnosed(architecture, WRONG)
    assert minimal(diagnosis) == {FailedEntry("ended", "wrong"): [{"verifier"}]}
    assert diagnosis.not_asked == {"signal": IGNORES_REASONS, "commit": NO_WORLD, "pattern": NO_WORLD}
    assert not diagnosis.is_proved


def test_a_verifier_that_nothing_told_of_a_struck_output_is_not_asked() -> None:
    lost = [{"point": "output", "effect": "missing_field", "subtask": "total", "attempts": "every"}]
    diagnosis = diagnosed("runtime_structured", lost)
    assert diagnosis.not_asked["verifier"] == NO_STRUCK_OUTPUT
    assert counts_by_verdict([diagnosis])["verifier"] == {"not asked": 1}


@pytest.mark.parametrize(("architecture", "settings"), [("static", {}), ("runtime_structured", {"repair": "none"})])
def test_a_repair_without_its_reason_is_to_blame_where_the_reason_would_have_helped(
    architecture: str, settings: dict[str, Any]
) -> None:
    diagnosis = diagnosed(architecture, [], Listening, **settings)
    assert minimal(diagnosis) == {FailedEntry("ended", "gave_up"): [{"proposer"}, {"signal"}]}
    assert any('repair = "reason"' in line for line in trial_lines(diagnosis))


def test_a_part_whose_rerun_lacks_a_reply_is_not_cleared() -> None:
    diagnosis = diagnosed("static", [], Recorded)
    assert minimal(diagnosis) == {FailedEntry("ended", "gave_up"): [{"proposer"}]}
    assert counts_by_verdict([diagnosis])["signal"] == {"not judged": 1}
    lines = diagnosis_lines("outside", 1, [diagnosis])
    assert not [line for line in lines if "not to blame" in line]
    assert lines[-1].endswith(
        "1 reruns could not be judged, for want of a recorded reply, so that signal may be to blame as well."
    )


def test_the_screen_says_what_outside_of_a_world_was_not_asked() -> None:
    lines = diagnosis_lines("outside", 1, [diagnosed("static", WRONG)])
    assert lines[0] == "1 failed trials of outside: the verifier is to blame in 1; 1 of 1 are explained."
    assert "  not asked in 1 of 1 trials: commit, signal, pattern" in lines
    assert any(line.startswith("What to do about the verifier: hold its outputs against more") for line in lines)
    assert "proved" not in "\n".join(lines)
