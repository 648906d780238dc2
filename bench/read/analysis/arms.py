"""A run's trials by arm: all instances and repetitions of one scenario, model, fault plan and architecture.

Trials of two arms are paired by (instance, repetition): their random draws were the same. If a scenario has several instances,
each instance counts once in every mean, difference and interval (`bench.read.analysis.statistics.clusters`); otherwise each
repetition does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from bench.common.errors import ResultsError
from bench.read.analysis import statistics
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import measure_of
from bench.read.analysis.statistics import Mean, Pair, PairedMean, RateDifference, Ratio, Share
from bench.record.config import FAULT_FREE

ANSWERED = ("solved", "wrong")
"""Outcomes of trials with an answer."""
UNUSABLE = ("error", "ungraded")
"""Outcomes that say nothing about the architecture."""


@dataclass(frozen=True)
class Condition:
    """The model, scenario and fault plan that all arms of a table or of a figure's panel share."""

    scenario: str
    model: str
    plan: str


@dataclass(frozen=True, eq=False)
class Arm:
    """The trials of one arm.

    usable          the trials that were graded or gave up; means are taken over these
    is_instrument   whether its architecture only asks the model: it has no task to solve and does nothing in a world
    """

    condition: Condition
    architecture: str
    trials: pd.DataFrame
    usable: pd.DataFrame
    is_instrument: bool = False

    @cached_property
    def graded(self) -> pd.DataFrame:
        """The trials that had a task to solve, including trials that ended in an error."""
        return self.trials[self.trials["outcome"] != "ungraded"]

    def mean(self, column: str) -> Mean:
        """Return the mean of a column over the usable trials, with its 95% interval. If there are several instances, each
        counts once."""
        if column not in self._means:
            self._means[column] = statistics.amount_of(self.units(column), measure_of(column))
        return self._means[column]

    def units(self, column: str) -> list[float]:
        """Return the values that count as independent: each trial's value, or each instance's mean if there are several
        instances."""
        return list(statistics.by_unit(self.by_pair(column)).values())

    def by_pair(self, column: str) -> Mapping[Pair, float]:
        """Return a column's value by pair: (instance, repetition) -> value. A pair without a value is left out: a trial without
        an effective fault has no price, for instance."""
        if column not in self._values_by_pair:
            self._values_by_pair[column] = {pair: value for _, pair, value in self.values(column)}
        return self._values_by_pair[column]

    def values(self, column: str) -> Iterator[tuple[str, Pair, float]]:
        """Yield (trial, pair, value) for each usable trial that has a value in the column."""
        values = self.usable[column]
        for (trial, pair), value, is_known in zip(self._pairs, values.tolist(), values.notna().tolist(), strict=True):
            if is_known:
                yield trial, pair, value

    @cached_property
    def _means(self) -> dict[str, Mean]:
        """Column -> its mean, for the columns of which the mean was asked for before."""
        return {}

    @cached_property
    def _values_by_pair(self) -> dict[str, Mapping[Pair, float]]:
        """Column -> its values by pair, for the columns that were read before: tables, claims and figures read the same
        columns."""
        return {}

    @cached_property
    def _pairs(self) -> list[tuple[str, Pair]]:
        """The trial and the pair of each usable trial."""
        return list(zip(self.usable["trial"].tolist(), pairs_of(self.usable), strict=True))

    @cached_property
    def answered(self) -> Arm:
        """The arm without the trials that gave up."""
        return replace(self, usable=self.usable[self.usable["outcome"].isin(ANSWERED)])

    def count(self, outcome: str) -> int:
        """Return how many trials of the arm have this outcome. Trials that ended in an error are included."""
        return int((self.trials["outcome"] == outcome).sum())

    def solved(self) -> Share:
        """Return the share of usable trials that are solved. An instrument, which has no task, has no share."""
        return self._share_solved

    @cached_property
    def _share_solved(self) -> Share:
        trials = self.usable[:0] if self.is_instrument else self.usable
        return share_of_rows(trials, trials["outcome"].eq("solved"))

    def minus(self, other: Arm, column: str) -> PairedMean:
        """Return the paired difference: this arm's values minus the other arm's values."""
        return statistics.paired_difference(self.by_pair(column), other.by_pair(column), measure_of(column))

    def ratio_to(self, other: Arm, column: str) -> Ratio:
        """Return the ratio of two means over the pairs that both arms have: this arm's mean divided by the other arm's mean.
        The values must be amounts, which are at least 0."""
        ours, theirs = map(statistics.by_unit, statistics.in_common(self.by_pair(column), other.by_pair(column)))
        return statistics.ratio_of_means(ours, theirs)

    def solved_minus(self, other: Arm) -> RateDifference:
        """Return the paired difference of the shares solved: this arm's share minus the other arm's share."""
        return statistics.paired_rates(self.solved_by_pair(), other.solved_by_pair())

    def solved_by_pair(self) -> Mapping[Pair, bool]:
        """Return whether the trial of each pair is solved: (instance, repetition) -> solved. Trials that ended in an error are
        left out."""
        return {pair: bool(solved) for pair, solved in self.by_pair("correct").items()}


Arms = Mapping[Condition, Mapping[str, Arm]]
"""Condition -> architecture -> arm, both in the config's order. An arm without trials is left out."""


