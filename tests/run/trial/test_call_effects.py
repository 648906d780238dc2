"""The effects at point `call`, each around the call by itself and several around one another, as they always were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scripted_model import Line, ScriptedModel
from trials import TINY, Fault, conducted, events, scripted, stages

from bench.common.errors import CallFailed, CutOff, RateLimited, ServerFailed, TimedOut
from bench.record.events import Called, Faulted, Judged
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Reply
from bench.run.trial.effects import CallEffect, Disturbance, effect_at
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.loop import run
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


@asynccontextmanager
async def unserved(_: EndpointSession) -> AsyncIterator[str]:
    yield "http://here"


DIGITS = Reply("0123456789")


class Wrapped:
    """A call with one effect around it: what came of it, the seconds that it let pass, and whether the model was asked."""

    def __init__(self, effect: str, seconds: float = 3.0, reply: Reply | CallFailed = DIGITS):
        self.slept, self.asked = list[float](), 0
        self._reply = reply
        wrap = effect_at(effect, "call", CallEffect).strike
        self.outcome: Reply | CallFailed
        try:
            self.outcome = run(wrap(self._send, Disturbance(seconds, self._sleep)))  # type: ignore[arg-type]
        except CallFailed as failure:
            self.outcome = failure

    async def _send(self) -> Reply:
        self.asked += 1
        if isinstance(self._reply, CallFailed):
            raise self._reply
        return self._reply

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_a_rate_limit_is_a_429_with_the_seconds_in_retry_after_and_nothing_is_asked() -> None:
    call = Wrapped("rate_limit")
    assert isinstance(call.outcome, RateLimited)
    assert (call.outcome.retry_after, call.outcome.injected, call.asked, call.slept) == (3.0, True, 0, [])


def test_a_server_error_is_a_500_at_once() -> None:
    call = Wrapped("server_error")
    assert isinstance(call.outcome, ServerFailed)
    assert (call.outcome.injected, call.asked, call.slept) == (True, 0, [])


def test_a_time_out_lets_its_seconds_pass_and_is_paid() -> None:
    call = Wrapped("timeout")
    assert isinstance(call.outcome, TimedOut)
    assert (call.outcome.injected, call.outcome.paid, call.asked, call.slept) == (True, True, 0, [3.0])


def test_a_cut_off_asks_and_half_of_the_reply_comes() -> None:
    call = Wrapped("cut_off")
    assert isinstance(call.outcome, CutOff)
    assert (call.outcome.partial, call.outcome.injected, call.asked) == ("01234", True, 1)


def test_a_cut_off_of_a_call_that_fails_by_itself_is_that_failure() -> None:
    failure = ServerFailed("500")
    assert Wrapped("cut_off", reply=failure).outcome is failure


def test_a_slow_call_lets_its_seconds_pass_and_then_is_made() -> None:
    call = Wrapped("slow")
    assert (call.outcome, call.asked, call.slept) == (DIGITS, 1, [3.0])


def test_a_refusal_answers_in_the_models_place() -> None:
    call = Wrapped("refusal")
    assert (call.outcome, call.asked, call.slept) == (Reply("", finish="content_filter"), 0, [])


# -- several at one call ----------------------------------------------------------------------------------------------------


def at_total(*effects: str, seconds: float = 5.0) -> list[Fault]:
    return [{"point": "call", "effect": effect, "subtask": "total", "attempts": [1], "seconds": seconds} for effect in effects]


def tries(result: TrialResult) -> list[tuple[int, str | None, float, bool]]:
    """(attempt, failure, seconds that faults added, whether the model was asked) of each call for `total`."""
    return [
        (call.attempt, call.failure, call.delay, call.asked) for call in events(result, Called) if call.subtasks == ("total",)
    ]


def struck(*effects: str, script: Sequence[Line] = (), **settings: Any) -> TrialResult:
    result, _ = scripted("runtime_structured", {"total": list(script)}, at_total(*effects), **settings)
    return result


def test_a_slow_call_that_is_cut_off_is_both_at_one_try() -> None:
    result = struck("slow", "cut_off")
    assert tries(result) == [(1, "cut_off", 5.0, True), (1, None, 0.0, True)]
    assert [call.seconds for call in events(result, Called)][1] == 6.0
    assert stages(result) == {1: ["planned", "delivered", "recovered"], 2: ["planned", "delivered", "detected", "recovered"]}


def test_what_stands_behind_a_failure_strikes_the_next_try() -> None:
    assert tries(struck("cut_off", "slow")) == [(1, "cut_off", 0.0, True), (1, None, 5.0, True)]


def test_a_rate_limit_and_a_time_out_each_spoil_one_try_in_the_plans_order() -> None:
    assert tries(struck("rate_limit", "timeout")) == [
        (1, "rate_limited", 0.0, False),
        (1, "timed_out", 5.0, False),
        (1, None, 0.0, True),
    ]
    assert [tried[1] for tried in tries(struck("timeout", "rate_limit"))] == ["timed_out", "rate_limited", None]


def test_two_delays_of_one_call_add_up() -> None:
    assert tries(struck("slow", "slow")) == [(1, None, 10.0, True)]


def test_a_refusal_comes_after_all_failures_and_delays_wherever_it_stands_in_the_plan() -> None:
    result = struck("refusal", "server_error", "slow")
    assert tries(result) == [(1, "server_failed", 0.0, False), (1, None, 5.0, False), (2, None, 0.0, True)]
    refused = events(result, Called)[2]
    assert (refused.finish, refused.reply is not None) == ("content_filter", True)
    assert [judged.reason for judged in events(result, Judged) if judged.calls == (refused.call,)] == ["refusal"]


def test_a_call_that_several_subtasks_refusals_strike_carries_each_of_them() -> None:
    fault = {"point": "call", "effect": "refusal", "attempts": [1]}
    result, _ = scripted("monolithic", faults=[fault])
    assert [event.subtask for event in events(result, Faulted) if event.stage == "delivered"] == ["gather", "total", "review"]
    assert stages(result) == {number: ["planned", "delivered", "detected", "recovered"] for number in (1, 2, 3)}
    assert [call.asked for call in events(result, Called)] == [False, True]


def test_a_fault_is_planned_when_its_try_is_made_and_not_before() -> None:
    result = struck("server_error", "server_error", script=[], back_off={"tries": 1})
    assert result.record.outcome == "gave_up"
    assert stages(result) == {1: ["planned", "delivered", "detected", "gave_up"]}


def test_a_fault_that_an_abandoned_call_never_reached_strikes_the_next_one() -> None:
    """The client leaves while a fault delays its call; the failure behind the delay is still to come."""

    async def architecture(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(task.subtasks[0], server=unserved) as session:
            for _ in range(2):
                try:
                    await asyncio.wait_for(session.answer(task.subtasks[:1], session.messages()), 0.05)
                except (TimeoutError, RateLimited):
                    continue

    faults = [
        {"point": "call", "effect": effect, "subtask": "gather", "attempts": [1], "seconds": 60.0}
        for effect in ("slow", "rate_limit")
    ]
    model = ScriptedModel(TINY.reference)
    model.timing = "live"
    result = conducted(architecture, faults=faults, model=model)
    assert [call.failure for call in events(result, Called)] == ["timed_out", "rate_limited"]
    assert len(stages(result)) == 2


@pytest.mark.parametrize("effect", ["rate_limit", "server_error", "timeout", "cut_off"])
def test_a_call_that_failed_on_purpose_is_detected_at_once_and_carries_nothing_on(effect: str) -> None:
    result = struck(effect)
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}
    first = next(event for event in events(result, Faulted))
    assert first.call == 2
