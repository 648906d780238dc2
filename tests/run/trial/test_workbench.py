"""The boundary and the three signals of runtime branching, without a model: proposals are written by hand."""

from __future__ import annotations

import gc
import json
import weakref

import pytest
from trials import ROOTS, TINY, events
from workbenches import TrialParts

from bench.common.errors import GaveUp
from bench.record.events import Called, Committed, Judged
from bench.run.packs import load_pack
from bench.run.trial.faults import Fault
from bench.run.trial.proposal import Proposal
from bench.run.trial.reply import parts_of
from bench.run.trial.state import Source
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Json

DEBUGGING = load_pack("multi_file_debugging", ROOTS)
K8S = load_pack("k8s_oomkill", ROOTS)


class Bench(TrialParts):
    """A workbench over a pack, and proposals on it as if a model had made them."""

    call = 0

    def proposed(self, name: str, /, **changed: Json) -> Proposal:
        """The reference output of a subtask, some fields exchanged; a field of None is left out."""
        self.call += 1
        subtask = self.scenario.task.subtask(name)
        value = {
            field: content for field, content in {**self.scenario.reference[name], **changed}.items() if content is not None
        }
        sources = tuple(Source(read, 0 if read in self.scenario.task.documents else 1, "digest") for read in subtask.reads)
        parts = parts_of(json.dumps(value), "stop", [subtask])
        return Proposal((subtask,), 1, (self.call,), json.dumps(value), parts, sources, ())

    def commit(self, name: str, /, **changed: Json) -> None:
        proposal = self.proposed(name, **changed)
        assert self.workbench.verify(proposal) is None
        self.workbench.commit(proposal)

    def verdict(self, name: str, /, **changed: Json) -> str:
        """What is said of a proposal where sufficiency is asked for, too."""
        rejected = self.workbench.verify(self.proposed(name, **changed), sufficiency=True)
        return rejected.reason if rejected else "accepted"

    def done(self, *names: str) -> bool:
        return all(self.workbench.done(self.scenario.task.subtask(name)) for name in names)

    def skip(self, name: str) -> bool:
        return self.workbench.skip(self.scenario.task.subtask(name))

    def finding(self, name: str) -> Rejected | None:
        return self.workbench.finding(self.scenario.task.subtask(name))


def test_validity_an_output_is_accepted_or_rejected_for_a_reason() -> None:
    bench = Bench()
    assert bench.verdict("gather") == "accepted"
    assert bench.verdict("gather", confidence=None) == "schema"
    assert bench.verdict("gather", deliveries=[{"day": "Sunday", "apples": 1}]) == "check"
    assert [judged.accepted for judged in events(bench.events, Judged)] == [True, False, False]


def test_a_rejection_carries_the_reply_that_it_is_about() -> None:
    bench = Bench()
    rejected = bench.workbench.verify(bench.proposed("total", total=None))
    assert rejected == Rejected("total", "schema", "total: Field required", '{"unit": "apples"}', ("missing",))


def test_sufficiency_is_asked_only_where_it_is_asked_for() -> None:
    bench = Bench()
    assert bench.verdict("gather", confidence=0.1) == "insufficient"
    assert bench.workbench.verify(bench.proposed("gather", confidence=0.1)) is None


def test_completion_a_subtask_is_done_once_it_is_committed_and_until_it_is_reopened() -> None:
    bench = Bench()
    assert not bench.done("gather")
    bench.commit("gather")
    bench.commit("total")
    bench.commit("review", approved=False, problems=["wrong"])
    assert bench.done("gather", "total", "review")
    violation = bench.finding("review")
    assert violation is not None
    bench.workbench.invalidate(violation)
    assert bench.done("gather")
    assert not bench.done("total")
    assert not bench.done("review"), "what was made from a reopened output is taken back with it"


def test_a_finding_shows_the_output_that_was_found_wrong() -> None:
    bench = Bench()
    bench.commit("gather")
    bench.commit("total", total=43)
    bench.commit("review", approved=False, problems=["12 + 30 is 42"])
    assert bench.finding("review") == Rejected("total", "found_wrong", "12 + 30 is 42", '{"total": 43, "unit": "apples"}')
    assert bench.finding("gather") is None


