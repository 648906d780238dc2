"""The parallel forms ask what the others ask, and what forks at the same time: only seconds differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from scripted_model import Line, ScriptedModel
from trials import Fault, calls, events, matrix_of, run_all, with_model

from bench.record.events import Called, Faulted
from bench.run.architectures.runtime_structured import runtime_structured
from bench.run.architectures.static import static
from bench.run.experiment.trial import TrialResult
from bench.scenario import Finding, Output, Scenario, Subtask

PACK = "incidents/case_01"
FORKED = ("log", "metrics", "changes")
PLANS: dict[str, list[Fault]] = {
    "none": [],
    "lacking": [{"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "metrics"}],
    "wrong": [{"point": "output", "effect": "wrong_value", "attempts": [1], "subtask": "log"}],
    "often": [{"point": "output", "effect": "missing_field", "probability": 0.3}],
    "calls": [{"point": "call", "effect": "cut_off", "probability": 0.3}],
}


def both_forms(base: str, plan: str) -> tuple[TrialResult, TrialResult]:
    """One after another, and in parallel."""
    variants = {"parallel": {"base": base, "parallel": True}}
    settings: dict[str, Any] = {"architectures": [base, "parallel"], "architecture": variants, "max_attempts": 9}
    results = run_all(matrix_of(PACK, {plan: PLANS[plan]}, **settings))
    by_name = {result.record.architecture: result for result in results}
    return by_name[base], by_name["parallel"]


def asked(result: TrialResult) -> Counter[object]:
    """What was asked: requests and causes, without their order."""
    return Counter((call.subtasks, call.attempt, call.seed, call.messages, call.cause) for call in events(result, Called))


def struck(result: TrialResult) -> Counter[object]:
    """Each fault that arrived, and what it made of which reply."""
    delivered = {event.call for event in events(result, Faulted) if event.stage == "delivered"}
    replies = [(call.subtasks, call.attempt, call.delivered) for call in events(result, Called) if call.call in delivered]
    return Counter(replies)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("base", ["static", "runtime_structured"])
def test_the_parallel_form_asks_the_same_under_the_same_faults_in_fewer_seconds(base: str, plan: str) -> None:
    one_by_one, parallel = both_forms(base, plan)
    assert asked(parallel) == asked(one_by_one)
    assert struck(parallel) == struck(one_by_one) and bool(struck(parallel)) is (plan != "none")
    assert parallel.record.tokens == one_by_one.record.tokens
    assert parallel.record.api_seconds < one_by_one.record.api_seconds
    assert parallel.record.outcome == one_by_one.record.outcome


def test_what_forks_begins_together_and_what_joins_after_the_last_of_it() -> None:
    for base in ("static", "runtime_structured"):
        _, parallel = both_forms(base, "none")
        begun = {call.subtasks[0]: call.started for call in events(parallel, Called)}
        ended = {call.subtasks[0]: call.started + call.seconds for call in events(parallel, Called)}
        assert {begun[name] for name in FORKED} == {0.0}
        assert begun["cause"] == pytest.approx(max(ended[name] for name in FORKED))


def test_static_runs_again_one_after_another_in_the_listed_order() -> None:
    _, parallel = both_forms("static", "lacking")
    again = [call for call in events(parallel, Called) if call.caused_by is not None]
    causes = [(call.subtasks[0], call.cause) for call in again]
    assert causes == [("metrics", "retry"), ("changes", "rerun"), ("cause", "rerun")]
    for earlier, later in pairwise(again):
        assert later.started == pytest.approx(earlier.started + earlier.seconds)


class Said(Output):
    text: str


def forked(scenario: Scenario) -> Scenario:
    """`base`, from which `use` and `review` are made side by side; a review that is not content finds the base wrong."""

    def finds(review: Said) -> Finding | None:
        return Finding("base", review.text) if review.text != "fine" else None

    subtasks = (
        Subtask("base", "Say.", (), Said),
        Subtask("review", "Review.", ("base",), Said, finds=finds),
        Subtask("use", "Use.", ("base",), Said),
    )
    task = replace(scenario.task, subtasks=subtasks, answer=())
    return replace(scenario, task=task, reference={subtask.name: {"text": "fine"} for subtask in subtasks}, graded=False)


def trial_of_forked(base: Any, script: Mapping[str, Sequence[Line]]) -> tuple[TrialResult, ScriptedModel]:
    matrix = matrix_of("tiny", architectures=["static"])
    scenario = forked(matrix.scenarios["tiny"])
    model = ScriptedModel(scenario.reference, script)
    forked_one = replace(matrix, scenarios={"tiny": scenario}).with_architecture(partial(base, parallel=True))
    [result] = run_all(with_model(forked_one, model))
    return result, model


@pytest.mark.parametrize("base", [static, runtime_structured])
def test_what_was_made_side_by_side_of_an_output_that_was_found_wrong_is_made_again(base: Any) -> None:
    script = {"base": [{"text": "seven"}], "review": [{"text": "it is six"}]}
    result, model = trial_of_forked(base, script)
    assert calls(result)[:3] == [("base", 1, "first"), ("review", 1, "first"), ("use", 1, "first")]
    assert calls(result)[3:] == [("base", 2, "retry"), ("review", 2, "rerun"), ("use", 2, "rerun")]
    assert all("seven" not in request.messages[1].content for request in model.requests[4:])
