"""Recovery by how it ends: beside the control, over the same tasks for every architecture, silent corruption told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from records import accepted, called, committed, fault, recovered, run_of, smooth, trial, undamaged

from bench.read.analysis.arms import arms_of
from bench.read.analysis.recovery_rates import RecoveryRate, recovery_rates
from bench.read.analysis.statistics import TwoByTwo, share_of
from bench.record.events import Answered, Event
from bench.record.record import Outcome, TrialRecord

SOLVED: Outcome = "solved"
WRONG: Outcome = "wrong"
GAVE_UP: Outcome = "gave_up"
ERROR: Outcome = "error"
Outcomes = Sequence[Outcome]


def passed(reason: str = "") -> list[Event]:
    """The fault in b's content is accepted; `reason`: why its undamaged form would not have been."""
    return [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(*fault("planned", "delivered"), called(2, "b"), undamaged(2, "b", reason=reason), accepted(2, "b")),
        *(committed(2, "b", made_from=[("a", 1)]), Answered((("a", 1), ("b", 1))), *fault("undetected")),
    ]


def records(
    architecture: str, none: Outcomes, paper: Outcomes, events: Mapping[int, Sequence[Event]] | None = None
) -> list[TrialRecord]:
    """Of each instance one trial without faults and one under them; `events`: those of some of the latter."""
    given = {number: recovered() for number in range(len(paper))} | dict(events or {})
    return [
        trial(architecture, plan, 1, outcome, each, instance=f"case_{number}", id=f"{architecture}-{plan}-{number}")
        for plan, outcomes in (("none", none), ("paper", paper))
        for number, outcome in enumerate(outcomes)
        for each in [smooth() if plan == "none" else given[number]]
    ]


def rates(folder: Path, *some: list[TrialRecord]) -> dict[str, RecoveryRate]:
    run = run_of(folder / "run", [record for records in some for record in records])
    return {rate.arm.architecture: rate for rate in recovery_rates(run, arms_of(run))}


def test_each_pair_stands_in_one_cell_and_the_net_change_is_what_is_gained_less_what_is_lost(tmp_path: Path) -> None:
    [rate] = rates(
        tmp_path, records("static", [SOLVED] * 3 + [WRONG] * 3, [SOLVED, SOLVED, GAVE_UP, SOLVED, WRONG, ERROR])
    ).values()
    assert rate.outcomes == TwoByTwo(both=2, first=1, second=1, neither=1)
    assert (rate.change.gained, rate.change.lost, rate.change.difference) == (1, 1, 0.0)


def test_a_recovery_rate_is_of_the_pairs_that_every_architectures_control_solves(tmp_path: Path) -> None:
    result = rates(
        tmp_path,
        records("static", [SOLVED, SOLVED, SOLVED, WRONG], [SOLVED, WRONG, SOLVED, SOLVED]),
        records("mine", [SOLVED, SOLVED, GAVE_UP, SOLVED], [SOLVED, SOLVED, SOLVED, SOLVED]),
    )
    assert result["static"].recovered == share_of(1, 2), "the third is not mine's to lose, and the fourth not its own"
    assert result["mine"].recovered == share_of(2, 2)


def test_a_pair_that_ended_in_an_error_in_one_arm_is_in_no_arms_rate(tmp_path: Path) -> None:
    result = rates(
        tmp_path,
        records("static", [SOLVED, SOLVED], [SOLVED, ERROR]),
        records("mine", [SOLVED, SOLVED], [SOLVED, SOLVED]),
    )
    assert result["static"].recovered == result["mine"].recovered == share_of(1, 1)


def test_a_task_that_no_fault_struck_is_counted_and_told(tmp_path: Path) -> None:
    [rate] = rates(tmp_path, records("static", [SOLVED, SOLVED], [SOLVED, SOLVED], {1: smooth()})).values()
    assert (rate.recovered.n, rate.struck) == (2, 1)


def test_silent_corruption_is_a_right_answer_lost_to_an_effective_fault_that_passed(tmp_path: Path) -> None:
    under: Outcomes = [WRONG, SOLVED, WRONG, WRONG, WRONG]
    events = {0: passed(), 1: passed(), 2: passed(reason="check"), 3: passed()}
    [rate] = rates(tmp_path, records("static", [SOLVED, SOLVED, SOLVED, WRONG, SOLVED], under, events)).values()
    # The third was masked, the fourth wrong anyway, and the fifth's fault was noticed.
    assert rate.corrupted == share_of(1, 3)


def test_silently_wrong_after_repair_is_a_right_answer_lost_behind_a_fault_that_was_noticed(tmp_path: Path) -> None:
    events = {2: passed()}
    [rate] = rates(tmp_path, records("static", [SOLVED] * 3 + [WRONG], [WRONG, SOLVED, WRONG, WRONG], events)).values()
    # The third's fault was never noticed, and the fourth was wrong without it.
    assert rate.repaired == share_of(1, 2) and rate.corrupted.k == 1


def test_where_no_control_solved_anything_there_is_nothing_to_recover_to(tmp_path: Path) -> None:
    assert rates(tmp_path / "none", records("static", [WRONG, WRONG], [SOLVED, WRONG])) == {}
    assert rates(tmp_path / "without", [each for each in records("static", [SOLVED], [SOLVED]) if each.plan != "none"]) == {}


def test_repetitions_of_an_instance_widen_the_interval_of_a_rate(tmp_path: Path) -> None:
    def repeated(count: int) -> list[TrialRecord]:
        return [
            trial(
                "static",
                plan,
                repetition,
                outcome,
                smooth() if plan == "none" else recovered(),
                instance=name,
                id=f"{plan}-{name}-{repetition}",
            )
            for plan in ("none", "paper")
            for name in "abcd"
            for repetition in range(1, count + 1)
            for outcome in [SOLVED if plan == "none" or name in "ab" else WRONG]
        ]

    once, often = (rates(tmp_path / str(count), repeated(count))["static"] for count in (1, 5))
    assert (once.recovered.k, once.recovered.n, often.recovered.k, often.recovered.n) == (2, 4, 10, 20)
    assert often.recovered.instances == 4
    for result in (once.recovered, often.recovered):
        assert result.low is not None and result.high is not None and result.high - result.low > 0.6
