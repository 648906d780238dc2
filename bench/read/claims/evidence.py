"""The single values from which a claim's number is made. Verdicts use them, and `bench trace` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from bench.common import values
from bench.read.analysis.arms import UNUSABLE, Arm, Arms, Condition, arms_of, pairs_of
from bench.read.analysis.copies import counting
from bench.read.analysis.decided_ahead import NO_ANSWER, decided_ahead
from bench.read.analysis.frames import Run
from bench.read.analysis.replies import MALFORMED
from bench.read.analysis.statistics import Pair
from bench.read.claims.claim import CellClaim, Claim, DegradationClaim, DirectionClaim, PartClaim, RateClaim, RatioClaim
from bench.read.claims.closed_forms import FirstPrices, first_prices
from bench.read.claims.natural import distinct
from bench.record.config import FAULT_FREE


@values.dataclass(frozen=True)
class EvidenceItem:
    """One value of a trial or of one of its calls. `side` says to which side of a pair the value belongs."""

    trial: str
    side: str
    instance: str
    repetition: int
    value: float
    call: int | None = None
    subtask: str = ""

    @property
    def pair(self) -> Pair:
        return self.instance, self.repetition


@dataclass(frozen=True)
class Missing:
    """The reason why the run holds no values for a claim."""

    reason: str


@dataclass(frozen=True, eq=False)
class ModelResults:
    """The part of a run's results that belongs to one model."""

    run: Run
    arms: Arms
    model: str

    def prices(self, scenario: str) -> FirstPrices | None:
        """Return the tokens of the first calls in fault-free trials, for closed forms. They are calculated once for all
        claims."""
        if scenario not in self._prices:
            self._prices[scenario] = first_prices(self.run, scenario, self.model)
        return self._prices[scenario]

    @cached_property
    def _prices(self) -> dict[str, FirstPrices | None]:
        return {}

    def arm(self, claim: Claim, architecture: str) -> Arm | Missing:
        """Return the arm under the claim's fault plan, if it has a usable trial."""
        return self.arm_under(claim.plan, claim.scenario, architecture)

    def arm_under(self, plan: str, scenario: str, architecture: str) -> Arm | Missing:
        arm = self.arms.get(Condition(scenario, self.model, plan), {}).get(architecture)
        if arm is None:
            return Missing(self._absent(plan, scenario, architecture))
        if arm.usable.empty:
            return Missing(f"no trial of {architecture} under plan {plan} was graded: {len(arm.trials)} errors or counts")
        return arm

    def _absent(self, plan: str, scenario: str, architecture: str) -> str:
        for column, name in (("scenario", scenario), ("plan", plan), ("architecture", architecture)):
            if name not in self.run.names(column):
                return f"the run has no {'fault plan' if column == 'plan' else column} {name}"
        return f"the run has no trial of {architecture} under plan {plan} on {scenario} with this model"


def results_by_model(run: Run, arms: Arms | None = None) -> tuple[ModelResults, ...]:
    known = arms_of(run) if arms is None else arms
    return tuple(ModelResults(run, known, model) for model in run.names("model"))


