"""The rates of recovery: how many trials under faults are solved, compared with their controls without faults.

The cost of a recovery is in `bench.read.analysis.recovery`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, control_of, pairs_of
from bench.read.analysis.decided_ahead import reason_for_fixed_outcome
from bench.read.analysis.faults import CONTENT_POINTS
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Pair, RateDifference, Share, TwoByTwo


@dataclass(frozen=True, eq=False)
class RecoveryRate:
    """An arm under faults compared with its control, over pairs in which neither trial ended in an error.

    common   the pairs that the controls of all architectures solve, and in which no architecture's trial ended in an error
    """

    run: Run
    arm: Arm
    control: Arm
    common: Set[Pair]

    @cached_property
    def outcomes(self) -> TwoByTwo:
        """The number of pairs that both solved, that only the control solved, that only the trial under faults solved, and that
        neither solved."""
        return statistics.two_by_two(self.control.solved_by_pair(), self.arm.solved_by_pair())

    @cached_property
    def change(self) -> RateDifference:
        """The share solved under faults minus the share that the control solved."""
        return self.arm.solved_minus(self.control)

    @cached_property
    def recovered(self) -> Share:
        """The share solved under faults, among the common pairs."""
        return _share({pair: is_solved for pair, is_solved in self.arm.solved_by_pair().items() if pair in self.common})

    @cached_property
    def struck(self) -> int:
        """The number of the common pairs in which a fault was delivered to this arm."""
        return len(self.common & set(pairs_of(self.arm.usable[self.arm.usable["faults_delivered"] > 0])))

    @cached_property
    def corrupted(self) -> Share:
        """The share of silent corruption: pairs with a wrong answer and an undetected fault, among the pairs that the control
        solves and in which a fault in the content was effective."""
        return self._among_solved(_silent_corruption(self.run, self.arm))

    @cached_property
    def repaired(self) -> Share:
        """The share that is silently wrong after a repair: the pairs with a wrong answer that passed every check, among the
        pairs that the control solves and in which an effective fault was noticed."""
        return self._among_solved(_wrong_after_repair(self.run, self.arm))

    @property
    def decided(self) -> str:
        """Why the plan leaves each trial only one possible result; "" if it does not."""
        return reason_for_fixed_outcome(self.run, self.arm.condition.model, self.arm.condition.plan)

    def _among_solved(self, values: Mapping[Pair, bool]) -> Share:
        """Return the share of true values among the pairs that the control solves. It has no pair if the plan leaves each trial
        only one possible result."""
        control = {} if self.decided else self.control.solved_by_pair()
        return _share({pair: value for pair, value in values.items() if control.get(pair)})


def recovery_rates(run: Run, arms: Arms) -> Iterator[RecoveryRate]:
    """Yield a rate for each arm under faults that has a control, in the order of the arms. Nothing is yielded for a condition
    if no control solved anything."""
    for by_architecture in arms.values():
        controls = {name: control for name, arm in by_architecture.items() if (control := control_of(arms, arm))}
        if any(control.count("solved") for control in controls.values()):
            common = _solved_by_all(controls, by_architecture)
            yield from (RecoveryRate(run, by_architecture[name], control, common) for name, control in controls.items())


def _solved_by_all(controls: Mapping[str, Arm], arms: Mapping[str, Arm]) -> frozenset[Pair]:
    """Return the pairs that every control solves and in which no trial under faults ended in an error."""
    solved = [{pair for pair, is_solved in control.solved_by_pair().items() if is_solved} for control in controls.values()]
    usable = [arms[name].solved_by_pair().keys() for name in controls]
    return frozenset(set.intersection(*solved).intersection(*usable))


def _silent_corruption(run: Run, arm: Arm) -> dict[Pair, bool]:
    """Return for each pair with an effective fault in the content whether the answer is wrong and the fault was never
    noticed."""
    faults = run.faults[run.faults["impact"].eq("effective") & run.faults["point"].isin(CONTENT_POINTS)]
    unnoticed = faults["finish"].eq("undetected").groupby(faults["trial"]).any()
    struck = arm.usable[arm.usable["trial"].isin(unnoticed.index)]
    wrong = struck["outcome"].eq("wrong") & struck["trial"].isin(unnoticed.index[unnoticed])
    return dict(zip(pairs_of(struck), wrong.tolist(), strict=True))


def _wrong_after_repair(run: Run, arm: Arm) -> dict[Pair, bool]:
    """Return for each pair in which an effective fault was noticed whether the answer is wrong although every check passed."""
    noticed = run.faults[run.faults["impact"].eq("effective") & run.faults["detected"]]
    struck = arm.usable[arm.usable["trial"].isin(set(noticed["trial"]))]
    return dict(zip(pairs_of(struck), struck["undetected_failure"].tolist(), strict=True))


def _share(values: Mapping[Pair, bool]) -> Share:
    """Return the share of pairs whose value is true. The interval clusters by instance."""
    return statistics.share_by_instance([instance for instance, _ in values], list(values.values()))
