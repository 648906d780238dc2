"""Every request is in the account: what was paid, what was lost, why it was made, and how long the trial stood still."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from scripted_model import ScriptedModel
from trials import GRADERS, TINY, Fault, calls, events, matrix_of, run_all, scripted, stages, with_model

from bench.common.errors import (
    BadAnswer,
    CutOff,
    NoCompletion,
    NoText,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLong,
    UnknownFinish,
    Unreachable,
)
from bench.common.tokens import count_tokens
from bench.read.analysis.trial import TrialReading
from bench.record.cost import Tariff
from bench.record.events import Called, Faulted, Judged, Waited
from bench.record.ledger import book, totals
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.models.base import Reply, Request
from bench.run.trial.call import BackOff
from bench.run.trial.gate import Gate
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots

PAID = [
    *(TimedOut("late"), CutOff("broke", partial="half a rep"), TooLong("9 MiB"), NoText("null")),
    *(UnknownFinish("odd", partial="whole"), ServerFailed("in mid-reply", partial="half"), RateLimited("429", counted=(9, 1))),
]
UNPAID = [RateLimited("429", retry_after=7.0), ServerFailed("500"), Unreachable("none"), NoCompletion("a page")]


def api_fault(effect: str, **fault: Any) -> Fault:
    return {"point": "call", "effect": effect, "subtask": "total", "attempts": [1], **fault}


def total_calls(result: TrialResult) -> list[Called]:
    return [call for call in events(result, Called) if call.subtasks == ("total",)]


@pytest.mark.parametrize("failure", [*PAID, *UNPAID], ids=lambda failure: failure.kind)
def test_a_call_that_fails_for_a_passing_reason_is_made_again_in_the_same_attempt(failure: Any) -> None:
    result, model = scripted("runtime_structured", {"total": [failure]})
    failed, again = total_calls(result)
    assert result.record.outcome == "solved"
    assert (failed.failure, again.failure) == (failure.kind, None)
    assert [(call.attempt, call.try_) for call in (failed, again)] == [(1, 1), (1, 2)]
    assert failed.messages == again.messages
    assert len(model.requests) == 4


@pytest.mark.parametrize("failure", PAID, ids=lambda failure: failure.kind)
def test_what_was_paid_and_lost_is_counted_and_the_next_try_is_a_retry(failure: Any) -> None:
    result, model = scripted("runtime_structured", {"total": [failure]})
    failed, again = total_calls(result)
    sent = sum(count_tokens(message.content) for message in model.requests[1].messages)
    assert (failed.tokens_in, failed.tokens_out) == (sent, count_tokens(failure.partial))
    assert (failed.usage_in, failed.usage_out) == (failure.counted or (None, None))
    assert [call.cause for call in (failed, again)] == ["first", "retry"]
    assert totals(book(result.record.events))["lost"] == sent + count_tokens(failure.partial)


@pytest.mark.parametrize("failure", UNPAID, ids=lambda failure: failure.kind)
def test_what_was_refused_unpaid_costs_nothing_and_the_next_try_keeps_its_cause(failure: Any) -> None:
    result, _ = scripted("runtime_structured", {"total": [failure]})
    failed, again = total_calls(result)
    assert (failed.tokens_in, failed.tokens_out) == (0, 0)
    assert [call.cause for call in (failed, again)] == ["first", "first"]
    assert result.record.tokens == scripted("runtime_structured")[0].record.tokens


def test_a_call_whose_reply_could_not_be_read_leaves_its_event_and_counts_as_paid() -> None:
    matrix = matrix_of(architectures=["runtime_structured"])
    model = ScriptedModel(TINY.reference, {}, broken)
    [result] = run_all(with_model(matrix, model))
    [call] = events(result, Called)
    assert (call.failure, call.detail, call.asked) == ("broken", "ZeroDivisionError: a \ufffd bug", True)
    assert result.record.tokens == call.tokens_in > 0
    assert result.record.outcome == "error" and result.record.traceback


def broken(_: Request) -> float:
    raise ZeroDivisionError("a \ud800\nbug")


@pytest.mark.parametrize("effect", ["missing_field", "wrong_type", "wrong_value", "truncated", "not_json"])
def test_a_deep_reply_under_a_fault_is_a_rejected_one_and_each_fault_is_accounted_for(effect: str) -> None:
    deep = Reply('{"total": 3, "why": ' + "[" * 700 + "]" * 700 + "}")
    fault: Fault = {"point": "output", "effect": effect, "subtask": "total", "attempts": [1]}
    result, _ = scripted("runtime_structured", {"total": [deep]}, [fault])
    assert result.record.outcome == ("wrong" if effect == "wrong_value" else "solved")
    assert {call.failure for call in total_calls(result)} == {None}
    assert events(result, Faulted)[-1].stage != "planned"


def test_tokens_are_counted_over_every_message_and_the_models_own_words() -> None:
    fault = {"point": "output", "effect": "refusal", "subtask": "total", "attempts": [1]}
    result, model = scripted("runtime_structured", {"total": ['Sure: {"total": 42, "unit": "apples"}']}, [fault])
    struck = total_calls(result)[0]
    assert struck.tokens_in == sum(count_tokens(message.content) for message in model.requests[1].messages)
    assert struck.tokens_out == count_tokens('Sure: {"total": 42, "unit": "apples"}')
    assert result.texts[str(struck.reply)].startswith("Sure")
    assert result.texts[str(struck.delivered)].startswith("I")


def test_back_off_doubles_up_to_its_most_and_the_servers_word_goes_before() -> None:
    back_off = BackOff(tries=6, base=2.0, most=10.0)
    assert [back_off.seconds(failed, None) for failed in (1, 2, 3, 4)] == [2.0, 4.0, 8.0, 10.0]
    assert [back_off.seconds(1, asked) for asked in (0.5, 99.0, -1.0)] == [0.5, 10.0, 0.0]


def test_a_back_off_is_waiting_and_not_api_time() -> None:
    result, _ = scripted("runtime_structured", {"total": [RateLimited("429", retry_after=7.0), ServerFailed("500")]})
    assert [(wait.why, wait.seconds) for wait in events(result, Waited)] == [("backoff", 7.0), ("backoff", 2.0)]
    assert (result.record.api_seconds, result.record.waiting_seconds) == (5.0, 9.0)


def test_the_tries_of_a_call_are_bounded_and_a_real_failure_is_an_error() -> None:
    result, model = scripted("static", {"gather": [ServerFailed("500")] * 9}, back_off={"tries": 4})
    assert len(model.requests) == 4
    assert (result.record.outcome, result.record.reason) == ("error", "server_failed: 500")
    assert isinstance(result.failure, ServerFailed)


def test_a_failure_that_no_try_could_mend_is_an_error_at_once() -> None:
    result, model = scripted("static", {"gather": [BadAnswer("HTTP 400")]})
    assert len(model.requests) == 1
    assert (result.record.outcome, result.record.reason) == ("error", "bad_answer: HTTP 400")


def test_a_trial_whose_tries_were_used_up_by_injected_failures_has_given_up() -> None:
    faults = [api_fault("server_error")] * 3
    result, model = scripted("static", faults=faults, back_off={"tries": 3})
    assert (result.record.outcome, len(model.requests)) == ("gave_up", 1)
    assert result.record.reason == "total: no reply after 3 tries: 500 (injected)"
    assert list(stages(result).values()) == [["planned", "delivered", "detected", "gave_up"]] * 3


@pytest.mark.parametrize(
    ("effect", "paid"), [("rate_limit", False), ("server_error", False), ("timeout", True), ("cut_off", True)]
)
def test_a_persistent_failure_strikes_every_request_until_the_tries_are_used_up(effect: str, paid: bool) -> None:
    """Each request has its receipt, effective as every call fault's is. What was paid and lost is made again, at a price."""
    fault = api_fault(effect, attempts="every")
    result, _ = scripted("static", faults=[fault, api_fault("slow", attempts="every")], back_off={"tries": 4})
    assert result.record.outcome == "gave_up"
    assert [(call.try_, call.failure is None) for call in total_calls(result)] == [(number, False) for number in (1, 2, 3, 4)]
    assert list(stages(result).values()) == [["planned", "delivered", "detected", "gave_up"]] * 4, "what comes later is not met"
    trial = TrialReading(result.record, Tariff({}))
    assert [receipt.impact for receipt in trial.receipts] == ["effective"] * 4
    assert trial.price(len) == (3 / 4 if paid else None), "three requests were made again for four faults"
    assert not any(recovery.accepted_again for recovery in trial.recoveries)


