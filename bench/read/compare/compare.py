"""Decide whether a run is worse than another, by a gate of a few measures, each over the pairs of all arms together.

`bench compare` uses this, and so does whatever else sets one side beside another: `compare(first, second)`, where each side is
a run, or a part of one (`bench.read.analysis.pairing.part_of_run`).

The owner names the measures and how much worse each may be (`GATE`); `bench.read.compare.verdict` says what they come to. All
other measures, and the arms by themselves, stand beside the gate: they are shown, corrected together, and decide nothing.

A margin is a share of the smaller of both runs' means; for rates it is in points. An arm that is equal in every pair, by
outcome, damage, tokens, dollars and seconds, is equal: there is nothing to infer.

Trials of one instance stand together; if a pack has only one, trials of one repetition do, because they met the same draws. So
of arms that fail together, no two count for each other.

Seconds are of calls and waiting: framework time depends on this machine, and a replay has none. Errors count against every
finding on what is solved. For simulated models that never err, repetitions of an instance with the same result in both runs are
copies, and count once (`bench.read.analysis.copies`). If A and B differ in a setting that had no occasion to act in any pair,
that they are equal shows nothing, and is undecided (`bench.read.analysis.factors`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import pandas as pd

from bench.common.errors import ConfigError, nearest
from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Condition, arms_of, instances_by_scenario, pairs_of, require_receipts
from bench.read.analysis.aspects import aspects_between
from bench.read.analysis.copies import first_of_copies, is_error_free
from bench.read.analysis.factors import (
    ARCHITECTURE,
    ArmName,
    VerdictEvidence,
    factor_could_act,
    factors_between,
    pairs_that_could_differ,
    reason_against_verdict,
)
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import METRICS, MIN_PRICED_TRIALS, measure_of
from bench.read.analysis.pairing import PairedRuns, paired_runs
from bench.read.analysis.per_solved import PerSolved, spent_per_solved
from bench.read.analysis.statistics import Mean, Pair, RateDifference
from bench.read.compare.verdict import (
    REASONS,
    ComparisonFinding,
    ComparisonVerdict,
    GatedMeasure,
    MeasureChange,
    compare_amounts,
    compare_damage,
    compare_rates,
    finding_of,
    floor_reason,
    holm_corrected,
    verdict_of,
)
from bench.record.config import FAULT_FREE

Criterion = Literal["solved", "damage", "price", "first_round", "cost", "tokens", "seconds"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
QUALITY = ("solved", "damage")
Margins = Mapping[str, float]
"""Measure -> how much worse B may be: a share of the smaller mean, or points of a rate."""
GATE: Margins = {"damage": 0.0, "solved": 0.05, "tokens": 0.1, "price": 0.1}
MARGIN = 0.1
"""The margin of a measure that has none in `GATE`."""
WHOLE = 0.9
"""With a smaller share of A's pairs, B is at best undecided."""
COLUMNS: Mapping[Criterion, str] = {
    "price": "price_tokens",
    "first_round": "first_round_tokens",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "on_the_clock",
}
FEWEST: Mapping[Criterion, int] = {"price": MIN_PRICED_TRIALS, "first_round": 1, "cost": 1}
"""Under this many pairs the criterion is not measured."""
PREFIX = "damage_"
"""What the columns of damage begin with."""


def gate_of(texts: Sequence[str]) -> Margins:
    """Return the measures that decide with their margins, read from texts like `tokens` or `tokens=0.2`; the default gate for
    no texts. Raise ConfigError for a measure that is not known, or a margin that is none."""
    gate: dict[str, float] = {}
    for text in texts:
        name, given, margin = text.partition("=")
        criterion = next((known for known in CRITERIA if known == name), None)
        if criterion is None:
            raise ConfigError(f"unknown measure '{name}': {nearest(name, CRITERIA)}")
        try:
            gate[criterion] = float(margin) if given else GATE.get(criterion, MARGIN)
        except ValueError:
            gate[criterion] = -1.0
        if not 0 <= gate[criterion] <= 1:
            raise ConfigError(f"--measure {text}: the margin is a number from 0 to 1, as in --measure {name}=0.1")
    return gate or GATE


