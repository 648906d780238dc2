"""A failure's rounds: what was run again because of it, each call once, and what a fault that mattered nothing costs: nothing
is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from records import accepted, called, committed, fault, id_of, recovered, rejected, run_of, smooth, trial, undamaged
from trials import CELLS, matrix_of, run_all

from bench.read.analysis.faults import receipts
from bench.read.analysis.frames import load_run
from bench.read.analysis.recovery import Recovery, TrialFailures, seconds_of, tokens_of
from bench.record.events import Called, Committed, Event, Judged
from bench.record.ledger import is_retry
from bench.run.trial.effects import points_of

PAPER = Path(__file__).parents[3] / "results" / "paper-qwen2.5-coder-1.5b-instruct"


def of(events: Sequence[Event]) -> tuple[Recovery, ...]:
    record = trial(events=events)
    return TrialFailures(events).recoveries(receipts(record))


def numbers(calls: Sequence[Called]) -> list[int]:
    return [call.call for call in calls]


def unverified(call: int, subtask: str, version: int = 1) -> Committed:
    return replace(committed(call, subtask, version), verified=False)


def test_a_rejected_reply_is_asked_for_again_in_one_round() -> None:
    [recovery] = of(recovered(retry=130))
    assert numbers(recovery.first) == numbers(recovery.calls) == [3]
    assert tokens_of(recovery.first) == 150
    assert recovery.accepted_again
    assert recovery.subtasks == ("b",)


def test_a_second_rejection_begins_another_round_of_the_same_recovery() -> None:
    events = recovered()
    again: list[Event] = [rejected(3, "b"), called(4, "b", cause="retry", attempt=3, caused_by=10), accepted(4, "b")]
    [recovery] = of([*events[:10], *again, committed(4, "b")])
    assert numbers(recovery.first) == [3]
    assert numbers(recovery.calls) == [3, 4]
    assert recovery.accepted_again


def test_a_recovery_that_ends_without_an_accepted_output_is_none() -> None:
    [recovery] = of([*recovered()[:10], rejected(3, "b")])
    assert numbers(recovery.calls) == [3]
    assert not recovery.accepted_again


def test_where_nothing_was_asked_again_there_is_no_first_round() -> None:
    [recovery] = of(recovered()[:9])
    assert recovery.first == recovery.calls == ()
    assert not recovery.accepted_again


def test_a_verdict_on_a_call_that_is_not_there_ends_no_recovery() -> None:
    """As a file can have it."""
    events = list(recovered())
    at = max(number for number, event in enumerate(events) if isinstance(event, Judged) and event.accepted)
    verdict = events[at]
    assert isinstance(verdict, Judged) and of(events)[0].accepted_again
    events[at] = replace(verdict, calls=(99,))
    assert not of(events)[0].accepted_again


def test_a_checkpoints_rejections_are_one_failure_and_its_round_goes_up_to_the_next_checkpoint() -> None:
    events: list[Event] = [
        *(called(1, "a"), unverified(1, "a"), *fault("planned", "delivered"), called(2, "b"), unverified(2, "b")),
        *(called(3, "c"), unverified(3, "c"), undamaged(2, "b")),
        *(rejected(1, "a"), rejected(2, "b"), *fault("detected"), accepted(3, "c")),
        *(called(4, "a", cause="retry", attempt=2, caused_by=9), unverified(4, "a", 2)),
        *(called(5, "b", cause="retry", attempt=2, caused_by=10), unverified(5, "b", 2)),
        *(called(6, "c", cause="rerun", attempt=2, caused_by=10), unverified(6, "c", 2)),
        *(accepted(4, "a"), accepted(5, "b"), rejected(6, "c")),
        *(called(7, "c", cause="retry", attempt=3, caused_by=21), unverified(7, "c", 3)),
        *(accepted(4, "a"), accepted(5, "b"), accepted(7, "c")),
    ]
    assert isinstance(events[9], Judged)
    assert isinstance(events[21], Judged)
    [recovery] = of(events)
    assert numbers(recovery.first) == [4, 5, 6]
    assert numbers(recovery.calls) == [4, 5, 6, 7], "what was run again with it was rejected, so it is not over"
    assert recovery.accepted_again


def test_replies_that_were_judged_apart_fail_apart() -> None:
    events: list[Event] = [
        *(called(1, "a"), *fault("planned", "delivered"), called(2, "b"), undamaged(2, "b")),
        *(rejected(1, "a"), rejected(2, "b"), *fault("detected")),
        *(called(3, "a", cause="retry", attempt=2, caused_by=5), called(4, "b", cause="retry", attempt=2, caused_by=6)),
        *(accepted(3, "a"), accepted(4, "b")),
    ]
    [recovery] = of(events)
    assert numbers(recovery.first) == numbers(recovery.calls) == [4]


def test_an_output_made_from_a_wrong_one_is_in_the_price_and_not_in_the_first_round() -> None:
    events: list[Event] = [
        *(*fault("planned", "delivered", call=1, subtask="a", point="state"), called(1, "a"), accepted(1, "a")),
        *(committed(1, "a"), called(2, "b"), accepted(2, "b"), committed(2, "b")),
        *(rejected(1, "a", "found_wrong"), *fault("detected", call=1, subtask="a", point="state")),
        *(called(3, "a", cause="retry", attempt=2, caused_by=8), accepted(3, "a"), committed(3, "a", 2)),
        *(called(4, "b", cause="rerun", attempt=2, caused_by=8), accepted(4, "b"), committed(4, "b", 2)),
        *(called(5, "c"), rejected(5, "c"), called(6, "c", cause="retry", attempt=2, caused_by=17), accepted(6, "c")),
    ]
    [recovery] = of(events)
    assert numbers(recovery.first) == [3]
    assert numbers(recovery.calls) == [3, 4], "what failed later of itself is no part of it"
    assert recovery.accepted_again


def test_a_lost_reply_a_rerun_and_a_reopening_are_one_round_each() -> None:
    lost = fault("planned", "delivered", "detected", number=1, call=1, subtask="a", point="call")
    events: list[Event] = [
        *(*lost, called(1, "a", failure="timed_out")),
        *(called(2, "a", cause="retry", caused_by=3), accepted(2, "a"), committed(2, "a")),
        *(
            *fault("planned", "delivered", number=2, call=3, subtask="b"),
            called(3, "b"),
            undamaged(3, "b", 2),
            rejected(3, "b"),
        ),
        *(*fault("detected", number=2, call=3, subtask="b"), called(4, "b", cause="retry", attempt=2, caused_by=11)),
        *(accepted(4, "b"), committed(4, "b", made_from=[("a", 1)])),
        *(rejected(2, "a", "found_wrong"), called(5, "a", cause="retry", attempt=2, caused_by=16), accepted(5, "a")),
        *(called(6, "b", cause="rerun", attempt=3, caused_by=16), accepted(6, "b")),
    ]
    for at, kind in ((3, Called), (11, Judged), (16, Judged)):
        assert isinstance(events[at], kind)
    by_loss, by_rejection = of(events)
    assert numbers(by_loss.first) == [2]
    assert numbers(by_rejection.first) == [4]
    assert not set(numbers(by_loss.calls)) & set(numbers(by_rejection.calls))


def test_a_call_lost_in_a_retry_is_caused_by_its_loss() -> None:
    lost = fault("planned", "delivered", "detected", call=2, subtask="a", point="call")
    events: list[Event] = [
        *(called(1, "a"), rejected(1, "a"), *lost, called(2, "a", cause="retry", attempt=2, caused_by=1, failure="timed_out")),
        *(called(3, "a", cause="retry", attempt=2, caused_by=5), accepted(3, "a")),
    ]
    [recovery] = of(events)
    assert numbers(recovery.first) == [3]


def test_a_call_that_was_refused_unpaid_has_no_round() -> None:
    refused = fault("planned", "delivered", "detected", call=1, subtask="a", point="call")
    assert of([*refused, called(1, "a", failure="rate_limited", tokens=(0, 0)), called(2, "a"), accepted(2, "a")]) == ()


def test_seconds_in_which_calls_overlap_count_once() -> None:
    first, second = called(1, "a"), replace(called(2, "b"), started=0.25)
    assert seconds_of([first, second]) == pytest.approx(1.25)
    assert seconds_of([]) == 0.0


@pytest.mark.parametrize("architecture", ["monolithic", "static", "runtime_structured"])
@pytest.mark.parametrize("effect", sorted({name for name, _ in CELLS}))
def test_whatever_the_fault_no_call_stands_in_two_first_rounds_and_none_that_is_no_retry_in_any(
    architecture: str, effect: str
) -> None:
    faults = ({"point": point, "effect": effect, "probability": 0.4} for point in points_of(effect) if (effect, point) in CELLS)
    plans = {str(fault["point"]): [fault] for fault in faults}
    matrix = matrix_of("tiny", plans, architectures=[architecture], repetitions=6)
    for result in run_all(matrix):
        recoveries = TrialFailures(result.record.events).recoveries(receipts(result.record))
        first = [number for recovery in recoveries for number in numbers(recovery.first)]
        assert len(first) == len(set(first))
        for recovery in recoveries:
            assert set(numbers(recovery.first)) <= set(numbers(recovery.calls))
            assert all(is_retry(call) for call in recovery.calls)
            assert tokens_of(recovery.first) <= tokens_of(recovery.calls)


# In the frames


def test_a_masked_fault_has_a_first_round_and_no_price(tmp_path: Path) -> None:
    events = recovered()
    events[6] = undamaged(2, "b", reason="check")
    run = run_of(tmp_path / "run", [trial("static", "paper", events=events)])
    [row] = run.trials.to_dict("records")
    assert row["first_round_tokens"] == 130 + 20
    assert row["price_tokens"] != row["price_tokens"], "not measured, which is not 0"
    [result] = run.recoveries.to_dict("records")
    assert (result["masked"], result["effective"]) == (1, 0)


def test_several_effective_faults_share_the_price_of_a_trial(tmp_path: Path) -> None:
    events = recovered()
    events[5:5] = fault("planned", "delivered", number=2)
    events[8:9] = [undamaged(2, "b"), undamaged(2, "b", fault=2), rejected(2, "b"), *fault("detected", number=2)]
    events = [replace(event, caused_by=10) if isinstance(event, Called) and event.caused_by else event for event in events]
    run = run_of(tmp_path / "run", [trial("static", "paper", events=events)])
    [row] = run.trials.to_dict("records")
    assert (row["first_round_tokens"], row["price_tokens"]) == (150, 75)


def test_a_first_pass_is_there_only_where_every_subtask_was_asked_for(tmp_path: Path) -> None:
    records = [
        trial("static", "none", 1, events=smooth(), scenario="demo"),
        trial("static", "none", 2, "gave_up", events=[called(1, "a"), rejected(1, "a")], scenario="demo"),
        trial("static", "paper", 1, events=recovered(), scenario="demo"),
    ]
    run = run_of(tmp_path / "run", records)
    values = dict(zip(run.trials["trial"], run.trials["first_pass_tokens"], strict=True))
    assert values[id_of("static-none-1-demo-m")] == values[id_of("static-paper-1-demo-m")] == 240
    assert values[id_of("static-none-2-demo-m")] != values[id_of("static-none-2-demo-m")]


def test_what_a_struck_input_mattered_is_told_by_the_control_that_went_the_same_way(tmp_path: Path) -> None:
    carried = [*fault("planned", "delivered", call=2, point="input")]
    struck: list[Event] = [*smooth()[:3], *carried, *smooth()[3:], *fault("recovered", call=2, point="input")]
    elsewhere = [replace(each, reply="other") if isinstance(each, Called) and each.call == 1 else each for each in struck]
    refused: list[Event] = [*smooth()[:4], rejected(2, "b")]
    records = [
        *(trial("static", "none", 1), trial("static", "paper", 1, events=struck)),
        *(trial("static", "none", 2, "gave_up", events=refused), trial("static", "paper", 2, events=struck)),
        *(trial("static", "none", 3), trial("static", "paper", 3, events=elsewhere)),
    ]
    run = run_of(tmp_path / "run", records)
    assert run.faults["impact"].tolist() == ["effective", "masked", "undetermined"]


@pytest.mark.parametrize(
    ("scenario", "architecture", "n", "first", "masked", "effective"),
    [
        ("multi_file_debugging", "monolithic", 9, 1674, 6, 1691),
        ("multi_file_debugging", "static", 10, 1426, 2, 1438),
        ("multi_file_debugging", "runtime_structured", 10, 357, 2, 362),
        ("k8s_oomkill", "monolithic", 9, 2583, 9, None),
        ("k8s_oomkill", "static", 10, 2302, 7, 2174),
        ("k8s_oomkill", "runtime_structured", 10, 1020, 8, 890),
    ],
)
def test_the_committed_run_has_the_first_rounds_that_outsiders_counted(
    scenario: str, architecture: str, n: int, first: int, masked: int, effective: int | None
) -> None:
    """By two independent recounts of the raw events."""
    recoveries = load_run(PAPER).recoveries
    of_arm = recoveries[(recoveries["scenario"] == scenario) & (recoveries["architecture"] == architecture)]
    assert len(of_arm) == n
    assert round(of_arm["first_tokens"].mean()) == first
    assert of_arm["masked"].sum() == masked
    mattered = of_arm[of_arm["effective"] > 0]
    assert (round(mattered["first_tokens"].mean()) if len(mattered) else None) == effective


# Rejections


def test_what_was_judged_together_is_rejected_once_and_a_lost_reply_or_an_undamaged_one_is_no_rejection() -> None:
    at_once: list[Event] = [called(1, "a", "b"), rejected(1, "a"), rejected(1, "b")]
    assert TrialFailures(at_once).rejections == 1
    again: list[Event] = [
        *at_once,
        called(2, "a", "b", cause="retry", attempt=2, caused_by=1),
        accepted(2, "a"),
        rejected(2, "b"),
    ]
    assert TrialFailures(again).rejections == 2
    checkpoint: list[Event] = [
        called(1, "a"),
        unverified(1, "a"),
        called(2, "b"),
        unverified(2, "b"),
        rejected(1, "a"),
        rejected(2, "b"),
    ]
    assert TrialFailures(checkpoint).rejections == 1
    one_by_one: list[Event] = [called(1, "a"), rejected(1, "a"), called(2, "a", cause="retry", caused_by=1), rejected(2, "a")]
    assert TrialFailures(one_by_one).rejections == 2
    assert TrialFailures([called(1, "a", failure="timeout"), *smooth()]).rejections == 0
    assert TrialFailures([called(1, "a"), undamaged(1, "a", reason="schema"), accepted(1, "a")]).rejections == 0


def in_shadow(call: int, subtask: str) -> Judged:
    return replace(rejected(call, subtask), view="shadow")


def test_a_verdict_that_the_proposer_was_not_told_causes_nothing_beside_a_failure_of_which_it_was_told() -> None:
    """`a` runs again because `b` was rejected, though its first reply would have been rejected too."""
    struck = [*fault("planned", "delivered"), called(2, "b"), undamaged(2, "b"), rejected(2, "b"), *fault("detected")]
    events = [called(1, "a"), *struck, in_shadow(1, "a")]
    again = replace(called(3, "a", cause="retry", caused_by=7), inferred=True)
    [recovery] = of([*events, again, called(4, "b", cause="retry", caused_by=5), accepted(4, "b")])
    assert numbers(recovery.first) == [3, 4]


def test_a_verdict_in_shadow_stays_the_cause_where_the_proposer_was_told_nothing() -> None:
    events = [*fault("planned", "delivered", call=1), called(1, "b"), undamaged(1, "b"), in_shadow(1, "b")]
    again = replace(called(2, "b", cause="retry", caused_by=4), inferred=True)
    [recovery] = of([*events, *fault("detected", call=1), again, accepted(2, "b")])
    assert numbers(recovery.first) == [2]
