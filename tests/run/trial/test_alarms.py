"""A fault that makes a validating subtask refuse: whom it strikes, how it is noticed, and what is run again for it."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_model import ScriptedModel
from trials import TINY, Fault, calls, events, loaded, matrix_of, run_all, scripted, stages, with_model

from bench.common.errors import ConfigError
from bench.read.analysis.faults import receipts
from bench.record.events import Judged
from bench.run.experiment.config import Config
from bench.run.experiment.resolved_plans import resolve_plan
from bench.run.trial.effects import Target
from bench.run.trial.text_effects import says_no

ALARM: Fault = {"point": "output", "effect": "says_no", "attempts": [1], "subtask": "review"}
NOTICED = {1: ["planned", "delivered", "detected", "recovered"]}
PASS = [("gather", 1, "first"), ("total", 1, "first"), ("review", 1, "first")]
AGAIN = [("total", 2, "retry"), ("review", 2, "rerun")]


@pytest.mark.parametrize("architecture", ["static", "runtime_structured"])
def test_what_was_refused_and_the_validation_are_asked_again(architecture: str) -> None:
    result, _ = scripted(architecture, faults=[ALARM])
    assert (result.record.outcome, calls(result)) == ("solved", [*PASS, *AGAIN])
    assert stages(result) == NOTICED
    rejected = [(event.subtask, event.reason) for event in events(result, Judged) if not event.accepted]
    assert rejected == [("total", "found_wrong")]


def test_one_call_for_all_is_made_again_as_a_whole() -> None:
    result, _ = scripted("monolithic", faults=[ALARM])
    assert [attempt for _, attempt, _ in calls(result)] == [1, 2]
    assert stages(result) == NOTICED


@pytest.mark.parametrize("architecture", ["monolithic", "static", "runtime_structured"])
@pytest.mark.parametrize(("approvals", "impact"), [([True, False, True], "masked"), ([True, True, True], "effective")])
def test_a_validation_that_refuses_by_itself_masks_the_fault(architecture: str, approvals: list[bool], impact: str) -> None:
    pack = "multi_file_debugging:paper_sized"
    reference = loaded(pack)[pack].reference
    validation = {"fixed": approvals, "approved": all(approvals)}
    script: dict[str, list[Any]] = {"validation": [validation], "+".join(reference): [{**reference, "validation": validation}]}
    fault = {**ALARM, "subtask": "validation"}
    matrix = matrix_of(pack, {"plan": [fault]}, architectures=[architecture])
    [result] = run_all(with_model(matrix, ScriptedModel(reference, script)))
    assert result.record.outcome == "solved"
    assert stages(result) == NOTICED
    assert [receipt.impact for receipt in receipts(result.record)] == [impact]


def test_it_strikes_no_output_that_validates_nothing_and_none_without_a_yes() -> None:
    yes, no = {"approved": True}, {"approved": False}
    assert says_no(Target("{}", yes), None) is None  # type: ignore[arg-type]
    assert says_no(Target("{}", no, validates=True), None) is None  # type: ignore[arg-type]


def config(*faults: Fault) -> Config:
    plan = {"plan": {"faults": list(faults)}}
    return Config.model_validate(
        {
            "name": "test",
            "scenarios": ["tiny"],
            "architectures": ["static"],
            "models": ["m"],
            "plans": ["plan"],
            "repetitions": 1,
            "seed": 1,
            "model": {"m": {"kind": "simulated"}},
            "plan": plan,
        }
    )


def test_a_plan_that_aims_it_at_another_subtask_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="'total' finds nothing wrong with others, so says_no can never strike it"):
        resolve_plan(config({**ALARM, "subtask": "total"}), "plan", TINY)
