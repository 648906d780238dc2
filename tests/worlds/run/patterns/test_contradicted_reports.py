"""Two reports on the same step that contradict each other: bare the last is believed, and with remedies the report that agrees
with what is written down."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trials import Fault, stages
from trips import BARE, ONE, PATTERNS, REMEDIED, Trip, effects, harm, worked

from bench.common.registry import LoadedParts
from bench.record.form import Form
from bench.record.ledger import book, imbalance
from bench.record.world_events import Stepped
from bench.run.experiment.trial import TrialResult
from bench.run.trial.effects import EFFECTS
from bench.worlds.run.effects import report_contradicted
from bench.worlds.run.runtime.effects import ReportEffect, StepReport

REPORTING = ("delegation_by_model", "hierarchical_delegation", "plan_and_replan")
"""Patterns in which a worker reports on a step."""
STEPS = ("choose 1", "flight 1", "hotel 1", "car 1", "pay 1", "tell 1")
FULL, PRIVATE, DEAR = Trip(1, 300, hotel="full"), Trip(1, 800, reason="private"), Trip(1, 900)
REPORTS = st.builds(StepReport, st.sampled_from(["", "failed", "late", "denied", "rejected", "fallen"]), st.booleans())


def contradicted(step: str) -> Fault:
    return {"point": "process", "effect": "report_contradicted", "tool": step, "attempts": [1]}


def ended(result: TrialResult, step: str) -> str:
    """Why the step failed, as the pattern ended it; "" if it did not."""
    [why] = [e.why for e in result.record.events if isinstance(e, Stepped) and (e.step, e.stage) == (step, "ended")]
    return why


def way_of(pattern: str, form: Form) -> list[str]:
    [way] = stages(worked(pattern, form, [contradicted("pay 1")])).values()
    return way


@pytest.mark.parametrize("pattern", REPORTING)
def test_a_paid_step_that_is_said_to_have_failed_is_paid_again_bare_and_not_with_remedies(pattern: str) -> None:
    assert harm(worked(pattern, BARE, [contradicted("pay 1")])) == {"doubled": 1}
    mended = worked(pattern, REMEDIED, [contradicted("pay 1")])
    assert (mended.record.outcome, harm(mended), effects(mended).count("pay")) == ("solved", {}, 1)


@pytest.mark.parametrize("pattern", REPORTING)
def test_a_step_that_failed_and_is_said_to_be_done_is_believed_bare_and_not_with_remedies(pattern: str) -> None:
    struck = [contradicted("hotel 1")]
    assert [ended(worked(pattern, BARE, faults, [FULL]), "hotel 1") for faults in ((), struck)] == ["failed", ""]
    mended = worked(pattern, REMEDIED, struck, [FULL])
    assert (mended.record.outcome, harm(mended), ended(mended, "hotel 1")) == ("solved", {}, "failed")


@pytest.mark.parametrize("pattern", REPORTING)
def test_a_contradiction_is_noticed_with_remedies_alone(pattern: str) -> None:
    assert way_of(pattern, BARE) == ["planned", "delivered", "undetected"]
    assert way_of(pattern, REMEDIED) == ["planned", "delivered", "detected", "recovered"]


@pytest.mark.parametrize("pattern", sorted({*PATTERNS} - {*REPORTING}))
def test_where_nobody_reports_no_report_is_contradicted(pattern: str) -> None:
    assert not stages(worked(pattern, BARE, [contradicted("*")]))


@pytest.mark.parametrize("pattern", REPORTING)
@pytest.mark.parametrize("form", [BARE, REMEDIED])
def test_a_second_report_that_reads_the_same_is_no_fault(pattern: str, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    same = ReportEffect("report_contradicted", lambda report: report)
    by_key = {**EFFECTS.by_key, ("report_contradicted", "process"): same}
    monkeypatch.setitem(EFFECTS.__dict__, "_parts", LoadedParts(by_key, [*EFFECTS, same], []))
    result = worked(pattern, form, [contradicted("*")])
    assert {tuple(way) for way in stages(result).values()} == {("planned", "not_applicable")}
    assert (result.record.outcome, harm(result)) == ("solved", {})


@given(REPORTS)
def test_a_report_and_its_contrary_never_say_the_same_of_the_step(report: StepReport) -> None:
    contrary = report_contradicted(report)
    assert contrary is not None and contrary.is_done is not report.is_done and str(contrary) != str(report)


CONTRADICTED = st.lists(
    st.tuples(st.sampled_from((*STEPS, "*")), st.lists(st.integers(1, 3), min_size=1, max_size=2, unique=True)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(REPORTING), CONTRADICTED, st.sampled_from((ONE, (FULL,), (PRIVATE,), (DEAR,))), st.integers(1, 3))
def test_with_remedies_and_a_right_proposer_no_contradiction_does_damage_or_costs_an_answer(
    pattern: str, struck: list[tuple[str, list[int]]], trips: tuple[Trip, ...], repetition: int
) -> None:
    faults = [{**contradicted(step), "attempts": attempts} for step, attempts in struck]
    result, control = worked(pattern, REMEDIED, faults, trips, repetition=repetition), worked(pattern, REMEDIED, (), trips)
    assert (result.record.outcome, harm(result)) == ("solved", {}), result.record.reason
    assert effects(result) == effects(control)
    assert {tuple(way) for way in stages(result).values()} <= {("planned", "delivered", "detected", "recovered")}
    assert imbalance(book(result.record.events), result.record.tokens) is None
