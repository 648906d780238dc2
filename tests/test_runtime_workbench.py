"""The boundary and the three signals of runtime branching, without a model: proposals are written by hand."""

from __future__ import annotations

import asyncio
import json

import pytest
from scripted_model import ScriptedModel
from trials import ROOTS, events

from bench.errors import GaveUp
from bench.packs import load_pack
from bench.runtime.boundary import Rejected
from bench.runtime.caller import BackOff, Caller, unbounded
from bench.runtime.clock import TrialClock
from bench.runtime.events import Called, Committed, Event, Judged
from bench.runtime.faults import Fault, FaultPlan, Weather
from bench.runtime.proposal import Proposal, parts_of
from bench.runtime.state import Source
from bench.runtime.workbench import Place, Settings, Workbench
from bench.scenario import Json, Scenario

DEBUGGING = load_pack("multi_file_debugging", ROOTS)
K8S = load_pack("k8s_oomkill", ROOTS)
TINY = load_pack("tiny", ROOTS)


class Desk:
    """A workbench over a pack, the events that it leaves, and proposals on it as if a model had made them."""

    def __init__(self, scenario: Scenario = TINY, faults: tuple[Fault, ...] = ()):
        self.scenario, self.log, self.texts = scenario, list[Event](), dict[str, str]()
        weather = Weather(FaultPlan("plan", faults), 1, scenario.name, 1, self.log.append)
        clock = TrialClock(virtual=True)
        caller = Caller(ScriptedModel(scenario.reference), clock, weather, unbounded, BackOff(), self.log.append, self.keep)
        place = Place(1, scenario.name, 1)
        self.bench = Workbench(scenario.task, place, Settings(), caller, weather, scenario.decoys, self.log.append, self.keep)
        self.call = 0

    def keep(self, text: str) -> str:
        self.texts[text] = text
        return text

    def proposed(self, name: str, /, **changed: Json) -> Proposal:
        """The reference output of a subtask, some fields exchanged; a field of None is left out."""
        self.call += 1
        subtask = self.scenario.task.subtask(name)
        value = {field: one for field, one in {**self.scenario.reference[name], **changed}.items() if one is not None}
        sources = tuple(Source(read, 0 if read in self.scenario.task.documents else 1, "digest") for read in subtask.reads)
        parts = parts_of(json.dumps(value), "stop", [subtask])
        return Proposal((subtask,), 1, self.call, json.dumps(value), parts, sources, ())

    def commit(self, name: str, /, **changed: Json) -> None:
        proposal = self.proposed(name, **changed)
        assert self.bench.verify(proposal) is None
        self.bench.commit(proposal)

    def verdict(self, name: str, /, **changed: Json) -> str:
        """What is said of a proposal where sufficiency is asked for, too."""
        rejected = self.bench.verify(self.proposed(name, **changed), sufficiency=True)
        return rejected.reason if rejected else "accepted"

    def done(self, *names: str) -> bool:
        return all(self.bench.done(self.scenario.task.subtask(name)) for name in names)

    def skip(self, name: str) -> bool:
        return self.bench.skip(self.scenario.task.subtask(name))

    def finding(self, name: str) -> Rejected | None:
        return self.bench.finding(self.scenario.task.subtask(name))


def test_validity_an_output_is_accepted_or_rejected_for_a_reason() -> None:
    desk = Desk()
    assert desk.verdict("gather") == "accepted"
    assert desk.verdict("gather", confidence=None) == "schema"
    assert desk.verdict("gather", deliveries=[{"day": "Sunday", "apples": 1}]) == "check"
    assert [judged.accepted for judged in events(desk.log, Judged)] == [True, False, False]


def test_a_rejection_carries_the_reply_that_it_is_about() -> None:
    desk = Desk()
    rejected = desk.bench.verify(desk.proposed("total", total=None))
    assert rejected == Rejected("total", "schema", "total: Field required", reply='{"unit": "apples"}')


def test_sufficiency_is_asked_only_where_it_is_asked_for() -> None:
    desk = Desk()
    assert desk.verdict("gather", confidence=0.1) == "insufficient"
    assert desk.bench.verify(desk.proposed("gather", confidence=0.1)) is None


def test_completion_a_subtask_is_done_once_it_is_committed_and_until_it_is_reopened() -> None:
    desk = Desk()
    assert not desk.done("gather")
    desk.commit("gather")
    desk.commit("total")
    desk.commit("review", approved=False, problems=["wrong"])
    assert desk.done("gather", "total", "review")
    found = desk.finding("review")
    assert found is not None
    desk.bench.reopen(found)
    assert desk.done("gather")
    assert not desk.done("total")
    assert not desk.done("review"), "what was made from a reopened output is taken back with it"


def test_a_finding_shows_the_output_that_was_found_wrong() -> None:
    desk = Desk()
    desk.commit("gather")
    desk.commit("total", total=43)
    desk.commit("review", approved=False, problems=["12 + 30 is 42"])
    assert desk.finding("review") == Rejected("total", "found_wrong", "12 + 30 is 42", '{"total": 43, "unit": "apples"}')
    assert desk.finding("gather") is None


def test_skip_commits_what_is_not_needed_without_a_call() -> None:
    desk = Desk()
    desk.commit("gather", deliveries=[])
    assert desk.skip("total")
    written = events(desk.log, Committed)[-1]
    assert (written.subtask, written.call, written.verified) == ("total", None, True)
    assert '{"total": 0, "unit": "apples"}' in desk.texts


