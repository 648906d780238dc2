"""LLMCompiler: a plan first, what it lets run side by side, and after a failure the plan and all of it again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_model import ScriptedModel
from scripted_server import ScriptedServer, Step, completion, status
from trials import GRADERS, ROOTS, calls, conducted, events, matrix_of, stages, verdicts, with_model

from bench.record.events import Answered, Called, Judged
from bench.record.ledger import book, imbalance
from bench.run.architectures.static import static
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.frameworks.llm_compiler import llm_compiler, plan_of
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings
from bench.run.packs import load_pack
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.scenario import Json

ORCHARD = load_pack("orchard", ROOTS)
PACK = f"orchard/{ORCHARD.instance}"
PLAN = plan_of(ORCHARD.task).model_dump(mode="json")
FIRST = [("Plan", 1, "first"), ("apples", 1, "first"), ("pears", 1, "first"), ("store", 1, "first")]


def trial(script: dict[str, list[Json]] | None = None, **settings: Any) -> tuple[TrialResult, ScriptedModel]:
    model = ScriptedModel({**ORCHARD.reference, "Plan": PLAN}, script)
    return conducted(llm_compiler, pack=PACK, model=model, **settings), model


def plan(**needs: list[str]) -> dict[str, Json]:
    return {"steps": [{"subtask": name, "needs": waits_for} for name, waits_for in needs.items()]}


def test_a_plan_is_made_first_and_what_does_not_wait_for_each_other_is_asked_together() -> None:
    result, _ = trial()
    assert (result.record.outcome, calls(result)) == ("solved", FIRST)
    assert [call.started for call in events(result, Called)] == [0.0, 1.0, 1.0, 2.0]


def test_the_planner_is_told_each_subtask_and_what_it_reads_and_no_document() -> None:
    _, model = trial()
    asked = model.requests[0].messages[1].content
    assert "- apples: reads apples.txt. " in asked and "- store: reads apples, pears. " in asked
    assert ORCHARD.task.documents["apples.txt"] not in asked


def test_subtasks_are_asked_as_other_architectures_ask_them() -> None:
    _, model = trial()
    other = ScriptedModel(ORCHARD.reference)
    conducted(static, pack=PACK, model=other)
    assert [request.messages for request in model.requests[1:]] == [request.messages for request in other.requests]


def test_a_plan_that_waits_for_more_than_it_must_takes_longer_and_nothing_else() -> None:
    result, _ = trial({"Plan": [plan(pears=[], apples=["pears"], store=["apples"])]})
    assert result.record.outcome == "solved"
    started = {call.subtasks[0]: call.started for call in events(result, Called)}
    assert started == {"Plan": 0.0, "pears": 1.0, "apples": 2.0, "store": 3.0}


def test_after_a_failure_it_plans_again_with_the_reason_and_everything_runs_again() -> None:
    result, model = trial({"pears": [{"crates": 3}]})
    assert result.record.outcome == "solved"
    assert calls(result) == [
        *FIRST,
        ("Plan", 2, "rerun"),
        ("apples", 2, "rerun"),
        ("pears", 2, "retry"),
        ("store", 2, "rerun"),
    ]
    again = model.requests[4].messages[1].content
    assert again.startswith(model.requests[0].messages[1].content)
    assert "Reason: carried out, it failed at 'pears': trees: Field required" in again
    assert [request.messages for request in model.requests[5:7]] == [request.messages for request in model.requests[1:3]]


def test_the_plan_that_led_to_the_answer_is_in_it_and_the_one_before_is_not() -> None:
    result, _ = trial({"pears": [{"crates": 3}]})
    accounts = [(entry.call.subtasks[0], entry.account) for entry in book(result.record.events)]
    assert accounts == [
        *(("Plan", "superseded"), ("apples", "superseded"), ("pears", "rejected"), ("store", "superseded")),
        *(("Plan", "in_answer"), ("apples", "in_answer"), ("pears", "in_answer"), ("store", "in_answer")),
    ]
    [answer] = events(result, Answered)
    assert [name for name, _ in answer.versions] == ["apples", "pears", "store"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"steps": [{"subtask": "apples"}]}, "steps.0.needs: Field required"),
        (plan(plums=[]), "there is no subtask 'plums'; the subtasks are apples, pears, store"),
        (plan(apples=["plums.txt"]), "there is no subtask 'plums.txt'"),
        ({"steps": [{"subtask": "apples", "needs": None}]}, "steps.0.needs: Input should be a valid list"),
        (plan(apples=[], store=["apples"]), "'pears' must be planned once, and is planned 0 times"),
        ({"steps": [*PLAN["steps"], *PLAN["steps"]]}, "'apples' must be planned once, and is planned 2 times"),
        (plan(apples=["store"], pears=[], store=["apples", "pears"]), "since each waits for another: apples, store"),
        (plan(apples=[], pears=[], store=["apples"]), "'store' reads the output of 'pears', and must need it"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_reason_and_made_again_alone(
    wrong: dict[str, Json], why: str
) -> None:
    result, model = trial({"Plan": [wrong]})
    assert (result.record.outcome, calls(result)) == ("solved", [FIRST[0], ("Plan", 2, "retry"), *FIRST[1:]])
    assert why in events(result, Judged)[0].detail
    assert why in model.requests[1].messages[1].content


def test_it_gives_up_after_as_many_plans_as_there_are_attempts() -> None:
    result, _ = trial({"pears": [{"crates": 3}] * 4})
    assert (result.record.outcome, result.record.reason) == ("gave_up", "Plan: no accepted output in 3 attempts")
    assert len(calls(result)) == 3 * len(FIRST)
    result, _ = trial({"Plan": ["no"] * 4})
    assert (result.record.outcome, len(calls(result))) == ("gave_up", 3)


def test_a_fault_strikes_a_planned_subtask_and_one_in_the_plan_is_detected() -> None:
    missing: Any = {"point": "output", "effect": "missing_field", "subtask": "pears", "attempts": [1]}
    result, _ = trial(faults=[missing])
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}
    assert calls(result)[4] == ("Plan", 2, "rerun")
    result, _ = trial(faults=[{"point": "state", "effect": "missing_field", "attempts": [1]}], max_attempts=4)
    assert verdicts(result)[0] == ("Plan", "schema") and result.record.outcome == "solved"


def test_a_plan_may_name_the_documents_that_are_read() -> None:
    result, _ = trial({"Plan": [plan(apples=["apples.txt"], pears=["pears.txt"], store=["apples", "pears", "pears.txt"])]})
    assert (result.record.outcome, calls(result)) == ("solved", FIRST)


CHATTY = "Sure! Here is the {what} in JSON format:\n\n```json\n{json}\n```\n\nLet me know if you need anything else."
AS_PLANNED = plan(apples=["apples.txt"], pears=["pears.txt"], store=["apples", "pears"])


def live(plans: list[Step], **first: Step) -> tuple[TrialResult, ScriptedServer]:
    """A trial on an OpenAI-compatible server on loopback whose model is chatty: it gives these plans, then one that can be
    carried out; to a subtask the step that is given for its first call, then the right answer."""
    steps, replies = list(plans), {f"# Task: {name}\n": step for name, step in first.items()}

    def answer(body: Any) -> Step:
        prompt = body["messages"][-1]["content"]
        if "# Task: Plan\n" in prompt:
            return steps.pop(0) if steps else completion(CHATTY.format(what="plan", json=json.dumps(AS_PLANNED, indent=2)))
        heading = next(f"# Task: {name}\n" for name in ORCHARD.reference if f"# Task: {name}\n" in prompt)
        right = json.dumps(ORCHARD.reference[heading[8:-1]], indent=2)
        return replies.pop(heading, None) or completion(CHATTY.format(what="answer", json=right))

    matrix = matrix_of("orchard", architectures=["llm_compiler"], back_off={"tries": 3, "base": 0.01, "most": 0.1})
    spec = next(spec for spec in matrix.specs if spec.instance == ORCHARD.instance)
    with ScriptedServer(answer) as server:
        model = OpenAIModel("m", OpenAISettings(base_url=server.base_url, concurrency=2))

        async def work() -> TrialResult:
            try:
                return await run_trial(spec, with_model(matrix, model), Slots(), GRADERS)
            finally:
                await model.close()

        result = run(work())
    assert imbalance(book(result.record.events), result.record.tokens) is None
    return result, server


def test_on_a_real_server_a_chatty_model_is_understood_and_what_need_not_wait_is_asked_together() -> None:
    result, server = live([])
    assert (result.record.outcome, result.record.timing) == ("solved", "live")
    assert sorted(calls(result)) == sorted(FIRST)
    assert server.most_in_flight == 2


def test_on_a_real_server_plans_that_small_models_write_are_refused_with_the_reason_until_one_will_do() -> None:
    prose = completion("1. First count the apples.\n2. Then the pears.\n3. Then plan the store.")
    named_otherwise = completion(json.dumps(plan(Apples=[], Pears=[], Store=["Apples", "Pears"])))
    result, server = live([prose, named_otherwise])
    assert result.record.outcome == "solved"
    assert calls(result)[:3] == [("Plan", 1, "first"), ("Plan", 2, "retry"), ("Plan", 3, "retry")]
    reasons = [body["messages"][-1]["content"].partition("Reason: ")[2] for body in server.bodies[1:3]]
    assert reasons[0].startswith("the reply holds no JSON object")
    assert reasons[1].startswith("there is no subtask 'Apples'; the subtasks are apples, pears, store")


def test_on_a_real_server_refused_calls_and_cut_replies_are_made_again() -> None:
    cut_off = completion('{"crates": 3, "tr', finish="length")
    result, _ = live([status(429), status(503)], pears=cut_off)
    assert result.record.outcome == "solved"
    failures = [call.failure for call in events(result, Called) if call.failure]
    assert failures == ["rate_limited", "server_failed"]
    assert ("Plan", 2, "rerun") in calls(result) and ("pears", "cut_off") in verdicts(result)


def test_on_a_real_server_a_model_that_never_plans_gives_up_in_one_line() -> None:
    result, _ = live([completion("I am sorry, I cannot plan this.")] * 3)
    assert (result.record.outcome, result.record.reason) == ("gave_up", "Plan: no accepted output in 3 attempts")
