"""A check that waits for the sandbox is asked in a thread, once; and no output breaks its trial by way of a check."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from pydantic import field_validator
from scripted_model import Line, ScriptedModel
from trials import OURS, TINY, Fault, events, matrix_of, run_all, verdicts, with_model

from bench.record.events import Called, Judged
from bench.run.experiment.trial import TrialResult
from bench.run.sandbox import SandboxBroken
from bench.run.trial.checks import MIN_CHARS_FOR_THREAD
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.workbench import Workbench
from bench.scenario import LONGEST_NOTE, Check, Context, Output, Scenario, Task

Asked = list[tuple[str, bool]]
"""Each check that was asked, and whether it was in a thread."""


def with_checks(wrap: Callable[[Check], Check], **changes: Any) -> Scenario:
    """The pack with these in the place of its checks."""
    subtasks = tuple(replace(subtask, checks=tuple(map(wrap, subtask.checks))) for subtask in TINY.task.subtasks)
    return replace(TINY, task=replace(TINY.task, subtasks=subtasks), **changes)


def watched(asked: Asked) -> Scenario:
    """The pack as if its checks ran code."""
    loop = threading.get_ident()

    def wrap(check: Check) -> Check:
        def watching(output: Output, context: Context) -> str | None:
            asked.append((getattr(check, "__name__", ""), threading.get_ident() != loop))
            return check(output, context)

        return watching

    return with_checks(wrap, checks_use_sandbox=True)


@asynccontextmanager
async def unserved(_: EndpointSession) -> AsyncIterator[str]:
    """No endpoint: the agent asks the session itself."""
    yield "http://here"


def trials_of(
    scenario: Scenario,
    architectures: Sequence[str] = tuple(OURS),
    faults: Sequence[Fault] = (),
    script: dict[str, Sequence[Line]] | None = None,
    **settings: Any,
) -> list[TrialResult]:
    plans = {"plan": faults} if faults else None
    matrix = replace(matrix_of(plans=plans, architectures=list(architectures), **settings), scenarios={"tiny": scenario})
    return run_all(with_model(matrix, ScriptedModel(scenario.reference, script)) if script else matrix)


BAD = {"gather": [{"deliveries": [{"day": "Never", "apples": 1}], "confidence": 1.0}]}
PARALLEL = {"together": {"base": "static", "parallel": True}, "at_once": {"base": "runtime_structured", "parallel": True}}


STRUCK = [
    ("output", "wrong_value"),
    ("output", "missing_field"),
    ("state", "wrong_value"),
    ("state", "stale"),
    ("input", "stale"),
]


@pytest.mark.parametrize(("point", "effect"), STRUCK)
def test_no_check_that_waits_is_ever_asked_on_the_event_loop(point: str, effect: str) -> None:
    asked: Asked = []
    faults = [{"point": point, "effect": effect, "probability": 0.7}]
    settings: dict[str, Any] = {"architecture": PARALLEL, "model": {"failure_rate": 0.3}, "repetitions": 6}
    results = trials_of(watched(asked), [*OURS, *PARALLEL], faults, **settings)
    assert {result.record.outcome for result in results} <= {"solved", "wrong", "gave_up"}, [
        result.record.reason for result in results
    ]
    assert len(asked) >= len(results) and {apart for _, apart in asked} == {True}


def test_a_trial_whose_checks_are_asked_apart_has_the_events_of_any_other() -> None:
    faults = [
        {"point": point, "effect": effect, "probability": 0.5}
        for point, effect in (("output", "wrong_value"), ("call", "slow"))
    ]
    architectures = [*OURS, *PARALLEL]
    reply, *others = (
        [result.record.events for result in trials_of(scenario, architectures, faults, architecture=PARALLEL, repetitions=4)]
        for scenario in (TINY, watched([]), watched([]))
    )
    assert all(other == reply for other in others)


def test_the_same_output_in_the_same_context_is_asked_about_once() -> None:
    asked: Asked = []
    [result] = trials_of(watched(asked), ["static"])
    assert [name for name, _ in asked] == ["days_are_in_the_notes", "total_covers_each_delivery"]
    assert len(events(result, Judged)) == 3


def breaking(error: BaseException, on: Callable[[Output], bool]) -> Scenario:
    """The pack with checks that raise on some outputs."""

    def wrap(check: Check) -> Check:
        def broken(output: Output, context: Context) -> str | None:
            if on(output):
                raise error
            return check(output, context)

        return broken

    return with_checks(wrap)


def is_bad(output: Output) -> bool:
    return "Never" in str(output)


@pytest.mark.parametrize("apart", [False, True])
def test_an_output_that_makes_a_check_raise_is_rejected_and_its_trial_goes_on(apart: bool) -> None:
    scenario = replace(breaking(RecursionError("\x1b[2J\nlong " * 999), is_bad), checks_use_sandbox=apart)
    [result] = trials_of(scenario, ["runtime_structured"], script=dict(BAD))
    assert (result.record.outcome, verdicts(result)[0]) == ("solved", ("gather", "check"))
    detail = events(result, Judged)[0].detail
    assert detail.startswith("the check `broken` fails on it: RecursionError: \\x1b[2J long") and detail.isprintable()
    assert len(detail) <= LONGEST_NOTE


def test_checks_of_a_large_reply_are_asked_in_a_thread() -> None:
    asked: Asked = []
    large = {**TINY.reference["gather"], "more": "x" * MIN_CHARS_FOR_THREAD}
    [result] = trials_of(replace(watched(asked), checks_use_sandbox=False), ["static"], script={"gather": [large]})
    assert result.record.outcome == "solved"
    assert asked == [("days_are_in_the_notes", True), ("total_covers_each_delivery", False)]


def with_signal(subtask: str, **signal: Any) -> Scenario:
    """The pack with this in the place of a signal of a subtask's."""
    subtasks = tuple(replace(named, **signal) if named.name == subtask else named for named in TINY.task.subtasks)
    return replace(TINY, task=replace(TINY.task, subtasks=subtasks))


