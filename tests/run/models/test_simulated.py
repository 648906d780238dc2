"""The simulated model says what it simulates, and says the same whenever and wherever it is asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from trials import ROOTS, TINY

from bench.common.seeding import seed_of
from bench.common.tokens import count_tokens
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.models.base import Reply, Request, RequestContext
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.packs import load_pack
from bench.run.trial.decoding import Extracted
from bench.run.trial.reading import read
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import extract

SCENARIOS = {"tiny": TINY, "k8s_oomkill": load_pack("k8s_oomkill", ROOTS)}
ALL = tuple(TINY.reference)


def request(*subtasks: str, seed: int = 1, scenario: str = "tiny") -> Request:
    return Request((Message("user", "What came in?"),), seed, RequestContext(scenario, subtasks, 1, 1))


def ask(asked: Request, **settings: Any) -> tuple[Reply, float]:
    """The reply, and the seconds it took on the trial's clock."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    model = SimulatedModel("simulated", SimulatedSettings(**settings), SCENARIOS)
    return asyncio.run(model.reply(asked, sleep)), sum(slept)


def value(reply: Reply) -> Any:
    reading = extract(reply.text)
    assert isinstance(reading, Extracted)
    return reading.value


def test_it_answers_with_the_reference_of_what_is_asked_for() -> None:
    assert value(ask(request("total"))[0]) == TINY.reference["total"]
    assert value(ask(request(*ALL))[0]) == TINY.reference


def test_the_same_request_brings_the_same_reply_in_the_same_time() -> None:
    assert ask(request("total", seed=5), failure_rate=0.5) == ask(request("total", seed=5), failure_rate=0.5)
    assert len({ask(request("total", seed=seed))[1] for seed in range(5)}) == 5


def test_its_failures_are_forgotten_required_fields_at_the_declared_rate() -> None:
    trials = 1500
    failed = 0
    for number in range(trials):
        output = value(ask(request("review", seed=seed_of(number)), failure_rate=0.2, jitter=0)[0])
        assert output == {field: TINY.reference["review"][field] for field in output}
        failed += output != TINY.reference["review"]
    assert abs(failed / trials - 0.2) < 0.04


def test_each_part_of_a_reply_may_fail() -> None:
    assert all(value(ask(request(*ALL), failure_rate=1.0)[0])[name] != TINY.reference[name] for name in ALL)


def test_its_habit_of_wrapping_hides_no_answer_and_can_be_put_off() -> None:
    replies = [ask(request("gather", seed=seed))[0] for seed in range(40)]
    assert all(value(reply) == TINY.reference["gather"] for reply in replies)
    assert {text.startswith("```") for text in (reply.text for reply in replies)} == {True, False}
    bare = ask(request("gather"), wrapping=False)[0].text
    assert json.loads(bare) == TINY.reference["gather"]


def test_its_seconds_grow_with_what_is_read_and_written() -> None:
    rates = {"seconds_per_call": 1.0, "seconds_per_1000_in": 100.0, "seconds_per_1000_out": 10.0, "jitter": 0.0}
    reply, seconds = ask(request("total"), **rates)
    assert reply.usage is not None
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (count_tokens("What came in?"), count_tokens(reply.text))
    assert abs(seconds - (1 + reply.usage.tokens_in / 10 + reply.usage.tokens_out / 100)) < 1e-9


def test_its_parameters_say_that_it_is_simulated() -> None:
    model = SimulatedModel("m", SimulatedSettings(failure_rate=0.1), SCENARIOS)
    assert model.timing == "simulated"
    assert model.parameters["kind"] == "simulated"
    assert model.parameters["failure_rate"] == 0.1


def test_it_answers_in_the_format_that_is_asked_for_whoever_asks() -> None:
    """A framework's own request over the endpoint has no schema."""
    scenario = load_pack("workshop", ROOTS)
    subtask = scenario.task.subtask("ship")
    for names in (("ship",), tuple(scenario.reference)):
        subtasks = [scenario.task.subtask(name) for name in names]
        for schema in (None, answer_schema(subtasks)):
            context = RequestContext(scenario.name, names, 1, 1, answer_format="fenced")
            model = SimulatedModel("simulated", SimulatedSettings(), {scenario.name: scenario})
            reply = asyncio.run(model.reply(Request((Message("user", "?"),), 1, context, schema=schema), no_time))
            reading = read(reply.text, "stop", subtasks, "fenced")
            assert isinstance(reading, Extracted) and "```python\n" in reply.text
            assert subtask.output.model_validate(reading.value.get("ship", reading.value))
            assert reading.value == (
                {name: scenario.reference[name] for name in names} if len(names) > 1 else scenario.reference[names[0]]
            )


async def no_time(_: float) -> None:
    pass


def test_a_tool_that_has_to_be_called_gets_the_output_that_is_asked_for_where_it_fits() -> None:
    tool = {"name": "final_result", "parameters": TINY.task.subtask("gather").output.model_json_schema()}
    other = {"name": "other", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
    for function, arguments in ((tool, TINY.reference["gather"]), (other, {"n": 0})):
        options = {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
        reply, _ = ask(replace(request("gather"), options=json.dumps(options)))
        [call] = reply.tool_calls
        assert (call.name, json.loads(call.arguments), reply.text, reply.finish) == (
            function["name"],
            arguments,
            "",
            "tool_calls",
        )
        assert reply.usage and reply.usage.tokens_in > count_tokens("What came in?")


def test_an_agent_that_has_to_call_a_tool_calls_its_frameworks_own_when_the_work_is_done() -> None:
    final = {"name": "final_result", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
    idle = load_pack("refunds", [ROOTS[1].parent / "worlds"])
    assert idle.environment
    done = replace(idle, environment=replace(idle.environment, reference=lambda _: None))
    options = {
        "tools": [{"type": "function", "function": function} for function in ({"name": "wait"}, final)],
        "tool_choice": "required",
    }
    result = Message("tool", json.dumps({"result": {"day": 0, "minute": 0, "events": []}}), tool_call_id="a")
    waited = Message("assistant", "", (ToolCall("a", "wait", '{"days": 0, "minutes": 0}'),))
    context = RequestContext("refunds", ("agent",), 1, 1, references={"agent": {"text": "All is done."}})
    asked = Request((Message("user", "Go."), waited, result), 1, context, options=json.dumps(options))
    model = SimulatedModel("simulated", SimulatedSettings(), {"refunds": done})
    [call] = asyncio.run(model.reply(asked, no_time)).tool_calls
    assert (call.name, json.loads(call.arguments)) == ("final_result", {"text": "All is done."})