@dataclass(frozen=True)
class ArmDifference:
    """The difference by one criterion in one arm, or in all arms together. `difference` is the second run's value minus the
    first run's.

    gates      whether the verdict rests on it
    unpaired   values without a partner in the other run
    reason     why the finding is so
    """

    criterion: Criterion
    gates: bool
    change: MeasureChange
    difference: Mean | RateDifference
    unpaired: int
    finding: ComparisonFinding
    reason: str


@dataclass(frozen=True)
class ArmComparison:
    """One arm of the first run and its counterpart in the second, by each criterion, beside the gate. `factors` names the
    settings in which they differ."""

    first: Condition
    second: Condition
    architectures: tuple[str, str]
    rows: tuple[ArmDifference, ...]
    factors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of two `runs`, with only the trials that were compared. The second run is judged by the first.

    overall   all arms together, by each criterion: those of the gate, and those beside it
    missing   what B lacks of A, if A cannot be judged without it
    dollars   the cost of a solved task in each run, over the compared trials
    flaky     trials that ended in different ways in A and in earlier runs like it
    """

    runs: PairedRuns
    gate: Margins
    overall: tuple[ArmDifference, ...]
    arms: tuple[ArmComparison, ...]
    missing: tuple[str, ...]
    dollars: tuple[PerSolved, PerSolved]
    flaky: tuple[str, ...] = ()

    @property
    def gated(self) -> tuple[ArmDifference, ...]:
        """The findings on which the verdict rests."""
        return tuple(row for row in self.overall if row.gates)

    @cached_property
    def verdict(self) -> ComparisonVerdict:
        """The verdict on the second run."""
        measures = [GatedMeasure(row.finding, row.criterion in QUALITY) for row in self.gated]
        return verdict_of(measures, bool(self.missing))

    @property
    def factors(self) -> tuple[str, ...]:
        """The settings in which the two sides differ in any arm. Of two architectures of one run these are the aspects in which
        they differ, as claims say them."""
        architectures = self.runs.counterparts.get(ARCHITECTURE)
        aspects = aspects_between(self.runs.first, *architectures) if architectures else ()
        factors = dict.fromkeys(factor for arm in self.arms for factor in arm.factors)
        return (*aspects, *(factor for factor in factors if not aspects or factor != ARCHITECTURE))


@dataclass(frozen=True)
class EarlierRuns:
    """What earlier runs like A show of chance.

    noise   criterion -> differences of units between A and each earlier run
    flaky   trials whose outcomes differ among these runs
    """

    noise: Mapping[Criterion, Sequence[float]] = field(default_factory=dict)
    flaky: tuple[str, ...] = ()


def compare(
    first: Run,
    second: Run,
    gate: Margins = GATE,
    whole: bool = False,
    allowed: Mapping[str, int] | None = None,
    earlier: Sequence[Run] = (),
) -> Comparison:
    """Compare `second` with `first` by what both share.

    Two runs with one model each, or one architecture each, are compared across these.

    Args:
        first: A.
        second: B, which is judged.
        gate: The measures that decide, with their margins.
        whole: Refuse runs that do not share everything.
        allowed: Kind of damage -> how many effects more count as none.
        earlier: Runs of the same experiment as A.

    Returns:
        The comparison.

    Raises:
        ResultsError: The runs cannot be compared, or a fault of either has no receipt.
    """
    for run in (first, second):
        require_receipts(run)
    runs = paired_runs(first, second, whole)
    pairs = _arm_pairs(runs)
    judge = _Judge(gate, allowed or {}, _history(first, earlier))
    overall = judge.rows(pairs)
    beside = [row for row in overall if not row.gates]
    each = [judge.rows([pair]) for pair in pairs] if len(pairs) > 1 else [overall]
    rows = iter(_correct([*beside, *(row for of_arm in each for row in of_arm)] if len(pairs) > 1 else []))
    if len(pairs) > 1:
        overall = tuple(row if row.gates else next(rows) for row in overall)
        each = [tuple(next(rows) for _ in of_arm) for of_arm in each]
    arms = tuple(pair.comparison(of_pair) for pair, of_pair in zip(pairs, each, strict=True))
    dollars = (spent_per_solved(runs.first.trials, COLUMNS["cost"]), spent_per_solved(runs.second.trials, COLUMNS["cost"]))
    return Comparison(runs, gate, overall, arms, _missing(runs, overall), dollars, judge.history.flaky)


def _arm_pairs(runs: PairedRuns) -> list[_ArmPair]:
    before, after = (
        arms_of(replace(run, trials=run.trials.assign(on_the_clock=run.trials["api_seconds"] + run.trials["waiting_seconds"])))
        for run in (runs.first, runs.second)
    )
    instances = instances_by_scenario(runs.first)
    pairs: list[_ArmPair] = []
    for condition, named in before.items():
        models = (condition.model, runs.counterpart("model", condition.model))
        of_model = list(zip((runs.first, runs.second), models, strict=True))
        never_err, repeatable = (all(test(*each) for each in of_model) for test in (is_error_free, _is_repeatable))
        for name, arm in named.items():
            other = after[replace(condition, model=models[1])][runs.counterpart("architecture", name)]
            names = (ArmName(name, models[0], condition.plan), ArmName(other.architecture, models[1], condition.plan))
            factors = factors_between(runs.first, *names, runs.second)
            pairs.append(_ArmPair(arm, other, len(instances[condition.scenario]) > 1, never_err, repeatable, factors))
    return pairs


def _is_repeatable(run: Run, model: str) -> bool:
    """Return whether a rerun of a trial gives the same replies: they are simulated, on declared draws, or recorded."""
    return run.timings.get(model, frozenset()) <= {"simulated", "recorded"}


def _missing(runs: PairedRuns, rows: Sequence[ArmDifference]) -> tuple[str, ...]:
    """Return what B lacks of A: whole arms, or more than a tenth of the pairs."""
    pairs = len(runs.first.trials)
    lacking = [f"{len(runs.absent)} of {runs.arms} arms of A: {', '.join(runs.absent)}"] if runs.absent else []
    if pairs < WHOLE * runs.trials:
        lacking.append(f"{runs.trials - pairs} of {runs.trials} trials of A have no partner in B")
    usable = [row for row in rows if row.gates and row.criterion == "tokens" and row.change.pairs is not None]
    if not lacking and any((row.change.pairs or 0) < WHOLE * pairs for row in usable if row.unpaired):
        lacking.append(f"only {usable[0].change.pairs} of {pairs} pairs can be used")
    return tuple(lacking)


def _history(first: Run, earlier: Sequence[Run]) -> EarlierRuns:
    """Return what earlier runs like the first show of chance."""
    noise: dict[Criterion, list[float]] = {}
    outcomes: dict[tuple[object, ...], set[str]] = {}
    for run in (first, *earlier):
        keys = [run.trials[name].tolist() for name in ("scenario", "instance", "architecture", "model", "plan", "repetition")]
        for *place, outcome in zip(*keys, run.trials["outcome"].tolist(), strict=True):
            outcomes.setdefault(tuple(place), set()).add(outcome)
    for run in earlier:
        require_receipts(run)
        pairs = _arm_pairs(paired_runs(first, run, whole=False))
        for criterion in COLUMNS:
            before, after, _ = _join([pair.values(criterion) for pair in pairs])
            noise.setdefault(criterion, []).extend(statistics.differences_of(after, before))
    flaky = [" ".join(str(name) for name in place if name) for place, ended in outcomes.items() if len(ended) > 1]
    return EarlierRuns(noise, tuple(flaky))


def _correct(rows: Sequence[ArmDifference]) -> list[ArmDifference]:
    """Return rows beside the gate after a correction for their number."""
    tested = [row if row.criterion != "damage" and row.finding not in ("not measured", "equal") else None for row in rows]
    adjusted = holm_corrected([row.change.p if row else None for row in tested])
    family = sum(p is not None for p in adjusted)

    def judged(row: ArmDifference, p: float | None) -> ArmDifference:
        finding = finding_of(row.change, p)
        return replace(row, finding=finding, reason=_reason(row.change, finding, family))

    return [judged(row, p) if test else row for row, test, p in zip(rows, tested, adjusted, strict=True)]


def _reason(change: MeasureChange, finding: ComparisonFinding, family: int = 1) -> str:
    return (change.why or floor_reason(change, family) if finding == "undecided" else "") or REASONS[finding]


@dataclass(frozen=True, eq=False)
class _ArmPair:
    """An arm of both runs.

    several         whether the pack has several instances
    never_err       whether equal repetitions are copies
    is_repeatable   whether nothing in a trial is left to chance
    factors         the settings in which the arms differ
    """

    before: Arm
    after: Arm
    several: bool
    never_err: bool
    is_repeatable: bool
    factors: tuple[str, ...]

    @cached_property
    def is_equal(self) -> bool:
        """Whether all compared values are equal in every trial. An error is equal to nothing, since it says nothing."""
        columns = ["outcome", *_damages(self.before), COLUMNS["tokens"], COLUMNS["cost"], COLUMNS["seconds"]]
        unknown = dict.fromkeys(columns[1:], -1)
        first, second = (
            dict(zip(pairs_of(arm.trials), arm.trials[columns].fillna(unknown).itertuples(index=False, name=None), strict=True))
            for arm in (self.before, self.after)
        )
        return first == second and not self.after.usable.empty

    @property
    def has_dollars(self) -> bool:
        return bool(self.before.by_pair(COLUMNS["cost"]) and self.after.by_pair(COLUMNS["cost"]))

    def values(self, criterion: Criterion) -> tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]]:
        """Return both arms' values, and whether what differs between them had an occasion to act. Their pairs are of what
        stands together over all arms, and the trial: the instance and the repetition, or each repetition by itself if the pack
        has one instance."""
        arms = (self.before, self.after)
        if self.never_err:
            arms = _without_copies(*arms, COLUMNS.get(criterion, "outcome"))
        before, after = ({self._unit(pair): value for pair, value in _values(arm, criterion)} for arm in arms)
        acted = {self._unit(pair) for pair in self._pairs_with_occasion}
        return before, after, {pair: pair in acted for pair in before if pair in after}

    @cached_property
    def _pairs_with_occasion(self) -> frozenset[Pair]:
        trials = [arm.trials[factor_could_act(arm.trials, self.factors)] for arm in (self.before, self.after)]
        return frozenset(pair for of_arm in trials for pair in pairs_of(of_arm))

    def _unit(self, pair: Pair) -> Pair:
        instance, repetition = pair
        return (f"{self.before.condition.scenario}/{instance if self.several else repetition}", repetition)

    def comparison(self, rows: tuple[ArmDifference, ...]) -> ArmComparison:
        names = (self.before.architecture, self.after.architecture)
        return ArmComparison(self.before.condition, self.after.condition, names, rows, self.factors)


def _values(arm: Arm, criterion: Criterion) -> Iterator[tuple[Pair, Any]]:
    """Yield the value of each pair: whether it was solved (None for an error), what it damaged by kind, or what it spent."""
    if criterion == "solved":
        graded = arm.graded[:0] if arm.is_instrument else arm.graded
        for pair, outcome in zip(pairs_of(graded), graded["outcome"].tolist(), strict=True):
            yield pair, None if outcome == "error" else outcome == "solved"
    elif criterion == "damage":
        counts = arm.usable[list(_damages(arm))].to_dict("records")
        for pair, of_trial in zip(pairs_of(arm.usable), counts, strict=True):
            yield pair, {str(kind).removeprefix(PREFIX): n for kind, n in of_trial.items() if n is not pd.NA}
    else:
        yield from arm.by_pair(COLUMNS[criterion]).items()


def _damages(arm: Arm) -> list[str]:
    """Return the columns of damage in which the arm's trials have values. Without a world there are none."""
    columns = [metric.name for metric in METRICS if metric.harm and metric.name.startswith(PREFIX)]
    return [column for column in columns if column in arm.usable and arm.usable[column].notna().any()]