def test_nothing_is_skipped_that_is_needed_or_whose_inputs_are_not_there() -> None:
    desk = Desk()
    assert not desk.skip("total")
    desk.commit("gather")
    assert not desk.skip("total")
    assert not desk.skip("review")


def test_a_fault_in_the_state_strikes_after_verification_and_hides_the_output_from_code() -> None:
    desk = Desk(faults=(Fault("state", "empty", "gather", (1,)),))
    desk.commit("gather", deliveries=[])
    assert desk.done("gather")
    assert not desk.skip("total"), "an output that does not fit decides nothing"


def test_an_answer_needs_an_output_of_every_subtask() -> None:
    desk = Desk()
    desk.commit("gather")
    with pytest.raises(RuntimeError, match="without an output"):
        desk.bench.answer()
    desk.commit("total")
    desk.commit("review")
    answer = desk.bench.answer()
    assert answer is not None
    assert {name: output.model_dump(mode="json") for name, output in answer.items()} == TINY.reference


def test_an_answer_with_an_output_that_does_not_fit_is_none() -> None:
    desk = Desk(faults=(Fault("state", "missing_field", "total", (1,)),))
    for name in TINY.reference:
        desk.commit(name)
    assert desk.bench.answer() is None


def test_a_checkpoint_verifies_what_was_handed_on_and_commits_only_if_all_of_it_holds() -> None:
    desk = Desk()
    stage = TINY.task.subtasks
    for name, changed in (("gather", {}), ("total", {"total": None}), ("review", {})):
        desk.bench.hand_on(desk.proposed(name, **changed))
    rejected = desk.bench.checkpoint(stage)
    assert rejected is not None
    assert rejected.subtask == "total"
    assert not any(commit.verified for commit in events(desk.log, Committed))
    desk.bench.hand_on(desk.proposed("total"))
    assert desk.bench.checkpoint(stage) is None
    assert [commit.subtask for commit in events(desk.log, Committed) if commit.verified] == ["gather", "total", "review"]


def test_attempts_are_bounded() -> None:
    desk = Desk()
    gather = TINY.task.subtask("gather")
    for attempt in (1, 2, 3):
        assert asyncio.run(desk.bench.propose(gather)).attempt == attempt
    with pytest.raises(GaveUp, match="gather: no accepted output in 3 attempts"):
        asyncio.run(desk.bench.propose(gather))


def test_a_call_is_a_retry_only_where_the_last_output_was_rejected() -> None:
    desk = Desk()
    gather = TINY.task.subtask("gather")

    def ask_and_hand_on() -> None:
        desk.bench.hand_on(asyncio.run(desk.bench.propose(gather)))

    ask_and_hand_on()
    desk.bench.verify(desk.proposed("gather", confidence=None))
    ask_and_hand_on()
    ask_and_hand_on()
    assert [call.cause for call in events(desk.log, Called)] == ["first", "retry", "rerun"]


# -- the packs' own signals --------------------------------------------------------------------------------------------


def test_debugging_what_is_unsure_or_empty_is_insufficient() -> None:
    desk = Desk(DEBUGGING)
    assert desk.verdict("analysis") == "accepted"
    assert desk.verdict("analysis", confidence=0.3) == "insufficient"
    assert desk.verdict("analysis", bugs=[]) == "insufficient"


def test_debugging_without_a_bug_neither_edits_nor_their_validation_are_needed() -> None:
    desk = Desk(DEBUGGING)
    desk.commit("analysis", needs_fix=False, bugs=[])
    assert desk.skip("fix_generation")
    assert desk.skip("validation")
    assert not desk.skip("synthesis")


def test_debugging_with_a_bug_nothing_is_skipped() -> None:
    desk = Desk(DEBUGGING)
    desk.commit("analysis")
    assert not desk.skip("fix_generation")
    desk.commit("fix_generation")
    assert not desk.skip("validation")


def test_debugging_validation_reopens_the_fix_and_not_the_analysis() -> None:
    desk = Desk(DEBUGGING)
    desk.commit("analysis")
    desk.commit("fix_generation")
    verdicts = [{"bug": 1, "fixed": True}, {"bug": 2, "fixed": False}, {"bug": 3, "fixed": True}]
    desk.commit("validation", verdicts=verdicts, approved=False)
    found = desk.finding("validation")
    assert found is not None
    assert (found.subtask, found.reason) == ("fix_generation", "found_wrong")
    assert "bug 2 is not fixed" in found.detail
    desk.bench.reopen(found)
    assert desk.done("analysis")
    assert not desk.done("fix_generation")
    assert not desk.done("validation")


def test_k8s_each_judgment_may_be_too_weak() -> None:
    desk = Desk(K8S)
    assert desk.verdict("log_triage", signals=K8S.reference["log_triage"]["signals"][:2]) == "insufficient"
    desk.commit("log_triage")
    assert desk.verdict("anomaly_classification", anomalies=[]) == "insufficient"
    desk.commit("anomaly_classification")
    assert desk.verdict("root_cause_analysis", confidence=0.2) == "insufficient"
    desk.commit("root_cause_analysis")
    assert desk.verdict("remediation_planning", commands=[]) == "insufficient"


def test_k8s_a_plan_is_skipped_where_the_analysis_asks_for_none() -> None:
    desk = Desk(K8S)
    for name in ("log_triage", "anomaly_classification"):
        desk.commit(name)
    desk.commit("root_cause_analysis", remediation_needed=False)
    assert desk.skip("remediation_planning")
    assert desk.done("remediation_planning")