def test_skip_commits_what_is_not_needed_without_a_call() -> None:
    bench = Bench()
    bench.commit("gather", deliveries=[])
    assert bench.skip("total")
    written = events(bench.events, Committed)[-1]
    assert (written.subtask, written.calls, written.verified) == ("total", (), True)
    assert '{"total": 0, "unit": "apples"}' in bench.log.texts.values()


def test_nothing_is_skipped_that_is_needed_or_whose_inputs_are_not_there() -> None:
    bench = Bench()
    assert not bench.skip("total")
    bench.commit("gather")
    assert not bench.skip("total")
    assert not bench.skip("review")


def test_a_fault_in_the_state_strikes_after_verification_and_hides_the_output_from_code() -> None:
    bench = Bench(faults=(Fault("state", "empty", "gather", (1,)),))
    bench.commit("gather", deliveries=[])
    assert bench.done("gather")
    assert not bench.skip("total"), "an output that does not fit decides nothing"


def test_an_answer_needs_an_output_of_every_subtask() -> None:
    bench = Bench()
    bench.commit("gather")
    with pytest.raises(RuntimeError, match="without an output"):
        bench.trial.answer()
    bench.commit("total")
    bench.commit("review")
    answer = bench.trial.answer()
    assert answer is not None
    assert {name: output.model_dump(mode="json") for name, output in answer.items()} == TINY.reference


def test_an_answer_with_an_output_that_does_not_fit_is_none() -> None:
    bench = Bench(faults=(Fault("state", "missing_field", "total", (1,)),))
    for name in TINY.reference:
        bench.commit(name)
    assert bench.trial.answer() is None


def test_a_checkpoint_verifies_what_was_handed_on_and_commits_only_if_all_of_it_holds() -> None:
    bench = Bench()
    stage = TINY.task.subtasks
    for name, changed in (("gather", {}), ("total", {"total": None}), ("review", {})):
        bench.workbench.commit_unverified(bench.proposed(name, **changed))
    rejected = bench.workbench.checkpoint(stage)
    assert rejected is not None
    assert rejected.subtask == "total"
    assert not any(commit.verified for commit in events(bench.events, Committed))
    bench.workbench.commit_unverified(bench.proposed("total"))
    assert bench.workbench.checkpoint(stage) is None
    assert [commit.subtask for commit in events(bench.events, Committed) if commit.verified] == [
        "gather",
        "total",
        "review",
    ]


def test_attempts_are_bounded() -> None:
    bench = Bench()
    gather = TINY.task.subtask("gather")
    for attempt in (1, 2, 3):
        proposal = bench.run(bench.workbench.propose(gather))
        assert proposal.attempt == attempt
        bench.workbench.reject(proposal, "no")
    with pytest.raises(GaveUp, match="gather: no accepted output in 3 attempts"):
        bench.run(bench.workbench.propose(gather))


def test_a_subtask_asked_for_again_is_a_retry_only_after_a_failure() -> None:
    bench = Bench()
    gather = TINY.task.subtask("gather")

    def ask_and_hand_on() -> None:
        bench.workbench.commit_unverified(bench.run(bench.workbench.propose(gather)))

    ask_and_hand_on()
    ask_and_hand_on()
    bench.workbench.verify(bench.proposed("gather", confidence=None))
    ask_and_hand_on()
    assert [(call.cause, call.attempt, call.sample) for call in events(bench.events, Called)] == [
        ("first", 1, 1),
        ("sample", 1, 2),
        ("retry", 2, 1),
    ]


@pytest.mark.parametrize("verified", [False, True])
def test_what_was_not_verified_or_was_rejected_is_not_committed(verified: bool) -> None:
    bench = Bench()
    proposal = bench.proposed("gather", confidence=None)
    if verified:
        assert bench.workbench.verify(proposal)
    with pytest.raises(RuntimeError, match="commit of 'gather', which was not verified or was rejected; verify it, or"):
        bench.workbench.commit(proposal)
    assert not bench.done("gather")