def _without_copies(before: Arm, after: Arm, column: str) -> tuple[Arm, Arm]:
    """Return both arms with one repetition of each instance whose repetitions all have the same values in both arms."""
    values = [dict(zip(pairs_of(arm.trials), arm.trials[column].tolist(), strict=True)) for arm in (before, after)]
    pairs = [pair for pair in values[0] if pair in values[1]]
    counts = first_of_copies([instance for instance, _ in pairs], [[of_arm[pair] for of_arm in values] for pair in pairs])
    copies = {pair for pair, counts_here in zip(pairs, counts, strict=True) if not counts_here}
    return _but(before, copies), _but(after, copies)


def _but(arm: Arm, pairs: Collection[Pair]) -> Arm:
    trials, usable = (rows[[pair not in pairs for pair in pairs_of(rows)]] for rows in (arm.trials, arm.usable))
    return replace(arm, trials=trials, usable=usable)


@dataclass(frozen=True)
class _Judge:
    gate: Margins
    allowed: Mapping[str, int]
    history: EarlierRuns

    def rows(self, pairs: Sequence[_ArmPair]) -> tuple[ArmDifference, ...]:
        """Return these arms, taken together, by each criterion that they have. A gate of which they have none is kept."""
        lacking = set[Criterion]()
        if all(pair.before.condition.plan == FAULT_FREE for pair in pairs):
            lacking |= {"price", "first_round"}
        if not all(pair.has_dollars for pair in pairs):
            lacking |= {"cost"}
        if not any(_damages(pair.before) for pair in pairs):
            lacking |= {"damage"}
        if set(self.gate) <= lacking:
            lacking -= set(self.gate)
        return tuple(self._row(criterion, pairs) for criterion in CRITERIA if criterion not in lacking)

    def _row(self, criterion: Criterion, pairs: Sequence[_ArmPair]) -> ArmDifference:
        before, after, acted = _join([pair.values(criterion) for pair in pairs])
        change, difference = self._change(criterion, before, after)
        differ = pairs_that_could_differ(before, after, {pair for pair, had in acted.items() if had})
        rests_on = VerdictEvidence((), len(acted), len(differ), len({unit for unit, _ in differ}))
        if change.pairs and (why := reason_against_verdict(rests_on, named=None)):
            change = replace(change, low=None, high=None, p=None, why=why)
        finding = finding_of(change, change.p)
        reason = _reason(change, finding)
        if (change.pairs or 0) < FEWEST.get(criterion, 0):
            finding = "not measured"
            reason = f"both repaired a failure in {change.pairs or 0} pairs, which is too few"
            if criterion == "cost":
                reason = "no pair has known dollars: give the models of both runs price_in and price_out"
            change, difference = replace(change, before=None, after=None, low=None, high=None), statistics.mean_of(())
        elif change.pairs and not differ:
            pass
        elif criterion == "damage" and all(pair.is_repeatable for pair in pairs):
            finding, reason = compare_damage(before, after, self.allowed)
        elif all(pair.is_equal for pair in pairs):
            finding, reason = "equal", REASONS["equal"]
        unpaired = len(before) + len(after) - 2 * len(before.keys() & after.keys())
        return ArmDifference(criterion, criterion in self.gate, change, difference, unpaired, finding, reason)

    def _change(
        self, criterion: Criterion, before: Mapping[Pair, Any], after: Mapping[Pair, Any]
    ) -> tuple[MeasureChange, Mean | RateDifference]:
        """Return the change of one criterion over the pairs, judged by the gate's margin, and the estimated difference. `noise`
        is how much the criterion differed between earlier runs."""
        margin = self.gate.get(criterion, GATE.get(criterion, MARGIN))
        if criterion == "solved":
            return compare_rates(before, after, margin, more_is_good=True)
        if criterion == "damage":
            first, second = ({pair: any(harms.values()) for pair, harms in side.items()} for side in (before, after))
            return compare_rates(first, second, margin, more_is_good=False)
        noise = self.history.noise.get(criterion, ())
        return compare_amounts(before, after, margin, measure_of(COLUMNS[criterion]), noise=noise)


def _join(pairs: Sequence[tuple[Mapping[Pair, Any], ...]]) -> tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]]:
    """Return the values of several arms under distinct pairs: the trials of a unit are numbered anew."""
    numbers = Counter[str]()
    joined: tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]] = ({}, {}, {})
    for sides in pairs:
        for pair in dict.fromkeys([*sides[0], *sides[1]]):
            numbers[pair[0]] += 1
            for known, side in zip(joined, sides, strict=True):
                known.update({(pair[0], numbers[pair[0]]): side[pair]} if pair in side else {})
    return joined
