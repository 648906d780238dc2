"""Each token stands in exactly one account, and the accounts add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from records import accepted, called, committed, recovered, rejected, smooth
from trials import matrix_of, run_all

from bench.record import ledger
from bench.record.events import Answered, Called, Cause, Committed, Event, Judged

NAMES = ("a", "b", "c")
CAUSES = get_args(Cause)
VERDICTS = st.lists(st.booleans(), max_size=2)


def booked(events: Sequence[Event]) -> dict[int, str]:
    return {entry.call.call: entry.account for entry in ledger.book(events)}


def verdicts(events: Sequence[Event]) -> dict[int, str]:
    return {entry.call.call: entry.verdict for entry in ledger.book(events)}


@st.composite
def courses(draw: st.DrawFn) -> list[Event]:
    """Any course of a trial: calls that fail or not, are judged or not, write versions made from any earlier ones, or not."""
    events: list[Event] = []
    written: list[tuple[str, int]] = []
    for number in range(1, draw(st.integers(0, 8)) + 1):
        subtasks = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
        failure = draw(st.sampled_from([None, None, None, "timed_out", "rate_limited"]))
        cause = draw(st.sampled_from(CAUSES))
        tokens = draw(st.tuples(st.integers(0, 999), st.integers(0, 999)))
        events.append(called(number, *subtasks, cause=cause, failure=failure, tokens=tokens))
        for subtask in () if failure else subtasks:
            for verdict in draw(VERDICTS):
                events.append(accepted(number, subtask) if verdict else rejected(number, subtask))
            if draw(st.booleans()):
                version = sum(name == subtask for name, _ in written) + 1
                made_from: list[tuple[str, int]] = draw(st.lists(st.sampled_from(written), max_size=3)) if written else []
                events.append(committed(number, subtask, version, [("document", 0), *made_from]))
                written.append((subtask, version))
    if draw(st.booleans()) and written:
        events.append(Answered(tuple(draw(st.lists(st.sampled_from(written), min_size=1, unique=True)))))
    return events


@given(courses())
def test_the_accounts_add_up_to_what_was_paid(events: list[Event]) -> None:
    paid = sum(event.tokens_in + event.tokens_out for event in events if isinstance(event, Called))
    assert sum(ledger.totals(ledger.book(events)).values()) == paid
    assert ledger.imbalance(ledger.book(events), paid) is None


@given(courses())
def test_each_call_is_booked_once(events: list[Event]) -> None:
    made = [event.call for event in events if isinstance(event, Called)]
    assert [entry.call.call for entry in ledger.book(events)] == made


@given(courses())
def test_in_answer_is_just_what_the_final_answer_stands_on(events: list[Event]) -> None:
    commits = {(event.subtask, event.version): event for event in events if isinstance(event, Committed)}

    def stands_on(output: tuple[str, int]) -> set[int]:
        commit = commits[output]
        return set(commit.calls).union(*(stands_on((name, version)) for name, version, _ in commit.made_from if version))

    answers = [event for event in events if isinstance(event, Answered)]
    expected = set().union(*(stands_on(output) for answer in answers for output in answer.versions))
    judging = {event.call for event in events if isinstance(event, Called) and event.cause == "judge"}
    assert {call for call, account in booked(events).items() if account == "in_answer"} == expected - judging


@given(courses())
def test_without_an_answer_no_call_is_in_it(events: list[Event]) -> None:
    unanswered = [event for event in events if not isinstance(event, Answered)]
    assert "in_answer" not in booked(unanswered).values()


@given(courses())
def test_a_call_without_a_reply_is_lost_whatever_else_is_said_of_it(events: list[Event]) -> None:
    failed = {event.call for event in events if isinstance(event, Called) and event.failure}
    assert {call for call, account in booked(events).items() if account == "lost"} == failed


def test_what_an_accepted_output_was_made_from_is_in_the_answer_too() -> None:
    answer_names_the_last_only = [*smooth()[:-1], Answered((("b", 1),))]
    assert booked(answer_names_the_last_only) == {1: "in_answer", 2: "in_answer"}


def test_a_rejected_reply_is_rejected_and_its_retry_in_the_answer() -> None:
    assert booked(recovered()) == {1: "in_answer", 2: "rejected", 3: "in_answer"}
    assert verdicts(recovered()) == {1: "accepted", 2: "rejected:schema", 3: "accepted"}


def test_a_reply_for_all_subtasks_is_rejected_as_a_whole() -> None:
    events: list[Event] = [called(1, "a", "b"), accepted(1, "a"), rejected(1, "b", "check")]
    assert booked(events) == {1: "rejected"}
    assert verdicts(events) == {1: "rejected:check"}


def test_the_last_verdict_counts() -> None:
    reopened: list[Event] = [called(1, "a"), accepted(1, "a"), committed(1, "a"), rejected(1, "a", "found_wrong")]
    assert booked(reopened) == {1: "rejected"}
    assert verdicts(reopened) == {1: "rejected:found_wrong"}


def test_what_was_accepted_or_unverified_and_thrown_away_is_superseded() -> None:
    events: list[Event] = [called(1, "a"), accepted(1, "a"), committed(1, "a"), called(2, "b"), committed(2, "b")]
    assert booked(events) == {1: "superseded", 2: "superseded"}
    assert verdicts(events) == {1: "accepted", 2: "unverified"}


def test_a_judges_tokens_are_judging_and_retry_tokens_after_a_rejection_alone() -> None:
    for caused_by, is_retry in ((None, False), (0, True)):
        [entry] = ledger.book([replace(called(1, "a", cause="judge"), caused_by=caused_by)])
        assert (entry.account, entry.is_retry) == ("judging", is_retry)


def test_retry_tokens_are_those_of_retries_and_reruns_and_of_nothing_that_was_planned() -> None:
    entries = ledger.book([called(number, cause=cause) for number, cause in enumerate(CAUSES, 1)])
    assert {entry.call.cause for entry in entries if entry.is_retry} == {"retry", "rerun"}


def test_all_calls_that_made_an_output_are_in_the_answer_not_the_last_alone() -> None:
    made = Committed("a", 1, (1, 2, 3), True, "d", ())
    turns: list[Event] = [
        called(1, "a"),
        called(2, "a", cause="step"),
        called(3, "a", cause="step"),
        made,
        Answered((("a", 1),)),
    ]
    assert booked(turns) == {1: "in_answer", 2: "in_answer", 3: "in_answer"}
    assert not any(entry.is_retry for entry in ledger.book(turns))


def test_a_sample_that_was_not_taken_is_redundant_and_one_that_was_rejected_is_rejected() -> None:
    votes = [replace(called(number, "a", cause="sample"), sample=number) for number in (1, 2, 3)]
    taken: list[Event] = [*votes, rejected(3, "a"), committed(2, "a"), Answered((("a", 1),))]
    assert booked(taken) == {1: "redundant", 2: "in_answer", 3: "rejected"}


def test_of_a_trial_without_an_answer_the_sample_that_was_taken_is_superseded_and_the_others_are_redundant() -> None:
    votes = [replace(called(number, "a", cause="sample"), sample=number) for number in (1, 2)]
    assert booked([*votes, committed(1, "a")]) == {1: "superseded", 2: "redundant"}


def test_a_verdict_on_a_reply_as_it_was_before_its_fault_books_nothing() -> None:
    undamaged = Judged((1,), "a", False, "check", view="undamaged", fault=1)
    assert booked([called(1, "a"), undamaged, accepted(1, "a"), committed(1, "a"), Answered((("a", 1),))]) == {1: "in_answer"}


def test_a_ledger_that_does_not_add_up_says_so() -> None:
    imbalance = ledger.imbalance(ledger.book(smooth()), 241)
    assert imbalance == "the ledger adds up to 240 tokens, but 241 were counted"


def test_the_ledgers_of_real_trials_add_up_to_what_their_callers_counted() -> None:
    schedule = [
        {"point": "output", "effect": "missing_field", "probability": 0.3},
        {"point": "output", "effect": "wrong_value", "probability": 0.2},
        {"point": "call", "effect": "cut_off", "probability": 0.2},
        {"point": "call", "effect": "rate_limit", "probability": 0.2},
    ]
    results = run_all(matrix_of(plans={"schedule": schedule}, repetitions=5))
    accounts = {account for result in results for account in booked(result.record.events).values()}
    assert accounts - {"redundant"} == {"in_answer", "rejected", "superseded", "lost"}  # redundant: of who takes samples
    for result in results:
        assert ledger.imbalance(ledger.book(result.record.events), result.record.tokens) is None