def evidence(source: ModelResults, claim: Claim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values in the order of the run. If repetitions are copies of each other, only the first counts."""
    items = with_copies(source, claim)
    if isinstance(items, Missing) or (isinstance(claim, RateClaim) and claim.about == "runtime"):
        return items
    values: dict[Pair, list[object]] = {}
    for item in items:
        values.setdefault(item.pair, []).append((item.side, item.value, item.subtask))
    once = counting(source.run, source.model, [instance for instance, _ in values], list(values.values()))
    counted = {pair for pair, counts in zip(values, once, strict=True) if counts}
    return tuple(item for item in items if item.pair in counted)


def with_copies(source: ModelResults, claim: Claim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values of all trials, in the order of the run."""
    match claim:
        case DirectionClaim() | RatioClaim():
            return _measured(source, claim, *((name, claim.measure) for name in claim.pair))
        case PartClaim():
            return _part(source, claim)
        case CellClaim():
            return _measured(source, claim, (claim.architecture, claim.measure))
        case RateClaim():
            return _counted(source, claim)
        case DegradationClaim():
            return _solved(source, claim)


def _part(source: ModelResults, claim: PartClaim) -> tuple[EvidenceItem, ...] | Missing:
    arm = source.arm(claim, claim.architecture)
    if isinstance(arm, Missing):
        return arm
    if not arm.usable["timing"].eq("live").all():
        return Missing("the model's seconds were not lived through, so they are no whole that framework time is a part of")
    return _measured(source, claim, (claim.architecture, claim.measure), (claim.architecture, claim.whole))


def _measured(source: ModelResults, claim: Claim, *sides: tuple[str, str]) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values of each side of a claim, where a side is an architecture and a measure. Unknown values are left out."""
    items: list[EvidenceItem] = []
    for architecture, measure in sides:
        arm = source.arm(claim, architecture)
        if isinstance(arm, Missing):
            return arm
        side = architecture if len({name for name, _ in sides}) > 1 else measure
        known = [EvidenceItem(trial, side, *pair, float(value)) for trial, pair, value in arm.values(measure)]
        if not known:
            return Missing(f"no trial of {architecture} under plan {claim.plan} has {measure}")
        items += known
    return tuple(items)


def _solved(source: ModelResults, claim: DegradationClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return whether each trial was solved, for each arm of the two sides.

    A trial without a delivered fault is left out, with its pair. If no trial could come out otherwise, nothing is measured.
    """
    if claim.strikes == "every":
        return Missing(NO_ANSWER)
    for plan in dict.fromkeys(plan for side in claim.sides for plan in side.plans):
        if why := decided_ahead(source.run, source.model, plan):
            return Missing(f"{plan}: {why}")
    items: list[EvidenceItem] = []
    for named in dict.fromkeys(arm for side in claim.sides for arm in side.arms):
        arm = source.arm_under(named.plan, named.told or claim.scenario, named.architecture)
        if isinstance(arm, Missing):
            return arm
        struck = arm.usable if named.plan == FAULT_FREE else arm.usable[arm.usable["faults_delivered"] > 0]
        if struck.empty:
            return Missing(f"no fault of plan {named.plan} was delivered to {named.architecture}")
        items += _items(struck, under(*named), struck["correct"])
    return tuple(items)


def under(architecture: str, plan: str, told: str = "") -> str:
    return f"{architecture} under {plan}" + (f", {told}" if told else "")


def _counted(source: ModelResults, claim: RateClaim) -> tuple[EvidenceItem, ...] | Missing:
    if claim.counted == "silent_corruption":
        return _corrupted(source, claim)
    if claim.about == "runtime":
        return _of_runtime(source, claim)
    arm = source.arm(claim, claim.architecture)
    if isinstance(arm, Missing):
        return arm
    if claim.counted == "wrong_answers":
        answered = arm.usable[arm.usable["outcome"].isin(("solved", "wrong"))]
        items = tuple(_items(answered, claim.counted, answered["outcome"].eq("wrong")))
        return items or Missing("no trial ended with an answer")
    replies = source.run.replies
    first = replies["trial"].isin(set(arm.usable["trial"])) & replies["attempt"].eq(1)
    return _of_replies(distinct(replies[first]), claim)


def _items(trials: pd.DataFrame, side: str, values: pd.Series[float] | pd.Series[bool]) -> Iterator[EvidenceItem]:
    for trial, pair, value in zip(trials["trial"].tolist(), pairs_of(trials), values.tolist(), strict=True):
        yield EvidenceItem(trial, side, *pair, float(value))


def _of_runtime(source: ModelResults, claim: RateClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the trials that test the claim, in any scenario and plan. Each comes with whether it is a counterexample."""
    trials = source.run.trials
    of_arm = trials[(trials["architecture"] == claim.architecture) & (trials["model"] == source.model)]
    of_arm = of_arm[~of_arm["outcome"].isin(UNUSABLE)]
    if claim.counted == "compensated_out_of_order":
        tested, otherwise, none = (
            of_arm["compensated_pairs"],
            of_arm["compensated_out_of_order"],
            "took two effects back in a row",
        )
    else:
        through = of_arm["damage_stale"].fillna(0)
        tested, otherwise, none = of_arm["stale_refused"] + through, through, "proposed what had become stale"
    counted, was_otherwise = of_arm[tested > 0], otherwise[tested > 0] > 0
    groups = [*counted[["scenario", "instance", "plan"]].itertuples(index=False, name=None)]
    once = counting(source.run, source.model, groups, was_otherwise.tolist())
    items = tuple(_items(counted[once], claim.counted, was_otherwise[once]))
    return items or Missing(f"no trial of {claim.architecture} {none}")


def _corrupted(source: ModelResults, claim: RateClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return whether each graded trial was silently corrupted, if a fault of this effect was delivered under a plan that leaves
    an answer."""
    run = source.run
    decided = [plan for plan in run.names("plan") if decided_ahead(run, source.model, plan)]
    told = run.faults["delivered"] & run.faults["effect"].eq(claim.effect) & ~run.faults["plan"].isin(decided)
    struck = run.faults.loc[told, "trial"]
    arms = [
        arm
        for condition, named in source.arms.items()
        for name, arm in named.items()
        if (condition.scenario, condition.model, name) == (claim.scenario, source.model, claim.architecture)
    ]
    trials = [arm.usable[arm.usable["trial"].isin(set(struck.tolist()))] for arm in arms]
    items = tuple(item for trial in trials for item in _items(trial, claim.counted, trial["silent_corruption"]))
    return items or Missing(f"no fault of effect {claim.effect} was delivered to {claim.architecture} on {claim.scenario}")


def _of_replies(replies: pd.DataFrame, claim: RateClaim) -> tuple[EvidenceItem, ...] | Missing:
    """Return the values that a claim takes from replies.

    natural_failures      of all replies, the malformed
    natural_failures_at   of the malformed replies, those to that subtask
    valid_but_wrong       of the replies known to be wrong, by form or by a check, those whose form was right; a reply that is
                          only insufficient is weak, not wrong
    """
    malformed = replies["kind"].isin(MALFORMED)
    wrong = malformed | replies["kind"].eq("content")
    among, held, none = {
        "natural_failures": (wrong | True, malformed, "no reply was judged"),
        "natural_failures_at": (malformed, replies["subtask"].eq(claim.subtask), "no reply failed its schema of itself"),
        "valid_but_wrong": (wrong, ~malformed, "no reply was found wrong"),
    }[claim.counted]
    counted = replies[among]
    places = zip(counted["call"].tolist(), counted["subtask"].tolist(), strict=True)
    items = tuple(
        EvidenceItem(item.trial, item.side, item.instance, item.repetition, item.value, call, subtask)
        for item, (call, subtask) in zip(_items(counted, claim.counted, held[among]), places, strict=True)
    )
    return items or Missing(none)
