"""The single values from which a claim's number is made. Verdicts use them, and `bench trace` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from bench.common import values
from bench.read.analysis.arms import Arm, Arms, Condition, arms_of, pairs_of
from bench.read.analysis.claim import Claim, DirectionClaim, RateClaim, RatioClaim
from bench.read.analysis.copies import counted_trials
from bench.read.analysis.decided_ahead import reason_for_fixed_outcome
from bench.read.analysis.frames import Run
from bench.read.analysis.replies import MALFORMED
from bench.read.analysis.statistics import Pair
from bench.read.claims.closed_forms import FirstPrices, first_prices
from bench.read.claims.natural import distinct_replies


@values.dataclass(frozen=True)
class EvidenceItem:
    """One value of a trial or of one of its calls. `side` is the architecture that the value belongs to, or what it counts."""

    trial: str
    side: str
    instance: str
    repetition: int
    value: float
    call: int | None = None
    subtask: str = ""

    @property
    def pair(self) -> Pair:
        """The key by which values of two architectures are paired: (instance, repetition)."""
        return self.instance, self.repetition


@dataclass(frozen=True)
class Missing:
    """The reason why the run holds no values for a claim."""

    reason: str


@dataclass(frozen=True, eq=False)
class ModelResults:
    """The results of one model of a run. `arms` has the arms of all models."""

    run: Run
    arms: Arms
    model: str

    def prices(self, scenario: str) -> FirstPrices | None:
        """Return the mean tokens of the first calls of trials without faults, for closed forms. They are calculated once."""
        if scenario not in self._prices:
            self._prices[scenario] = first_prices(self.run, scenario, self.model)
        return self._prices[scenario]

    @cached_property
    def _prices(self) -> dict[str, FirstPrices | None]:
        return {}

    def arm(self, claim: Claim, architecture: str) -> Arm | Missing:
        """Return an architecture's arm under the claim's fault plan, or why it has no usable trial."""
        plan, scenario = claim.plan, claim.scenario
        arm = self.arms.get(Condition(scenario, self.model, plan), {}).get(architecture)
        if arm is None:
            for column, name in (("scenario", scenario), ("plan", plan), ("architecture", architecture)):
                if name not in self.run.names(column):
                    return Missing(f"the run has no {'fault plan' if column == 'plan' else column} {name}")
            return Missing(f"the run has no trial of {architecture} under plan {plan} on {scenario} with this model")
        if arm.usable.empty:
            return Missing(f"no trial of {architecture} under plan {plan} was graded: {len(arm.trials)} errors or counts")
        return arm


def results_by_model(run: Run, arms: Arms | None = None) -> tuple[ModelResults, ...]:
    """Return the results of each model of a run, in the config's order."""
    arms = arms_of(run) if arms is None else arms
    return tuple(ModelResults(run, arms, model) for model in run.names("model"))


def evidence(source: ModelResults, claim: Claim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values on which a claim is judged, in the order of the run, or why there are none. Of repetitions that are
    copies of each other only the first counts."""
    items = values_with_copies(source, claim)
    if isinstance(items, Missing):
        return items
    values: dict[Pair, list[object]] = {}
    for item in items:
        values.setdefault(item.pair, []).append((item.side, item.value, item.subtask))
    counted = counted_trials(source.run, source.model, [instance for instance, _ in values], list(values.values()))
    counted_pairs = {pair for pair, counts in zip(values, counted, strict=True) if counts}
    return tuple(item for item in items if item.pair in counted_pairs)


def values_with_copies(source: ModelResults, claim: Claim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values of all trials for a claim, copies included, in the order of the run, or why there are none."""
    return _outcomes(source, claim) if isinstance(claim, RateClaim) else _values_of_both(source, claim)


def _values_of_both(source: ModelResults, claim: DirectionClaim | RatioClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values of the claim's two architectures, or why one of them has none. Unknown values are left out."""
    items: list[EvidenceItem] = []
    for architecture in claim.pair:
        arm = source.arm(claim, architecture)
        if isinstance(arm, Missing):
            return arm
        of_arm = [EvidenceItem(trial, architecture, *pair, float(value)) for trial, pair, value in arm.values(claim.measure)]
        if not of_arm:
            return Missing(f"no trial of {architecture} under plan {claim.plan} has {claim.measure}")
        items += of_arm
    return tuple(items)


def _outcomes(source: ModelResults, claim: RateClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the trials or replies of which a claim states a share, each with 1 if it is a counterexample, else 0. Return the
    reason if there are none."""
    if claim.counted == "silent_corruption":
        return _silent_corruption(source, claim)
    arm = source.arm(claim, claim.architecture)
    if isinstance(arm, Missing):
        return arm
    if claim.counted == "wrong_answers":
        answered = arm.usable[arm.usable["outcome"].isin(("solved", "wrong"))]
        items = tuple(_items(answered, claim.counted, answered["outcome"].eq("wrong")))
        return items or Missing("no trial ended with an answer")
    replies = source.run.replies  # for `valid_but_wrong`
    first_attempts = replies["trial"].isin(set(arm.usable["trial"])) & replies["attempt"].eq(1)
    return _valid_but_wrong(distinct_replies(replies[first_attempts]))


def _items(trials: pd.DataFrame, side: str, values: pd.Series[float] | pd.Series[bool]) -> Iterator[EvidenceItem]:
    """Yield one item for each trial with its value."""
    for trial, pair, value in zip(trials["trial"].tolist(), pairs_of(trials), values.tolist(), strict=True):
        yield EvidenceItem(trial, side, *pair, float(value))


def _silent_corruption(source: ModelResults, claim: RateClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return for each trial with a delivered fault of this effect whether it was silently corrupted. Plans under which every
    trial has the same outcome are left out."""
    run = source.run
    fixed_plans = [plan for plan in run.names("plan") if reason_for_fixed_outcome(run, source.model, plan)]
    is_counted = run.faults["delivered"] & run.faults["effect"].eq(claim.effect) & ~run.faults["plan"].isin(fixed_plans)
    struck_trials = set(run.faults.loc[is_counted, "trial"].tolist())
    items = list[EvidenceItem]()
    for condition, by_architecture in source.arms.items():
        arm = by_architecture.get(claim.architecture)
        if arm and (condition.scenario, condition.model) == (claim.scenario, source.model):
            trials = arm.usable[arm.usable["trial"].isin(struck_trials)]
            items += _items(trials, claim.counted, trials["silent_corruption"])
    return tuple(items) or Missing(
        f"no fault of effect {claim.effect} was delivered to {claim.architecture} on {claim.scenario}"
    )


def _valid_but_wrong(replies: pd.DataFrame) -> tuple[EvidenceItem, ...] | Missing:
    """Return for each reply that is known to be wrong, by its form or by a check, whether its form was right. A reply that is
    only insufficient is weak, not wrong."""
    malformed = replies["kind"].isin(MALFORMED)
    wrong = replies[malformed | replies["kind"].eq("content")]
    items = _items(wrong, "valid_but_wrong", ~malformed[wrong.index])
    calls_and_subtasks = zip(items, wrong["call"].tolist(), wrong["subtask"].tolist(), strict=True)
    with_calls = tuple(replace(item, call=call, subtask=subtask) for item, call, subtask in calls_and_subtasks)
    return with_calls or Missing("no reply was found wrong")