def test_a_subtask_that_is_asked_before_what_it_reads_has_an_output_is_refused_and_nothing_is_sent() -> None:
    bench = Bench()
    with pytest.raises(RuntimeError, match="'total' is asked for before 'gather', which it reads, has an output"):
        bench.run(bench.workbench.propose(TINY.task.subtask("total")))
    with pytest.raises(RuntimeError, match="'total' is asked for before 'gather'"):
        bench.run(bench.workbench.sample(TINY.task.subtask("total"), count=2))
    assert bench.events == []


def test_subtasks_asked_for_jointly_may_read_one_another() -> None:
    bench = Bench()
    proposal = bench.run(bench.workbench.propose(*TINY.task.subtasks))
    assert bench.workbench.verify(proposal) is None


# -- the packs' own signals --------------------------------------------------------------------------------------------


def test_debugging_what_is_unsure_or_empty_is_insufficient() -> None:
    bench = Bench(DEBUGGING)
    assert bench.verdict("analysis") == "accepted"
    assert bench.verdict("analysis", confidence=0.3) == "insufficient"
    assert bench.verdict("analysis", bugs=[]) == "insufficient"


def test_debugging_without_a_bug_neither_edits_nor_their_validation_are_needed() -> None:
    bench = Bench(DEBUGGING)
    bench.commit("analysis", needs_fix=False, bugs=[])
    assert bench.skip("fix_generation")
    assert bench.skip("validation")
    assert not bench.skip("synthesis")


def test_debugging_with_a_bug_nothing_is_skipped() -> None:
    bench = Bench(DEBUGGING)
    bench.commit("analysis")
    assert not bench.skip("fix_generation")
    bench.commit("fix_generation")
    assert not bench.skip("validation")


def test_debugging_validation_reopens_the_fix_and_not_the_analysis() -> None:
    bench = Bench(DEBUGGING)
    bench.commit("analysis")
    bench.commit("fix_generation")
    verdicts = [{"bug": 1, "fixed": True}, {"bug": 2, "fixed": False}, {"bug": 3, "fixed": True}]
    bench.commit("validation", verdicts=verdicts, approved=False)
    violation = bench.finding("validation")
    assert violation is not None
    assert (violation.subtask, violation.reason) == ("fix_generation", "found_wrong")
    assert "bug 2 is not fixed" in violation.detail
    bench.workbench.invalidate(violation)
    assert bench.done("analysis")
    assert not bench.done("fix_generation")
    assert not bench.done("validation")


def test_k8s_each_judgment_may_be_too_weak() -> None:
    bench = Bench(K8S)
    assert bench.verdict("log_triage", signals=K8S.reference["log_triage"]["signals"][:2]) == "insufficient"
    bench.commit("log_triage")
    assert bench.verdict("anomaly_classification", anomalies=[]) == "insufficient"
    bench.commit("anomaly_classification")
    assert bench.verdict("root_cause_analysis", confidence=0.2) == "insufficient"
    bench.commit("root_cause_analysis")
    assert bench.verdict("remediation_planning", commands=[]) == "insufficient"


def test_k8s_a_plan_is_skipped_where_the_analysis_asks_for_none() -> None:
    bench = Bench(K8S)
    for name in ("log_triage", "anomaly_classification"):
        bench.commit(name)
    bench.commit("root_cause_analysis", remediation_needed=False)
    assert bench.skip("remediation_planning")
    assert bench.done("remediation_planning")


def test_an_architecture_sees_twenty_members_and_acts_in_no_world_where_there_is_none() -> None:
    seen = {name for name in dir(Workbench) if not name.startswith("_")}
    asks = {"propose", "sample", "endpoint", "attempts_left", "max_attempts", "answer_format", "model"}
    judges = {"verify", "reject", "checkpoint", "finding", "invalidate"}
    writes = {"commit", "commit_unverified", "skip", "add"}
    assert seen == asks | judges | writes | {"done", "ready", "output", "world"}
    with pytest.raises(RuntimeError, match="has no world"):
        _ = Bench().workbench.world


def test_a_trial_that_is_over_is_freed_at_once_and_not_left_to_the_garbage_collector() -> None:
    bench = Bench(K8S)
    bench.commit("log_triage")
    bench.trial.close(answered=False)
    over = weakref.ref(bench.trial)
    gc.disable()
    try:
        del bench
        assert over() is None
    finally:
        gc.enable()
