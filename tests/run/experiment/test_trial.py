"""A trial is told by its record: the same whatever runs beside it, and true to what went over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_model import ScriptedModel
from scripted_server import ScriptedServer, Step, completion, cut_after, hang, status
from trials import GRADERS, TINY, events, matrix_of, run_all, scripted, with_model

from bench.common.tokens import count_tokens
from bench.record.events import Called, Faulted, Waited
from bench.record.ledger import book, imbalance, totals
from bench.record.record import RECORD, TrialRecord
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.scenario import Answer, Grade

STORM = [
    {"point": "output", "effect": "missing_field", "probability": 0.3},
    {"point": "call", "effect": "rate_limit", "probability": 0.3},
    {"point": "input", "effect": "stale", "probability": 0.3},
    {"point": "state", "effect": "wrong_value", "probability": 0.2},
]


def without_times(record: TrialRecord) -> TrialRecord:
    """All of a record that is not our own real time."""
    return replace(record, framework_seconds=0.0)


def schedule(record: TrialRecord) -> dict[tuple[str, int, str], str]:
    """(subtask, attempt, point) -> effect of each fault that was planned."""
    faults = [event for event in record.events if isinstance(event, Faulted) and event.stage == "planned"]
    return {(fault.subtask, fault.attempt, fault.point): fault.effect for fault in faults}


# -- same schedule, same record -----------------------------------------------------------------------------------------


def together(matrix: Matrix, order: list[int]) -> list[TrialRecord]:
    """All trials at once, begun in this order; the records in the matrix's order."""

    async def work() -> list[TrialResult]:
        trials = [run_trial(matrix.specs[at], matrix, Slots(), GRADERS) for at in order]
        return list(await asyncio.gather(*trials))

    results = dict(zip(order, run(work()), strict=True))
    return [results[at].record for at in range(len(order))]


@settings(max_examples=8)
@given(st.integers(0, 2**16), st.randoms(use_true_random=False))
def test_a_record_depends_neither_on_order_nor_on_concurrency(seed: int, random: Random) -> None:
    matrix = matrix_of(plans={"storm": STORM}, model={"failure_rate": 0.2}, repetitions=3, seed=seed)
    order = list(range(len(matrix.specs)))
    random.shuffle(order)
    alone = [without_times(result.record) for result in run_all(matrix)]
    assert [without_times(record) for record in together(matrix, order)] == alone


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_every_architecture_meets_the_same_faults(seed: int) -> None:
    """Wherever two architectures make the same attempt at the same subtask, the same fault is planned for it, or none."""
    plans = {"storm": [{**fault, "point": "output", "effect": effect} for fault, effect in zip(STORM, EFFECTS, strict=True)]}
    matrix = matrix_of(plans=plans, repetitions=1, seed=seed)
    records = [result.record for result in run_all(matrix)]
    for record in records:
        for other in records:
            both = attempts(record) & attempts(other)
            assert {key: value for key, value in schedule(record).items() if key[:2] in both} == {
                key: value for key, value in schedule(other).items() if key[:2] in both
            }


EFFECTS = ("missing_field", "wrong_type", "wrong_value", "not_json")


def attempts(record: TrialRecord) -> set[tuple[str, int]]:
    return {(name, event.attempt) for event in record.events if isinstance(event, Called) for name in event.subtasks}


def test_the_same_attempt_has_the_same_seed_in_every_architecture() -> None:
    matrix = matrix_of(plans={"p": [{"point": "output", "effect": "not_json", "attempts": [1]}]}, repetitions=2)
    seeds: dict[tuple[int, int], set[int]] = {}
    for result in run_all(matrix):
        for call in events(result, Called):
            seeds.setdefault((result.record.repetition, call.attempt), set()).add(call.seed)
    assert {len(seed) for seed in seeds.values()} == {1}
    assert len(set().union(*seeds.values())) == len(seeds) > 2


def test_a_record_survives_being_written_and_read() -> None:
    for result in run_all(matrix_of(plans={"storm": STORM}, repetitions=3)):
        assert RECORD.validate_json(RECORD.dump_json(result.record)) == result.record


# -- outcomes ----------------------------------------------------------------------------------------------------------


def test_the_grader_decides_between_solved_and_wrong() -> None:
    assert scripted("static")[0].record.outcome == "solved"
    wrong, _ = scripted("static", {"total": [{"total": 43, "unit": "apples"}]})
    assert wrong.record.outcome == "wrong"
    assert wrong.record.grade == Grade(False, 0.0, {"total": 0.0}, "miscounted")


def test_an_answer_that_was_spoiled_after_verification_is_wrong_without_asking_the_grader() -> None:
    fault = {"point": "state", "effect": "empty", "subtask": "total", "attempts": [1]}
    result, _ = scripted("monolithic", faults=[fault])
    assert result.record.outcome == "wrong"
    assert result.record.grade is not None
    assert "does not fit its schema" in result.record.grade.note


def test_a_bug_is_an_error_of_this_trial_in_one_line() -> None:
    matrix = matrix_of(architectures=["static"])

    def broken(_: Answer, __: Path) -> Grade:
        raise ZeroDivisionError("a\nb")

    corrupted = replace(matrix, scenarios={"tiny": replace(TINY, grade=broken, graded_by="another")})
    [result] = run_all(corrupted)
    line = broken.__code__.co_firstlineno + 1
    place = f"experiment/test_trial.py:{line}, after a call for review"
    assert (result.record.outcome, result.record.reason) == ("error", f"ZeroDivisionError: a b ({place})")
    assert result.record.grade is None