def raising(output: Any) -> None:
    if "strange" in str(output):
        raise OverflowError("too strange")


STRANGE = {"approved": True, "problems": ["strange"]}


@pytest.mark.parametrize("architecture", ["static", "runtime_structured", "monolithic"])
@pytest.mark.parametrize("signal", ["sufficient", "finds"])
def test_an_output_that_makes_a_signal_raise_is_rejected_and_its_trial_goes_on(signal: str, architecture: str) -> None:
    scenario = with_signal("review", **{signal: raising})
    whole: Line = {**TINY.reference, "review": STRANGE}
    script: dict[str, Sequence[Line]] = {"gather+total+review": [whole], "review": [STRANGE]}
    [result] = trials_of(scenario, [architecture], script=script)
    assert (result.record.outcome, verdicts(result).count(("review", "check"))) == ("solved", 1), result.record.reason
    [detail] = [event.detail for event in events(result, Judged) if event.reason == "check"]
    assert detail == "the check `raising` fails on it: OverflowError: too strange"


def test_a_signal_that_raises_on_the_reference_too_is_an_error_of_the_pack() -> None:
    def broken(_: Any) -> None:
        raise OverflowError("always")

    [result] = trials_of(with_signal("review", finds=broken), ["runtime_structured"])
    assert result.record.outcome == "error" and "OverflowError: always" in result.record.reason


@pytest.mark.parametrize(("on", "outcome"), [("strange", "solved"), ("", "error")])
def test_outputs_that_make_skip_raise_skip_nothing(on: str, outcome: str) -> None:
    def skip(outputs: Any) -> None:
        if on in str(outputs):
            raise OverflowError("too strange")

    strange = {**TINY.reference["gather"], "remark": "strange"}

    class Remarked(TINY.task.subtasks[0].output):  # type: ignore[misc]
        remark: str = ""

    gather = replace(TINY.task.subtasks[0], output=Remarked)
    scenario = with_signal("total", skip=skip)
    scenario = replace(scenario, task=replace(scenario.task, subtasks=(gather, *scenario.task.subtasks[1:])))
    [result] = trials_of(scenario, ["runtime_structured"], script={"gather": [strange]})
    assert result.record.outcome == outcome


def test_an_output_that_makes_a_validator_raise_does_not_fit_its_schema() -> None:
    class Strict(TINY.task.subtasks[0].output):  # type: ignore[misc]
        @field_validator("confidence")
        @classmethod
        def _sure(cls, value: float) -> float:
            return 1 / (value - 0.5)

    gather = replace(TINY.task.subtasks[0], output=Strict)
    scenario = replace(TINY, task=replace(TINY.task, subtasks=(gather, *TINY.task.subtasks[1:])))
    strange = {**TINY.reference["gather"], "confidence": 0.5}
    [result] = trials_of(scenario, ["runtime_structured"], script={"gather": [strange]})
    assert (result.record.outcome, verdicts(result)[0]) == ("solved", ("gather", "schema"))
    assert events(result, Judged)[0].detail == "the output: ZeroDivisionError: float division by zero"


def test_a_check_that_raises_on_the_reference_too_is_an_error_of_the_pack() -> None:
    [result] = trials_of(breaking(KeyError("x"), lambda _: True), ["runtime_structured"], script=dict(BAD))
    assert result.record.outcome == "error" and "KeyError: 'x' (trial/test_checks.py:" in result.record.reason
    assert len(events(result, Called)) == 1


def test_a_sandbox_that_cannot_be_used_is_no_fault_of_the_output() -> None:
    [result] = trials_of(breaking(SandboxBroken("no launcher"), is_bad), ["runtime_structured"], script=dict(BAD))
    assert result.record.outcome == "error" and "SandboxBroken: no launcher" in result.record.reason


def test_what_an_agent_hands_in_at_its_end_is_checked_in_a_thread() -> None:
    asked: Asked = []
    scenario = watched(asked)

    async def agent(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*task.subtasks, server=unserved) as session:
            outputs = {}
            for subtask in task.subtasks:
                asked_for = session.messages(subtask, documents_alone=True)
                outputs[subtask.name] = (await session.answer((subtask,), asked_for)).text
            async for proposal in session.submit(outputs):
                workbench.commit_unverified(proposal)

    matrix = replace(matrix_of(architectures=["static"]), scenarios={"tiny": scenario}, server=unserved)
    [result] = run_all(with_model(matrix, ScriptedModel(scenario.reference)).with_architecture(agent))
    assert result.record.outcome == "solved"
    assert asked and {apart for _, apart in asked} == {True}
