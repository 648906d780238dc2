"""A simulated model that works in a pack's world: its next tool calls, and its judgments, drawn from a bank if it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from bench.common.digests import case_of
from bench.common.seeding import draw_for
from bench.run.models.bank import Bank
from bench.run.models.base import Reply, Request
from bench.run.models.simulated_replies import cut_reply, reply_with_calls
from bench.scenario import Call, Json, Scenario
from bench.worlds.run.environment import Environment
from bench.worlds.run.simulated.course import Judge
from bench.worlds.run.simulated.proposer import next_calls


def next_reply(
    scenario: Scenario,
    request: Request,
    draw: Random,
    options: Mapping[str, Any],
    failure_rate: float,
    bank: Bank | None,
    forced: Callable[[Mapping[str, Any]], Call],
) -> Reply:
    """Return the next tool calls in a conversation. A required argument of the first call can be forgotten.

    Args:
        failure_rate: The chance that an argument is forgotten.
        forced: Makes a call of one of the tools in the options, if a call is required.
    """
    environment = scenario.environment
    assert isinstance(environment, Environment)
    together = options.get("parallel_tool_calls", True)
    judge = _judge_from_bank(scenario, environment, request, bank) if bank else None
    proposed = next_calls(environment, scenario.task, request.messages, options["tools"], together, judge)
    if not proposed.calls:
        others = [tool for tool in options["tools"] if tool["function"]["name"] not in proposed.names]
        if others and options.get("tool_choice") == "required":  # a framework's tool by which an agent says that it is done
            return reply_with_calls([forced({**options, "tools": others})], request)
        return cut_reply(Reply(proposed.text), options)
    calls = list(proposed.calls)
    if draw.random() < failure_rate and calls[0].arguments:
        forgotten = draw.choice(list(calls[0].arguments))
        calls[0] = Call(calls[0].tool, {name: value for name, value in calls[0].arguments.items() if name != forgotten})
    return reply_with_calls(calls, request)


def _judge_from_bank(scenario: Scenario, environment: Environment, request: Request, bank: Bank) -> Judge:
    """Return a judge that draws from the bank. Each reply replays the conversation, so a draw depends on the trial, not on the
    call."""
    right, context = environment.right, request.context
    assert right, "a bank is refused where a procedure or what is right is missing"

    def judge(subtask: str, shown: Mapping[str, str]) -> Json | str:
        """Return the output that the bank draws for a judgment in this state."""
        state = case_of(shown)
        draw = draw_for("bank", *context.drawn_from, subtask, state)
        right_output = right(subtask, {**scenario.task.documents, **shown})
        return bank.draw(scenario.name, context.instance, subtask, state, right_output, draw)

    return judge