def test_equal_answers_are_graded_once_and_those_of_another_size_apart() -> None:
    graded: list[Path] = []

    def grade(_: Answer, truth: Path) -> Grade:
        graded.append(truth)
        return Grade(True, 1.0, {})

    async def work() -> None:
        graders = Graders()
        answer = {name: TINY.task.subtask(name).output.model_validate(value) for name, value in TINY.reference.items()}
        for name in ("tiny", "tiny", "tiny:large"):
            await graders.grade(replace(TINY, name=name, grade=grade, truth=Path(name)), answer)

    run(work())
    assert graded == [Path("tiny"), Path("tiny:large")]


def test_a_cancelled_trial_leaves_no_record() -> None:
    matrix = matrix_of(architectures=["static"])
    model = ScriptedModel(TINY.reference, seconds=lambda _: 60.0)
    model.timing = "live"

    async def work() -> None:
        trial = asyncio.create_task(run_trial(matrix.specs[0], with_model(matrix, model), Slots(), GRADERS))
        await asyncio.sleep(0.05)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial

    run(work())


# -- over a real wire --------------------------------------------------------------------------------------------------


def reference(body: Any) -> Step:
    """The reference answer to whichever subtask is asked for."""
    asked = body["messages"][1]["content"].split("\n")[0].removeprefix("# Task: ")
    return completion(json.dumps(TINY.reference[asked]), usage=(100, 10))


def live(*steps: Step, timeout: float = 5.0, tries: int = 4) -> tuple[TrialResult, list[Any]]:
    """A trial on the endpoint that first answers with these steps, then rightly; and the bodies that it was sent."""
    matrix = matrix_of(architectures=["runtime_structured"], back_off={"tries": tries, "base": 0.05, "most": 0.3})
    with ScriptedServer(steps, default=reference) as server:
        model = OpenAIModel("m", OpenAISettings(base_url=server.base_url, timeout_seconds=timeout))

        async def work() -> TrialResult:
            try:
                return await run_trial(matrix.specs[0], with_model(matrix, model), Slots(), GRADERS)
            finally:
                await model.close()

        result = run(work())
        assert imbalance(book(result.record.events), result.record.tokens) is None
        return result, server.bodies


def failures(result: TrialResult) -> list[str | None]:
    return [call.failure for call in events(result, Called)]


def test_live_what_the_model_is_sent_is_what_the_record_says() -> None:
    result, bodies = live()
    assert result.record.outcome == "solved"
    assert result.record.timing == "live"
    for call, body in zip(events(result, Called), bodies, strict=True):
        sent = [(message["role"], message["content"]) for message in body["messages"]]
        assert [(message.role, result.texts[message.content]) for message in call.messages] == sent
        assert call.tokens_in == sum(count_tokens(content) for _, content in sent)
        assert (call.usage_in, call.usage_out, call.seed) == (100, 10, body["seed"])


def test_live_a_429_is_waited_out_as_long_as_the_server_asks_and_costs_nothing() -> None:
    result, bodies = live(status(429, headers={"Retry-After": "0.2"}))
    assert (result.record.outcome, failures(result), len(bodies)) == ("solved", ["rate_limited", None, None, None], 4)
    [wait] = events(result, Waited)
    assert wait.why == "backoff"
    assert 0.2 <= result.record.waiting_seconds <= wait.seconds
    assert totals(book(result.record.events))["lost"] == 0
    assert result.record.tokens == live()[0].record.tokens


def test_live_500s_are_tried_again_with_a_growing_pause() -> None:
    result, _ = live(status(500), status(503))
    assert (result.record.outcome, failures(result)[:3]) == ("solved", ["server_failed", "server_failed", None])
    first, second = (wait.seconds for wait in events(result, Waited))
    assert first >= 0.05
    assert second >= 0.1


def test_live_500s_without_end_are_an_error_and_no_failure_of_the_architecture() -> None:
    result, bodies = live(*[status(500)] * 9, tries=3)
    assert (result.record.outcome, len(bodies)) == ("error", 3)
    assert result.record.reason.startswith("server_failed: HTTP 500")


def test_live_a_reply_that_is_cut_off_is_paid_and_lost() -> None:
    result, _ = live(cut_after(40))
    lost = events(result, Called)[0]
    assert (result.record.outcome, failures(result)[:2]) == ("solved", ["cut_off", None])
    assert lost.tokens_in > 0
    assert totals(book(result.record.events))["lost"] == lost.tokens_in + lost.tokens_out
    assert events(result, Called)[1].cause == "retry"


def test_live_a_hanging_reply_is_given_up_in_time_and_its_prompt_is_lost() -> None:
    result, _ = live(hang(60.0), timeout=1.5)
    late = events(result, Called)[0]
    assert (result.record.outcome, failures(result)[:2]) == ("solved", ["timed_out", None])
    assert 1.5 <= late.seconds < 60.0
    assert totals(book(result.record.events))["lost"] == late.tokens_in > 0
    assert result.record.api_seconds >= 1.5


def test_live_the_three_times_of_a_trial_add_up_to_its_duration_at_most() -> None:
    result, _ = live(hang(0.2, completion("{}")))
    record = result.record
    assert record.api_seconds >= 0.2
    assert record.framework_seconds < record.api_seconds
    last = events(result, Called)[-1]
    assert record.api_seconds + record.waiting_seconds <= last.started + last.seconds + 0.01


@pytest.fixture(autouse=True, scope="module")
def nothing_of_the_environment_leads_elsewhere() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("OPENAI_API_KEY", raising=False)
        yield


def test_a_variant_runs_under_its_own_settings() -> None:
    missing = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "total"}
    variants = {"quick": {"base": "static", "max_attempts": 1}}
    matrix = matrix_of(plans={"plan": [missing]}, architectures=["static", "quick"], architecture=variants)
    assert {result.record.architecture: result.record.outcome for result in run_all(matrix)} == {
        "static": "solved",
        "quick": "gave_up",
    }
