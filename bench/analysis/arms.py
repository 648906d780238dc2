"""A run's trials by arm: one scenario, model, fault plan and architecture, all repetitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from bench.analysis import statistics
from bench.analysis.frames import Run
from bench.analysis.statistics import Mean, Paired, RateDifference, Share
from bench.errors import ResultsError

FAULT_FREE = "none"
"""The plan without faults: the twin of every other."""


UNUSABLE = ("error", "ungraded")
"""Outcomes that say nothing about the architecture."""


@dataclass(frozen=True)
class Condition:
    """What all arms of one table or panel have in common."""

    scenario: str
    model: str
    plan: str


@dataclass(frozen=True, eq=False)
class Arm:
    """`trials`: all of them; `usable`: those that were graded or gave up, of which alone the means are."""

    condition: Condition
    architecture: str
    trials: pd.DataFrame
    usable: pd.DataFrame

    def mean(self, column: str) -> Mean:
        return statistics.mean_of(self.usable[column].tolist())

    def by_repetition(self, column: str) -> Mapping[int, float]:
        """Repetition -> value. Within a scenario and a model the repetition tells which trials are twins."""
        return dict(zip(self.usable["repetition"].tolist(), self.usable[column].tolist(), strict=True))

    def count(self, outcome: str) -> int:
        return int((self.trials["outcome"] == outcome).sum())

    def solved(self) -> Share:
        """Of the trials that did not end in an error."""
        return statistics.share_of(self.count("solved"), len(self.usable))

    def less(self, other: Arm, column: str) -> Paired:
        """The paired difference: this arm's values less the other's."""
        return statistics.paired_difference(self.by_repetition(column), other.by_repetition(column))

    def solved_less(self, other: Arm) -> RateDifference:
        """The paired difference of the rates of solved trials."""
        return statistics.paired_rates(self._solved_by_repetition(), other._solved_by_repetition())

    def _solved_by_repetition(self) -> Mapping[int, bool]:
        return {repetition: bool(solved) for repetition, solved in self.by_repetition("correct").items()}


Arms = Mapping[Condition, Mapping[str, Arm]]
"""Condition -> architecture -> arm, both in the config's order; an arm without trials is not there."""


def arms_of(run: Run) -> Arms:
    order = run.names("architecture")
    found: dict[Condition, dict[str, Arm]] = {}
    grouped = run.trials.groupby(["scenario", "model", "fault", "architecture"], sort=False)
    for key, trials in grouped:
        scenario, model, plan, architecture = (str(name) for name in key)
        condition = Condition(scenario, model, plan)
        arm = Arm(condition, architecture, trials, trials[~trials["outcome"].isin(UNUSABLE)])
        found.setdefault(condition, {})[architecture] = arm
    return {condition: {name: arms[name] for name in order if name in arms} for condition, arms in found.items()}


def base_of(run: Run, architecture: str) -> str:
    """The architecture that this one is a variant of, by the run's config, or itself."""
    variants: Mapping[str, Mapping[str, str]] = run.manifest.get("config", {}).get("architecture", {})
    return variants.get(architecture, {}).get("base", architecture)


def twin(arms: Arms, arm: Arm) -> Arm | None:
    """The arm without faults to be compared with; None for that one itself, and where the run has none."""
    if arm.condition.plan == FAULT_FREE:
        return None
    twins = Condition(arm.condition.scenario, arm.condition.model, FAULT_FREE)
    return arms.get(twins, {}).get(arm.architecture)


def require_receipts(run: Run) -> None:
    """Raises ResultsError, naming the trials, where a planned fault was neither delivered nor moot, or came unplanned: then
    the arms did not run under the faults that they are compared under, and no number says anything."""
    bad = list(dict.fromkeys(run.faults.loc[~run.faults["adds_up"], "trial"].tolist()))
    if bad:
        named = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        raise ResultsError(f"faults were planned but not delivered in {len(bad)} trials ({named}): the run reports no numbers")


def missing_trials(run: Run) -> int:
    """How many trials of the config, or of the arms that have more repetitions than it says, are not recorded yet."""
    config = run.manifest.get("config", {})
    repetitions = max(int(config.get("repetitions", 0)), int(run.trials["repetition"].max()))
    arms = 1
    for column, key in (("scenario", "scenarios"), ("architecture", "architectures"), ("model", "models"), ("fault", "plans")):
        arms *= len(set(config.get(key, ())) | set(run.names(column)))
    return arms * repetitions - len(run.trials)