def arms_of(run: Run) -> Arms:
    """Return the arms of a run, by condition and architecture, both in the config's order."""
    order = run.names("architecture")
    descriptions = {name: run.manifest.descriptions.architectures.get(run.config.base(name)) for name in order}
    instruments = {name for name, description in descriptions.items() if description and description.is_instrument}
    by_condition: dict[Condition, dict[str, Arm]] = {}
    for key, trials in run.trials.groupby(["scenario", "model", "plan", "architecture"], sort=False):
        scenario, model, plan, architecture = (str(name) for name in key)
        condition = Condition(scenario, model, plan)
        unusable = trials["outcome"].isin(UNUSABLE)
        usable = trials[~unusable] if unusable.any() else trials
        arm = Arm(condition, architecture, trials, usable, architecture in instruments)
        by_condition.setdefault(condition, {})[architecture] = arm
    return {condition: {name: arms[name] for name in order if name in arms} for condition, arms in by_condition.items()}


def instances_of(rows: pd.DataFrame) -> list[str]:
    """Return each row's instance; "" for all rows if the frame has no instances."""
    return rows["instance"].tolist() if "instance" in rows else [""] * len(rows)


def pairs_of(trials: pd.DataFrame) -> list[Pair]:
    """Return each row's (instance, repetition)."""
    return list(zip(instances_of(trials), trials["repetition"].tolist(), strict=True))


def instances_by_scenario(run: Run) -> Mapping[str, list[str]]:
    """Return scenario -> its instances in this run, both in order. Intervals over several instances hold for tasks like these;
    with a single instance they hold for repetitions of that task."""
    instances = dict.fromkeys(zip(run.trials["scenario"].tolist(), instances_of(run.trials), strict=True))
    return {name: sorted(instance for scenario, instance in instances if scenario == name) for name in run.names("scenario")}


def share_of_rows(rows: pd.DataFrame, is_counted: Sequence[bool] | pd.Series[bool]) -> Share:
    """Return the share of rows for which `is_counted` is true. The interval clusters by instance."""
    return statistics.share_by_instance(instances_of(rows), [bool(value) for value in is_counted])


def control_of(arms: Arms, arm: Arm) -> Arm | None:
    """Return the control of an arm: the arm of the same architecture without faults. None if this arm is the control, or if the
    run has none."""
    if arm.condition.plan == FAULT_FREE:
        return None
    fault_free = Condition(arm.condition.scenario, arm.condition.model, FAULT_FREE)
    return arms.get(fault_free, {}).get(arm.architecture)


def excess_tokens(control: Arm | None, arm: Arm) -> Mean:
    """Return the paired excess: this arm's tokens minus its control's tokens, over the pairs that both answered; a mean of no
    values without a control."""
    return arm.answered.minus(control.answered, "tokens").difference if control else statistics.mean_of(())


def shortfalls(run: Run) -> list[str]:
    """Return a line if trials are not recorded yet, and a line if trials ended in an error, each with their number."""
    lines = []
    if missing := sum(map(missing_trials, run.recorded)):
        lines.append(
            f"This run is not complete: {missing} trials are not recorded. The same bench run command goes on with it."
        )
    reasons = run.trials.loc[run.trials["outcome"] == "error", "reason"]
    if len(reasons):
        lines.append(f"{len(reasons)} trials ended in an error and are left out of every mean; the first: {reasons.iloc[0]}")
    return lines


def require_receipts(run: Run) -> None:
    """Raise ResultsError, with the ids of the trials, if a fault's receipt does not add up: the fault was planned, and neither
    delivered nor not applicable, or it was delivered and never planned. The arms then did not run under their fault plans."""
    bad = list(dict.fromkeys(run.faults.loc[~run.faults["adds_up"], "trial"].tolist()))
    if bad:
        trials = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        raise ResultsError(f"faults were planned but not delivered in {len(bad)} trials ({trials}): the run reports no numbers")


def missing_trials(run: Run) -> int:
    """Return how many trials of the config are not recorded yet: the product of tasks, plans, architectures, models and
    repetitions, less the recorded trials. If arms have more repetitions than the config says, their number counts. An instance
    without a recorded trial is not counted. Of a probe, which runs each of its plans as often as it needs, the plans without a
    trial are counted."""
    if run.manifest.probe:
        return len(set(run.config.plans) - set(run.trials["plan"]))
    repetitions = max(run.config.repetitions, int(run.trials["repetition"].max()))
    solvers = 1  # pairs of an architecture and a model
    for column in ("architecture", "model"):
        solvers *= len(set(run.config.names(column)) | set(run.names(column)))
    tasks = set(zip(run.trials["scenario"].tolist(), instances_of(run.trials), strict=True))
    plans: dict[str, set[str]] = {}  # by scenario, with a trial or only in the config
    for scenario, plan in zip(run.trials["scenario"].tolist(), run.trials["plan"].tolist(), strict=True):
        plans.setdefault(scenario, set()).add(plan)
    recorded_names = plans.keys() | {f"{scenario}/{instance}" for scenario, instance in tasks}
    unrecorded = set(map(run.manifest.recorded_name, run.config.scenarios)) - recorded_names
    for name in (*unrecorded, *plans):
        plans.setdefault(name, set()).update(run.config.plans_on(name))
    conditions = sum(len(plans[name]) for name in (*unrecorded, *(scenario for scenario, _ in tasks)))
    return conditions * solvers * repetitions - len(run.trials)