def test_a_persistent_delay_strikes_every_request_of_a_call_that_fails_once() -> None:
    faults = [api_fault("slow", attempts="every", seconds=5.0), api_fault("server_error")]
    result, _ = scripted("runtime_structured", faults=faults)
    assert result.record.outcome == "solved"
    assert [call.delay for call in total_calls(result)] == [5.0, 5.0]
    assert [way[-1] for way in stages(result).values()] == ["recovered", "recovered", "undetected"]


@pytest.mark.parametrize(
    ("effect", "asked", "seconds", "waited", "paid"),
    [
        ("rate_limit", 3, 0.0, 5.0, False),
        ("server_error", 3, 0.0, 1.0, False),
        ("timeout", 3, 5.0, 1.0, True),
        ("cut_off", 4, 1.0, 1.0, True),
    ],
)
def test_an_injected_failure_is_one_of_its_kind(effect: str, asked: int, seconds: float, waited: float, paid: bool) -> None:
    result, model = scripted("runtime_structured", faults=[api_fault(effect, seconds=5.0)])
    failed, again = total_calls(result)
    assert len(model.requests) == asked
    assert (failed.seconds, failed.tokens_in > 0) == (seconds, paid)
    assert "(injected)" in failed.detail
    assert failed.asked is (effect == "cut_off")
    assert failed.retry_after == (5.0 if effect == "rate_limit" else None)
    assert result.record.waiting_seconds == waited
    assert again.cause == ("retry" if paid else "first")
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


