"""The systems under test, each where its packages are installed: what it asks again, and that nothing of it hides."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import util
from types import ModuleType

import pytest
from scripted_model import Line, ScriptedModel
from trials import SYSTEMS, TINY, Fault, calls, events, matrix_of, run_all, stages, verdicts, with_model

from bench.common.errors import ConfigError
from bench.record.events import Called
from bench.record.ledger import book, imbalance, totals
from bench.record.messages import Message
from bench.run.architectures.registry import load_architecture
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Reply, Request, Sleep

BROUGHT = {"mellea": "mellea", "langgraph": "langgraph", "dspy": "dspy", "autogen": "autogen_ext"}
"""A module that each extra brings."""
FIRST = [("gather", 1, "first"), ("total", 1, "first"), ("review", 1, "first")]
AGAIN = [("total", 2, "retry"), ("review", 2, "rerun")]
WHOLE = "gather+total+review"
IN_ONE = ("reflexion", "sre_agent_monolith", "autogen_team")
"""Those that ask for the whole task at once."""
FORGOTTEN: Fault = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "total"}
TOO_LOW = {"total": 5, "unit": "apples"}
"""Fits its schema, and is less than one delivery alone."""
WRONG = {"total": 43, "unit": "apples"}
REFUSED = {"approved": False, "problems": ["12 + 30 is 42"]}


def needs(name: str) -> None:
    """Skip the test where the packages of a system are not installed."""
    extra = SYSTEMS[name].extra
    if extra and not util.find_spec(BROUGHT[extra]):
        pytest.skip(f"needs .[{extra}]")


class Judge(ScriptedModel):
    """Answers judge calls from a script of their own, then with yes."""

    def __init__(self, script: Mapping[str, Sequence[Line]], judgments: Sequence[str]):
        super().__init__(TINY.reference, script)
        self._judgments = list(judgments)

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        if not request.context.judging:
            return await super().reply(request, sleep)
        self.requests.append(request)
        await sleep(1.0)
        return Reply(self._judgments.pop(0) if self._judgments else "yes")


def scripted(
    name: str, script: Mapping[str, Sequence[Line]] | None = None, faults: Sequence[Fault] = (), judgments: Sequence[str] = ()
) -> tuple[TrialResult, Judge]:
    needs(name)
    matrix = matrix_of(plans={"plan": faults} if faults else None, architectures=[name])
    model = Judge(script or {}, judgments)
    [result] = run_all(with_model(matrix, model))
    record = result.record
    assert record.outcome != "error", record.reason
    assert len(events(result, Called)) == len(model.requests), "a call went past the endpoint, or was counted twice"
    assert imbalance(book(record.events), record.tokens) is None
    return result, model


def without_judges(result: TrialResult) -> list[tuple[str, int, str]]:
    return [call for call in calls(result) if call[2] != "judge"]


def judged(result: TrialResult) -> list[str]:
    return [name for name, _, cause in calls(result) if cause == "judge"]


def contents(messages: Sequence[Message]) -> str:
    return "\n".join(message.content for message in messages)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_loads_under_its_own_name_and_says_where_it_differs(name: str) -> None:
    assert SYSTEMS[name].limits
    needs(name)
    assert getattr(load_architecture(SYSTEMS[name]), "__name__", "") == name


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.extra])
def test_a_missing_extra_is_one_line_that_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> ModuleType:
        raise ModuleNotFoundError("No module named 'it'", name="it")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ConfigError) as refused:
        load_architecture(SYSTEMS[name])
    assert str(refused.value) == f"architecture '{name}' needs: pip install '.[{SYSTEMS[name].extra}]'"


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_run_says_which_versions_of_its_packages_it_measured(name: str) -> None:
    needs(name)
    packages = manifest_of(matrix_of(architectures=[name]), "run").packages
    extra = SYSTEMS[name].extra
    assert ("mellea" in packages, "dspy" in packages) == (extra == "mellea", extra == "dspy")
    assert set(manifest_of(matrix_of(architectures=["static"]), "run").packages) <= set(packages)


@pytest.mark.parametrize("name", SYSTEMS)
def test_without_a_fault_every_system_solves_the_task_at_the_first_try(name: str) -> None:
    result, model = scripted(name)
    assert result.record.outcome == "solved"
    assert without_judges(result) == ([(WHOLE, 1, "first")] if name in IN_ONE else FIRST)
    for request in model.requests:
        assert (
            name in ("dspy", "dspy_by_module", "autogen_graph")
            or request.context.judging
            or request.messages[0].content.startswith(TINY.task.role)
        )


SEQUENCES = {
    "mellea_code": [*FIRST[:2], ("total", 2, "retry"), FIRST[2]],
    "langgraph": [*FIRST, *AGAIN],
    "langgraph_retry": [*FIRST[:2], ("total", 2, "retry"), FIRST[2]],
    "langgraph_retry_same_words": [*FIRST[:2], ("total", 2, "retry"), FIRST[2]],
    "langgraph_retry_policy": [*FIRST[:2], ("total", 2, "retry"), FIRST[2]],
    "dspy_by_module": [*FIRST[:2], ("total", 2, "retry"), FIRST[2]],
    "autogen_team": [(WHOLE, 1, "first"), (WHOLE, 1, "judge"), (WHOLE, 2, "retry"), (WHOLE, 2, "judge")],
    "dspy": [*FIRST[:2], ("gather", 2, "rerun"), ("total", 2, "retry"), FIRST[2]],
    "reflexion": [(WHOLE, 1, "first"), (WHOLE, 1, "judge"), (WHOLE, 2, "retry")],
    "autogen_graph": [*FIRST, *AGAIN],
    "sre_agent_monolith": [(WHOLE, 1, "first"), (WHOLE, 2, "retry")],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_after_a_forgotten_field_each_system_asks_again_what_it_means_to(name: str) -> None:
    result, _ = scripted(name, faults=[FORGOTTEN])
    assert (result.record.outcome, calls(result)) == ("solved", SEQUENCES[name])
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}
    assert ("total", "schema") in verdicts(result)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_gives_up_after_three_attempts_at_one_subtask(name: str) -> None:
    broken = {"total": ["about forty"] * 9, WHOLE: ["about forty"] * 9}
    judgments = {"mellea": ["yes"] * 3 + ["no"] * 6, "autogen_team": ["yes"] * 9}
    result, _ = scripted(name, broken, judgments=judgments.get(name, ["{}"] * 9))
    assert result.record.outcome == "gave_up", result.record.reason
    asked = [call for call in without_judges(result) if call[0] in ("total", WHOLE)]
    assert [attempt for _, attempt, _ in asked] == [1, 2, 3]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_refused_connection_is_tried_again_by_the_clients_own_hidden_retry(name: str) -> None:
    busy: Fault = {"point": "call", "effect": "rate_limit", "attempts": [1], "subtask": "total", "seconds": 0.01}
    result, _ = refused(name, busy)
    tries = [
        (call.subtasks, call.attempt, call.try_, call.failure) for call in events(result, Called) if "total" in call.subtasks
    ]
    subtasks = tries[0][0]
    assert tries[:2] == [(subtasks, 1, 1, "rate_limited"), (subtasks, 1, 2, None)]
    assert result.record.outcome == "solved"


def refused(name: str, fault: Fault) -> tuple[TrialResult, Judge]:
    """As `scripted`, but some calls never reach the model."""
    needs(name)
    model = Judge({}, [])
    [result] = run_all(with_model(matrix_of(plans={"plan": [fault]}, architectures=[name]), model))
    assert imbalance(book(result.record.events), result.record.tokens) is None
    return result, model


# Mellea


def test_mellea_has_each_requirement_judged_and_each_judge_call_stands_in_the_account_judging() -> None:
    result, model = scripted("mellea")
    assert judged(result) == ["gather"] * 3 + ["total"] * 2 + ["review"] * 2
    tokens = [entry.tokens for entry in book(result.record.events) if entry.call.cause == "judge"]
    assert totals(book(result.record.events))["judging"] == sum(tokens) > 0
    asked = [request for request in model.requests if request.context.judging]
    assert all("Requirement: " in contents(request.messages) for request in asked)
    assert "Each item of deliveries must have: day, apples." in contents(model.requests[0].messages)


def test_mellea_repairs_what_its_judge_refuses_with_the_requirement_shown() -> None:
    result, model = scripted("mellea", judgments=["yes", "yes", "yes", "no", "yes"])
    assert without_judges(result) == [*FIRST[:2], ("total", 2, "retry"), FIRST[2]]
    again = next(request for request in model.requests if request.context.attempt == 2)
    assert "The following requirements failed before:" in contents(again.messages)
    assert [entry.account for entry in book(result.record.events)].count("rejected") == 1


def test_mellea_names_what_failed_in_the_same_order_in_every_run() -> None:
    for _ in range(3):
        _, model = scripted("mellea", judgments=["yes"] * 3 + ["no", "no"])
        again = next(request for request in model.requests if request.context.attempt == 2)
        failed = "* It must have: total, unit.\n* The output must be one JSON object."
        assert f"The following requirements failed before:\n{failed}" in contents(again.messages)


def test_what_melleas_judges_let_pass_is_found_at_the_end_and_not_asked_again() -> None:
    result, _ = scripted("mellea", faults=[FORGOTTEN])
    assert without_judges(result) == FIRST
    assert result.record.outcome == "gave_up"
    assert "Mellea's judges let pass what the verifier rejects: total: Field required" in result.record.reason
    assert stages(result) == {1: ["planned", "delivered", "detected", "gave_up"]}


def test_mellea_with_requirements_in_code_has_no_judges_and_shows_the_verifiers_reason() -> None:
    result, model = scripted("mellea_code", {"total": [TOO_LOW]})
    assert judged(result) == []
    assert calls(result) == SEQUENCES["mellea_code"]
    assert "the total 5 is less than one delivery alone" in contents(model.requests[2].messages)


def test_mellea_in_code_asks_again_for_what_is_too_weak_and_skips_what_is_not_needed() -> None:
    unsure = {**TINY.reference["gather"], "confidence": 0.1}
    result, _ = scripted("mellea_code", {"gather": [unsure, {"deliveries": [], "confidence": 1.0}]})
    assert calls(result) == [FIRST[0], ("gather", 2, "retry"), FIRST[2]]


def test_mellea_reopens_what_a_later_subtask_found_wrong_and_says_so_in_the_repair() -> None:
    result, model = scripted("mellea_code", {"total": [WRONG], "review": [REFUSED]})
    assert calls(result) == [*FIRST, *AGAIN]
    assert "12 + 30 is 42" in contents(model.requests[3].messages)
    assert result.record.outcome == "solved"


def test_what_is_found_wrong_for_ever_is_given_up() -> None:
    result, _ = scripted("mellea_code", {"total": [WRONG] * 9, "review": [REFUSED] * 9})
    assert result.record.outcome == "gave_up"
    assert [name for name, _, _ in calls(result)] == ["gather", *["total", "review"] * 3]


# LangGraph, DSPy, Reflexion, AutoGen


def test_langgraphs_chain_hands_on_what_is_wrong_and_its_retry_does_not() -> None:
    for name, seen in (("langgraph", True), ("langgraph_retry", False)):
        _, model = scripted(name, {"total": ["about forty"]})
        review = next(request for request in model.requests if request.context.subtasks == ("review",))
        assert ("about forty" in contents(review.messages)) is seen


def test_in_the_same_words_langgraph_asks_again_as_runtime_structured_does() -> None:
    script = {"total": [TOO_LOW]}
    _, model = scripted("langgraph_retry_same_words", script)
    ours = ScriptedModel(TINY.reference, {"total": [TOO_LOW]})
    run_all(with_model(matrix_of(architectures=["runtime_structured"], repair="reason"), ours))
    assert [request.messages for request in model.requests] == [request.messages for request in ours.requests]


def test_langgraphs_retry_policy_tells_no_reason() -> None:
    _, model = scripted("langgraph_retry_policy", {"total": [TOO_LOW]})
    first, again = (request for request in model.requests if request.context.subtasks == ("total",))
    assert again.messages == first.messages


def test_the_team_answers_again_what_its_reviewer_does_not_approve() -> None:
    result, model = scripted("autogen_team", judgments=["The total is wrong.", "yes"])
    assert calls(result) == [(WHOLE, 1, "first"), (WHOLE, 1, "judge"), (WHOLE, 1, "step"), (WHOLE, 1, "judge")]
    assert "The total is wrong." in contents(model.requests[2].messages)


def test_langgraphs_retry_tells_the_node_why_it_runs_again() -> None:
    _, model = scripted("langgraph_retry", {"total": [TOO_LOW]})
    assert contents(model.requests[2].messages).endswith(
        "Your last answer was rejected: the total 5 is less than one delivery alone"
    )


def test_dspy_asks_for_advice_on_what_the_verifier_rejects_and_gives_it_as_a_hint() -> None:
    advice = json.dumps({"discussion": "the sum", "advice": {"steps['total']": "Add them up again."}})
    result, model = scripted("dspy", {"total": [TOO_LOW]}, judgments=[advice])
    assert calls(result) == [*FIRST, (WHOLE, 1, "judge"), ("gather", 2, "rerun"), *AGAIN]
    assert "Add them up again." in contents(model.requests[5].messages)
    assert result.record.outcome == "solved"


def test_dspy_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    scripted("dspy", faults=[FORGOTTEN])
    assert capfd.readouterr() == ("", "")


def test_reflexion_shows_the_reflection_in_the_next_attempt_and_no_more_than_three() -> None:
    script: dict[str, list[Line]] = {WHOLE: ["about forty"]}
    _, model = scripted("reflexion", script, judgments=["I gave no JSON."])
    reflection, again = model.requests[1:]
    assert "about forty" in contents(reflection.messages)
    assert contents(again.messages).endswith("I gave no JSON.")


def test_autogens_runtime_has_no_errors_of_its_agents_printed() -> None:
    """pytest takes what is logged, so that nothing would be seen on standard error here."""
    needs("autogen_graph")
    load_architecture(SYSTEMS["autogen_graph"])
    assert logging.getLogger("autogen_core").handlers, "Python would print them itself"


def test_autogens_agents_hear_only_those_whose_outputs_they_read() -> None:
    _, model = scripted("autogen_graph")
    gather, total, review = model.requests
    deliveries, sum_ = json.dumps(TINY.reference["gather"]), json.dumps(TINY.reference["total"])
    assert deliveries not in contents(gather.messages)
    assert deliveries in contents(total.messages)
    assert deliveries in contents(review.messages)
    assert sum_ in contents(review.messages)


def test_the_simulated_judge_says_yes_to_what_fits_and_no_to_what_does_not() -> None:
    needs("mellea")
    [solved] = run_all(matrix_of(architectures=["mellea"]))
    [repaired] = run_all(matrix_of(plans={"plan": [FORGOTTEN]}, architectures=["mellea"]))
    assert without_judges(solved) == FIRST
    assert without_judges(repaired) == SEQUENCES["mellea_code"]
    assert repaired.record.outcome == "solved"


def test_a_purpose_differs_for_judging_alone() -> None:
    _, model = scripted("reflexion", {WHOLE: ["about forty"]})
    first, reflection, _ = (request.context for request in model.requests)
    assert replace(first, judging=True) == reflection
