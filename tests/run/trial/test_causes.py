"""Why a call is made: no failure, no retry; and what a failure made necessary names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import events, scripted

from bench.common.errors import CutOff, GaveUp, ServerFailed
from bench.common.seeding import seed_of
from bench.record.events import Called, Judged, View, Waited
from bench.run.trial.causes import MAX_CALLS_OF_AN_ATTEMPT, CallPurpose, Causes
from bench.run.trial.key import TrialKey
from bench.run.trial.log import TrialLog

NAMES = ("a", "b", "c")
KEY = TrialKey(7, "pack", 2)


@dataclass
class Course:
    """A trial in which subtasks are asked for, rejected and lost; `failures` are the events that something is owed to."""

    key: TrialKey = KEY
    max_attempts: int = 3
    log: TrialLog = field(default_factory=TrialLog)

    def __post_init__(self) -> None:
        self.causes = Causes(self.key, self.log, self.max_attempts)
        self.failures: dict[int, set[str]] = {}

    def ask(self, *names: str, question: str = "?", **options: Any) -> CallPurpose:
        ask = self.causes.next_purpose(names, question, **options)
        self.log.emit(Waited("slot", 0.0, 0.0))  # any event of the call's
        return ask

    def reject(self, *names: str, view: View = "told") -> int:
        event = self.log.emit(Judged((1,), names[0], accepted=False, reason="schema", view=view))
        return self._failed(names, event)

    def lose(self, *names: str) -> int:
        return self._failed(names, self.log.emit(Waited("backoff", 0.0, 0.0)))

    def recover(self, event: int) -> None:
        self.causes.note_late_reply(event)
        del self.failures[event]

    def _failed(self, names: Sequence[str], event: int) -> int:
        self.causes.note_failure(names, event)
        self.failures[event] = set(names)
        return event


def purpose_of(ask: CallPurpose) -> tuple[str, int, int, int | None]:
    return ask.cause, ask.context.attempt, ask.context.sample, ask.caused_by


SOME = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), SOME, st.sampled_from("xy")),
        st.tuples(st.just("reject"), SOME, st.sampled_from(["told", "shadow"])),
        st.tuples(st.just("lose"), SOME, st.none()),
        st.tuples(st.just("recover"), st.none(), st.integers(0, 9)),
    ),
    max_size=25,
)


@given(STEPS)
def test_a_call_is_a_retry_or_rerun_only_after_a_new_failure(steps: list[Any]) -> None:
    """Against a second reckoning. A call in an attempt that a failure caused keeps that failure as its cause."""
    course = Course(max_attempts=99)
    asked: dict[str, Asked] = {}
    for what, names, detail in steps:
        if what == "reject":
            course.reject(*names, view=detail)
        elif what == "lose":
            course.lose(*names)
        elif what == "recover":
            if course.failures:
                course.recover(list(course.failures)[detail % len(course.failures)])
        else:
            last = max(
                (asked[name] for name in names if name in asked), key=lambda earlier_ask: earlier_ask.began, default=None
            )
            began = course.log.next_number
            ask = course.ask(*names, question=detail)
            assert purpose_of(ask) == expected(course, names, last, ask, detail)
            same_attempt = last is not None and last.ask.context.attempt == ask.context.attempt
            questions = last.questions if last and same_attempt else set()
            questions.add(detail)
            asked |= dict.fromkeys(names, Asked(began, ask, questions))


@dataclass
class Asked:
    """When some subtasks were last asked for, and all that was asked in that attempt, of whichever of them."""

    began: int
    ask: CallPurpose
    questions: set[str]


def expected(
    course: Course, names: list[str], last: Asked | None, ask: CallPurpose, question: str
) -> tuple[str, int, int, int | None]:
    """What a call must be called, its sample and the rise of its attempt taken as they come where no failure decides them."""
    if last is None:
        return "first", 1, 1, None
    before = last.ask
    since = [event for event in course.failures if event >= last.began]
    causes = [event for event in since if course.failures[event] & set(names)]
    if since:
        assert ask.context.attempt > before.context.attempt
        return ("retry", ask.context.attempt, 1, causes[-1]) if causes else ("rerun", ask.context.attempt, 1, since[-1])
    assert ask.context.sample >= before.context.sample
    sample = ask.context.sample
    if before.caused_by is not None:
        return before.cause, before.context.attempt, sample, before.caused_by
    return "sample" if question in last.questions else "step", before.context.attempt, sample, None


def test_the_same_question_without_a_failure_is_a_further_sample_and_another_one_a_step() -> None:
    course = Course()
    first, step, sample, next_sample = (course.ask("a", question=question) for question in "xyxy")
    assert [purpose_of(ask) for ask in (first, step, sample, next_sample)] == [
        ("first", 1, 1, None),
        ("step", 1, 1, None),
        ("sample", 1, 2, None),
        ("sample", 1, 3, None),
    ]
    assert first.seed == step.seed
    assert len({first.seed, sample.seed, next_sample.seed}) == 3


def test_after_a_rejection_the_next_call_is_a_retry_and_what_stands_beside_it_a_rerun() -> None:
    course = Course()
    course.ask("a")
    course.ask("b")
    event = course.reject("a")
    assert purpose_of(course.ask("a")) == ("retry", 2, 1, event)
    assert purpose_of(course.ask("b")) == ("rerun", 2, 1, event)
    assert purpose_of(course.ask("c")) == ("first", 1, 1, None)


def test_of_several_failures_the_latest_of_ones_own_is_the_cause() -> None:
    course = Course()
    course.ask("a", "b")
    course.reject("a")
    rejection = course.reject("a")
    course.reject("c")
    assert purpose_of(course.ask("a", "b")) == ("retry", 2, 1, rejection)


def test_what_failed_before_the_subtasks_were_last_asked_for_causes_nothing() -> None:
    course = Course()
    course.ask("a")
    course.reject("a")
    course.ask("b")
    assert purpose_of(course.ask("b", question="more")) == ("step", 1, 1, None)


def test_all_calls_of_an_attempt_that_a_failure_caused_are_caused_by_it() -> None:
    course = Course()
    course.ask("a")
    event = course.reject("a")
    retry = course.ask("a")
    assert [purpose_of(ask) for ask in course.causes.further_samples(("a",), retry, 2)] == [
        ("retry", 2, 2, event),
        ("retry", 2, 3, event),
    ]
    assert purpose_of(course.ask("a", question="more"))[0] == "retry"


def test_a_reply_that_was_lost_and_came_after_all_causes_nothing_later() -> None:
    course = Course()
    course.ask("b")
    course.ask("a")
    event = course.lose("a")
    course.recover(event)
    assert purpose_of(course.ask("b", question="more")) == ("step", 1, 1, None)
    assert purpose_of(course.ask("a", question="more")) == ("step", 1, 1, None)


def test_an_output_under_way_is_not_rerun_for_what_failed_elsewhere_but_retried_for_its_own_failure() -> None:
    course = Course()
    course.ask("a")
    course.ask("b")
    course.reject("a")
    assert purpose_of(course.ask("b", question="more", under_way=True)) == ("step", 1, 1, None)
    event = course.lose("b")
    assert purpose_of(course.ask("b", question="on", under_way=True)) == ("retry", 2, 1, event)


def test_further_turns_of_proposers_at_work_at_once_keep_their_own_sample_and_attempt() -> None:
    course = Course()
    first = course.ask("a")
    [second] = course.causes.further_samples(("a",), first, 1)
    event = course.reject("a", view="shadow")
    assert purpose_of(course.causes.further_purpose(("a",), first, False, None)) == ("step", 1, 1, None)
    retried = course.causes.further_purpose(("a",), second, False, event)
    assert purpose_of(retried) == ("retry", 2, 2, event)
    assert purpose_of(course.causes.further_purpose(("a",), retried, False, None)) == ("retry", 2, 2, event)
    assert purpose_of(course.causes.further_purpose(("a",), first, True, None))[:2] == ("sample", 1)


def test_proposers_at_work_at_once_that_are_each_rejected_are_in_the_same_second_attempt() -> None:
    course = Course()
    first = course.ask("a")
    [second] = course.causes.further_samples(("a",), first, 1)
    events_ = course.reject("a", view="shadow"), course.reject("a", view="shadow")
    turns = [
        course.causes.further_purpose(("a",), ask, False, event) for ask, event in zip((first, second), events_, strict=True)
    ]
    assert [purpose_of(turn) for turn in turns] == [("retry", 2, 1, events_[0]), ("retry", 2, 2, events_[1])]


def test_only_what_the_proposer_was_not_told_of_is_inferred() -> None:
    course = Course()
    assert not course.ask("a", inferred=True).inferred
    assert course.ask("a", question="more", inferred=True).inferred
    course.reject("a", view="shadow")
    assert course.ask("a", inferred=True).inferred
    course.reject("a", view="told")
    assert not course.ask("a", inferred=True, limit="calls").inferred
    assert not course.ask("a", question="more").inferred


def test_a_judge_call_is_caused_by_a_rejection_of_what_it_judges_and_by_nothing_before_one() -> None:
    course = Course()
    course.ask("a")
    course.reject("b")
    before = course.causes.judge_purpose(("a",))
    event = course.reject("a")
    after = course.causes.judge_purpose(("a",))
    assert (purpose_of(before), purpose_of(after)) == (("judge", 1, 1, None), ("judge", 1, 1, event))
    assert before.context.judging
    assert purpose_of(course.ask("a")) == ("retry", 2, 1, event), "a judge call is no attempt"


# -- seeds ----------------------------------------------------------------------------------------------------------------


@given(st.integers(), st.text(), st.integers(1, 99))
def test_the_first_samples_seed_of_a_sole_instance_is_what_it_always_was(seed: int, scenario: str, repetition: int) -> None:
    course = Course(TrialKey(seed, scenario, repetition))
    assert course.ask("a").seed == seed_of(seed, scenario, repetition, 1) % 2**31
    course.reject("a")
    assert course.ask("a").seed == seed_of(seed, scenario, repetition, 2) % 2**31


def test_the_seeds_of_the_committed_runs_stay_what_they_are() -> None:
    known = {"multi_file_debugging": 249229566, "k8s_oomkill": 329558953}
    assert {name: Course(TrialKey(20260515, name, 1)).ask("a").seed for name in known} == known


def test_arm_and_subtask_leave_the_seed_alone_and_instance_and_sample_change_it() -> None:
    plain = Course().ask("a").seed
    assert Course(TrialKey(7, "pack", 2, arm="static/none")).ask("b", "c").seed == plain
    assert Course(TrialKey(7, "pack", 2, instance="one")).ask("a").seed != plain
    course = Course()
    samples = course.causes.further_samples(("a",), course.ask("a"), 5)
    assert len({plain, *(ask.seed for ask in samples)}) == 6


# -- bounds ---------------------------------------------------------------------------------------------------------------


def test_attempts_are_bounded_unless_a_framework_bounds_them_itself() -> None:
    course = Course(max_attempts=2)
    for _ in range(2):
        course.ask("a", "b")
        course.reject("b")
    with pytest.raises(GaveUp, match="b: no accepted output in 2 attempts"):
        course.ask("b")
    assert purpose_of(course.ask("b", limit="calls"))[:2] == ("retry", 3)


def test_the_calls_of_one_attempt_are_bounded() -> None:
    course = Course()
    for number in range(MAX_CALLS_OF_AN_ATTEMPT):
        course.ask("a", question=str(number), limit="calls")
    with pytest.raises(GaveUp, match=f"a: no end after {MAX_CALLS_OF_AN_ATTEMPT} calls in one attempt"):
        course.ask("a", question="more", limit="calls")


def test_the_turns_of_one_proposer_are_bounded() -> None:
    course = Course()
    ask = course.ask("a")
    for _ in range(MAX_CALLS_OF_AN_ATTEMPT - 1):
        ask = course.causes.further_purpose(("a",), ask, False, None)
    with pytest.raises(GaveUp, match="a: no end"):
        course.causes.further_purpose(("a",), ask, False, None)
    with pytest.raises(GaveUp, match="a: no accepted output in 3 attempts"):
        for _ in range(3):
            ask = course.causes.further_purpose(("a",), ask, False, course.reject("a"))


# -- in a trial -----------------------------------------------------------------------------------------------------------


def test_the_try_after_a_paid_loss_is_a_retry_that_the_lost_call_caused() -> None:
    result, _ = scripted("runtime_structured", {"total": [CutOff("broke", partial="half"), ServerFailed("500")]})
    lost, refused, again = (call for call in events(result, Called) if call.subtasks == ("total",))
    number = result.record.events.index(lost)
    assert [(call.cause, call.caused_by, call.attempt) for call in (lost, refused, again)] == [
        ("first", None, 1),
        ("retry", number, 1),
        ("retry", number, 1),
    ]


def test_a_refusal_of_the_server_causes_nothing() -> None:
    result, _ = scripted("runtime_structured", {"total": [ServerFailed("500")]})
    assert {(call.cause, call.caused_by) for call in events(result, Called)} == {("first", None)}


def test_a_retry_names_the_verdict_and_a_rerun_names_it_too() -> None:
    result, _ = scripted("static", {"total": [{"unit": "apples"}]})
    retry, rerun = events(result, Called)[-2:]
    assert (retry.cause, rerun.cause) == ("retry", "rerun")
    assert retry.caused_by is not None
    assert rerun.caused_by == retry.caused_by
    verdict = result.record.events[retry.caused_by]
    assert isinstance(verdict, Judged)
    assert (verdict.subtask, verdict.accepted, verdict.calls) == ("total", False, (2,))