def test_an_injected_cut_pays_for_half_a_reply_and_keeps_it_whole() -> None:
    result, _ = scripted("runtime_structured", {"total": ["0123456789"]}, [api_fault("cut_off")])
    failed = total_calls(result)[0]
    assert failed.tokens_out == count_tokens("01234")
    assert (result.texts[str(failed.reply)], result.texts[str(failed.delivered)]) == ("0123456789", "01234")


def test_a_slow_reply_takes_its_seconds_in_flight_and_nothing_is_made_again() -> None:
    result, _ = scripted("runtime_structured", faults=[api_fault("slow", seconds=30.0)])
    assert (total_calls(result)[0].seconds, total_calls(result)[0].delay) == (31.0, 30.0)
    assert result.record.api_seconds == 33.0
    assert len(calls(result)) == 3


def test_an_injected_refusal_is_a_paid_reply_that_the_verifier_sees() -> None:
    result, _ = scripted("runtime_structured", faults=[api_fault("refusal")])
    refused = total_calls(result)[0]
    assert (refused.finish, refused.failure, refused.tokens_in > 0) == ("content_filter", None, True)
    assert [judged.reason for judged in events(result, Judged) if judged.calls == (refused.call,)] == ["refusal"]
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


def test_a_fault_in_an_input_names_the_call_that_was_answered() -> None:
    fault = {"point": "input", "effect": "wrong_value", "subtask": "total", "attempts": [1]}
    result, _ = scripted("runtime_structured", {"total": [ServerFailed("500")]}, [fault])
    ending = events(result, Faulted)[-1]
    assert (ending.stage, ending.call) == ("undetected", 3)


def test_only_the_providers_own_count_is_usage() -> None:
    result, _ = scripted("static", {"total": [Reply('{"total": 42, "unit": "apples"}', finish="length")]})
    assert (total_calls(result)[0].finish, total_calls(result)[0].usage_in) == ("length", None)


def test_the_seconds_of_a_reply_that_is_given_again_pass_once_on_a_live_trials_clock() -> None:
    matrix = matrix_of(architectures=["static"])
    again = Reply(json.dumps(TINY.reference["total"]), took=1000.0, reused=True)
    model = ScriptedModel(TINY.reference, {"total": [again]}, seconds=lambda _: 0.0)
    model.timing = "live"
    result = run(run_trial(matrix.specs[0], with_model(matrix, model), Slots(), GRADERS))
    assert 1000.0 <= total_calls(result)[0].seconds <= result.record.api_seconds < 1100.0


class Slow(Gate):
    """Takes a while to enter, because it is taken or because the machine is loaded."""

    def __init__(self, taken: bool):
        super().__init__(1)
        self._taken = taken

    @property
    def is_open(self) -> bool:
        return not self._taken

    async def enter(self) -> int:
        await asyncio.sleep(0.02)
        return 0


def slot_taken(taken: bool) -> TrialResult:
    """A live trial, since only live calls wait in real time, whose slots each take 20 ms to get."""
    matrix = matrix_of(architectures=["static"])
    model = ScriptedModel(TINY.reference, seconds=lambda _: 0.0)
    model.timing = "live"
    slots = Slots(lambda _: Slow(taken))
    return run(run_trial(matrix.specs[0], with_model(matrix, model), slots, GRADERS))


def test_waiting_for_a_slot_is_waiting() -> None:
    result = slot_taken(True)
    waits = events(result, Waited)
    assert [wait.why for wait in waits] == ["slot"] * 3
    assert result.record.waiting_seconds >= 0.06
    assert result.record.framework_seconds < result.record.waiting_seconds


def test_what_a_loaded_machine_takes_over_a_free_slot_is_no_wait_for_it() -> None:
    result = slot_taken(False)
    assert (events(result, Waited), result.record.waiting_seconds) == ([], 0.0)
