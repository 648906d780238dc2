"""An agent that goes round in a circle is told of by name, while its trial goes on and in the trial's record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from records import called, trial
from trials import TINY

from bench.record.events import Called, Event
from bench.record.messages import Message, MessageRole, StoredMessage
from bench.record.repeated_call import MIN_EQUAL_CALLS, repeated_call
from bench.record.tool_calls import ToolCall, text_of
from bench.run.experiment.session import Session
from bench.run.models.base import Reply, Request, RequestContext, Response

CIRCLE = "the model made the same tool call 20 times in one trial"


def calls(times: int, tools: Sequence[str]) -> list[ToolCall]:
    """Calls of these tools in turn, each with an id, as a provider gives it."""
    return [ToolCall(f"id{number}", tools[number % len(tools)], "{}") for number in range(times)]


def told_during(times: int, role: MessageRole = "tool", tools: Sequence[str] = ("wait",), trials: int = 1) -> list[str]:
    """What a person is told while the model of each trial makes these calls, one in each reply."""
    lines = list[str]()
    session = Session(say=lines.append)
    for _ in range(trials):
        saw = session.response_watcher("mine")
        for call in calls(times, tools):
            request = Request((Message(role, "done"),), 1, RequestContext(TINY.name, ("total",), 1, 1))
            saw(Response("m", request, Reply("", tool_calls=(call,)), 0.1))
    return lines


def told_of_record(times: int, role: MessageRole = "tool", tools: Sequence[str] = ("wait",)) -> str:
    texts = {f"d{number}": text_of([call]) for number, call in enumerate(calls(times, tools))}

    def event(digest: str) -> Event:
        made = called(1, "a", cause="step")
        assert isinstance(made, Called)
        return replace(made, tool_calls=digest, reply=None, messages=(StoredMessage(role, "m"),))

    return repeated_call(trial("mine", "none", 1, "gave_up", list(map(event, texts))), texts)


@pytest.mark.parametrize("tools", [("wait",), ("wait", "look")])
def test_fewer_equal_calls_than_enough_are_told_of_nowhere(tools: Sequence[str]) -> None:
    times = len(tools) * (MIN_EQUAL_CALLS - 1)
    assert told_during(times, tools=tools) == []
    assert told_of_record(times, tools=tools) == ""


def test_an_agent_in_a_circle_is_told_of_at_the_twentieth_call_and_once_in_a_run() -> None:
    assert told_during(MIN_EQUAL_CALLS) == [f"mine: {CIRCLE}"]
    assert told_during(3 * MIN_EQUAL_CALLS, trials=2) == [f"mine: {CIRCLE}"]


def test_a_record_tells_how_often_the_call_was_made_in_all() -> None:
    assert told_of_record(61) == "the model made the same tool call 61 times in one trial"


def test_an_agent_that_returns_no_tool_results_is_told_what_to_do() -> None:
    [line] = told_during(MIN_EQUAL_CALLS, role="user")
    assert line.startswith(f"mine: {CIRCLE}, and this agent sends the tools' results back as text")
    assert line.endswith("use a real model for it, or let it send messages of role 'tool'")
    assert told_of_record(61, role="user").endswith("of role 'tool'")
