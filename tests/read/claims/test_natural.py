"""One reply counts once, and its rate is as uncertain as its clusters are few."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from records import accepted, called, committed, fault, rejected, run_of, trial

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.replies import KINDS, MALFORMED
from bench.read.claims.natural import Rejections, distinct_replies, natural_failures
from bench.record.events import Event, ViolationKind
from bench.record.record import TrialRecord

PACKS = ("multi_file_debugging", "k8s_oomkill")
RESULTS = Path(__file__).parents[3] / "results"


def of(run: Run, subtask: str | None, *kinds: ViolationKind) -> Rejections:
    return next(failure for failure in natural_failures(run) if (failure.subtask, failure.kinds) == (subtask, kinds or KINDS))


def whole_task(*reasons: str) -> list[Event]:
    """One call after the other for both subtasks; each rejected for a reason, or accepted."""
    events: list[Event] = []
    for number, reason in enumerate(reasons, 1):
        events.append(called(number, "a", "b", attempt=number))
        events += [rejected(number, name, reason) if reason else accepted(number, name) for name in "ab"]
    return events


def test_a_reply_counts_once_whatever_its_subtasks_architectures_and_plans(tmp_path: Path) -> None:
    records = [trial(name, plan, 1, "gave_up", whole_task("cut_off", "")) for name in ("x", "y") for plan in ("none", "paper")]
    run = run_of(tmp_path / "run", records)
    assert len(run.replies) == 8
    assert (of(run, "all", "cut_off").share.k, of(run, "all", "cut_off").share.n) == (1, 2)


def test_the_same_reply_in_another_repetition_or_of_another_model_is_another(tmp_path: Path) -> None:
    records = [trial("x", "none", i, model=model, events=whole_task("")) for i in (1, 2) for model in ("m", "n")]
    assert len(distinct_replies(run_of(tmp_path / "run", records).replies)) == 4


def test_a_reply_that_one_architecture_rejects_is_rejected_and_stands_where_it_was(tmp_path: Path) -> None:
    records = [
        trial("x", "none", 1, events=whole_task("", "")),
        trial("y", "none", 1, "gave_up", whole_task("check", "insufficient")),
        trial("z", "none", 1, "gave_up", whole_task("cut_off", "")),
    ]
    result = distinct_replies(run_of(tmp_path / "run", records).replies)
    assert result[["call", "kind"]].values.tolist() == [[2, "insufficient"], [1, "cut_off"]]


def test_a_reply_that_a_fault_touched_in_one_trial_counts_by_what_it_was_in_another(tmp_path: Path) -> None:
    struck: list[Event] = [*fault("planned", "delivered", call=1, subtask="a"), called(1, "a"), rejected(1, "a")]
    plain: list[Event] = [called(1, "a"), accepted(1, "a")]
    run = run_of(tmp_path / "run", [trial("x", "paper", 1, "gave_up", struck), trial("x", "none", 1, events=plain)])
    assert (of(run, None).share.k, of(run, None).share.n) == (0, 1)


def repeated(*rejected_of_three: int) -> list[TrialRecord]:
    """Repetitions of one task, of three calls each, of which so many were rejected."""
    return [
        trial("x", "none", number, "gave_up", whole_task(*["check"] * bad, *[""] * (3 - bad)))
        for number, bad in enumerate(rejected_of_three, 1)
    ]


def test_replies_that_fail_together_count_as_fewer(tmp_path: Path) -> None:
    together = of(run_of(tmp_path / "together", repeated(3, 0, 3, 0, 3, 0)), None)
    apart = of(run_of(tmp_path / "apart", repeated(1, 2, 1, 2, 1, 2)), None)
    assert (together.share.rate, apart.share.rate) == (0.5, 0.5)
    # By hand: 6 sums of ±1.5 over 18 values of ±0.5, so an effect of 6/5 · 13.5 / 4.5 = 3.6.
    assert together.counts_as == pytest.approx(18 / 3.6) and apart.counts_as == 18
    assert together.share.low < apart.share.low < apart.share.high < together.share.high  # type: ignore[operator]


def test_where_nothing_fails_each_repetition_counts_once(tmp_path: Path) -> None:
    none = of(run_of(tmp_path / "run", repeated(0, 0, 0, 0)), None)
    assert none.counts_as == 4 and none.share.high and none.share.high > 0.4


def test_of_several_instances_the_instance_is_the_cluster(tmp_path: Path) -> None:
    records = [
        replace(each, id=f"{each.id}-{instance}", instance=instance)
        for instance, bad in (("i", 3), ("j", 0), ("k", 3), ("l", 0))
        for each in repeated(bad, bad)
    ]
    result = of(run_of(tmp_path / "run", records), None)
    # By hand: 4 sums of ±3 over 24 values of ±0.5.
    assert result.counts_as == pytest.approx(24 / (4 / 3 * 36 / 6)) and result.share.instances == 4


def test_it_is_said_how_many_trials_came_so_far_as_a_call(tmp_path: Path) -> None:
    def steps(*names: str) -> list[Event]:
        return [event for i, name in enumerate(names, 1) for event in (called(i, name), accepted(i, name), committed(i, name))]

    records = [
        *(trial("x", "none", 1, events=steps("a", "b")), trial("x", "none", 2, "gave_up", steps("a"))),
        trial("whole", "none", 1, events=[called(9, "a", "b"), accepted(9, "a"), accepted(9, "b")]),
    ]
    run = run_of(tmp_path / "run", records)
    assert of(run, "b").reached == (1, 2), "an architecture that never makes such a call is not asked"
    assert of(run, "all").reached == (1, 1)


def test_the_reference_runs_replies_are_those_that_another_program_counted() -> None:
    """The audit of the run: 9 of 312 outputs were 2 distinct replies, 212 of 588 were 96 of 220, none lacking a field."""
    run = bench.load_run(RESULTS / "paper-qwen2.5-coder-1.5b-instruct")
    result = {
        (failure.scenario, failure.kinds): (failure.share.k, failure.share.n)
        for failure in natural_failures(run)
        if failure.subtask is None
    }
    debugging, k8s = ({kinds: n for (name, kinds), n in result.items() if name == pack} for pack in PACKS)
    assert debugging[MALFORMED] == (2, 110) and debugging["cut_off",] == (1, 110)
    assert k8s[MALFORMED] == (96, 220) and k8s["vocabulary",] == (93, 220)
    assert debugging["missing_field",] == (0, 110) and k8s["missing_field",] == (0, 220)
