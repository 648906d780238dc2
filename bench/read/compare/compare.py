"""Decide whether a run is worse than another: over all arms, and then arm by arm. `bench compare` uses this.

The measures are what is solved and, in worlds, in how many trials something is damaged; then what is spent: one failure's
price, or its first round if the price is not measured; the whole trial's dollars, or its tokens if dollars are not known; and
its seconds. `bench.read.compare.verdict` says what they come to.

The margin is a share of the smaller of both runs' means; for rates it is in points. An arm that is equal in every pair, by
outcome, damage, tokens, dollars and seconds, is equal: there is nothing to infer.

Over all arms, trials of one instance stand together; if a pack has only one, trials of one repetition do, because they met the
same draws. So of arms that fail together, no two count for each other.

Seconds are of calls and waiting: framework time depends on this machine, and a replay has none. Errors count against either
finding on what is solved. For simulated models that never err, repetitions of an instance with the same result in both runs are
copies, and count once (`bench.read.analysis.copies`). If A and B differ in a setting that had no occasion to act in any pair,
that they are equal shows nothing, and is inconclusive (`bench.read.analysis.factors`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import pandas as pd

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Condition, arms_of, instances_by_scenario, pairs_of, require_receipts
from bench.read.analysis.copies import counted_once, never_errs
from bench.read.analysis.factors import ArmName, VerdictEvidence, could_differ, factors_between, had_occasion, refusal
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import LEAST_PRICED, METRICS, measure_of
from bench.read.analysis.pairing import PairedRuns, paired_runs
from bench.read.analysis.per_solved import PerSolved, per_solved
from bench.read.analysis.statistics import Mean, Pair, RateDifference
from bench.read.compare.verdict import (
    BY_CHANCE,
    EQUAL,
    REASONS,
    ComparisonFinding,
    ComparisonVerdict,
    Contrast,
    JudgedMeasure,
    Level,
    contrast_of_amounts,
    contrast_of_rates,
    counterexamples,
    finding_of,
    proven,
    verdict_of,
)
from bench.record.config import FAULT_FREE

Criterion = Literal["solved", "damage", "price", "first_round", "cost", "tokens", "seconds"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
LEVELS: tuple[tuple[Criterion, ...], ...] = (("solved", "damage"), ("price", "first_round", "cost", "tokens", "seconds"))
"""The levels, in the order in which they decide."""
INSTEAD: Mapping[Criterion, Criterion] = {"first_round": "price", "tokens": "cost"}
"""A criterion -> the criterion that decides instead, if that is measured."""
COLUMNS: Mapping[Criterion, str] = {
    "price": "price_tokens",
    "first_round": "first_round_tokens",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "on_the_clock",
}
FEWEST: Mapping[Criterion, int] = {"price": LEAST_PRICED, "first_round": 1, "cost": 1}
"""Under this many pairs the criterion is not measured."""
PREFIX = "damage_"
"""What the columns of damage begin with."""


@dataclass(frozen=True)
class ArmDifference:
    """The difference by one criterion in one arm, or in all arms together. `difference` is the second run's value minus the
    first run's.

    unpaired   values without a partner in the other run
    reason     why the finding is so
    needed     pairs that would decide, if the true difference were the observed one; None if that cannot be told
    """

    criterion: Criterion
    contrast: Contrast
    difference: Mean | RateDifference
    unpaired: int
    finding: ComparisonFinding
    reason: str
    needed: int | None = None

    @property
    def judged(self) -> JudgedMeasure:
        return JudgedMeasure(self.finding, self.contrast.alike)


@dataclass(frozen=True)
class ArmComparison:
    """One arm of the first run and its counterpart in the second, by each criterion. `dollars` is the cost of a solved task in
    each run, over the compared trials."""

    first: Condition
    second: Condition
    architectures: tuple[str, str]
    rows: tuple[ArmDifference, ...]
    dollars: tuple[PerSolved, PerSolved]

    @cached_property
    def verdict(self) -> ComparisonVerdict:
        return verdict_of(Level([row.judged for row in rows], ()) for rows in by_levels(self.rows))

    def criteria(self, finding: ComparisonFinding) -> list[Criterion]:
        return [row.criterion for row in self.rows if row.finding == finding]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of two `runs`, with only the trials that were compared. The second run is judged by the first.

    overall   all arms together, by each criterion
    """

    runs: PairedRuns
    margin: float
    overall: tuple[ArmDifference, ...]
    arms: tuple[ArmComparison, ...]

    @cached_property
    def verdict(self) -> ComparisonVerdict:
        of_arms = [by_levels(arm.rows) for arm in self.arms] if len(self.arms) > 1 else []
        return verdict_of(
            Level([row.judged for row in rows], [row.finding for arm in of_arms for row in arm[place]])
            for place, rows in enumerate(by_levels(self.overall))
        )

    @property
    def priced(self) -> tuple[ArmComparison, ...]:
        """The arms with known dollars in both runs."""
        return tuple(arm for arm in self.arms if all(amount.spent is not None for amount in arm.dollars))

    @property
    def summary(self) -> str:
        """The verdict, and the measures that are better, worse or in doubt. If a measure differs only in some arms, the
        sentence has their number."""
        sentences = []
        overall = [row for rows in by_levels(self.overall) for row in rows]
        for word, finding in (("better in", "better"), ("worse in", "worse"), ("for and against in", "trade-off")):
            names = [_named(row) for row in overall if row.finding == finding]
            counts = Counter(
                row.criterion for arm in self.arms for rows in by_levels(arm.rows) for row in rows if row.finding == finding
            )
            known = {row.criterion for row in overall if row.finding == finding}
            names += [f"{name} ({k} of {len(self.arms)} arms)" for name, k in counts.items() if name not in known]
            sentences += [f"{word} {', '.join(names)}"] if names else []
        doubtful = [row.criterion for row in overall if row.finding in ("inconclusive", "no worse", "no better")]
        sentences += [f"in doubt: {', '.join(doubtful)}"] if doubtful else []
        return f"{self.verdict}: {'; '.join(sentences)}" if sentences else self.verdict


def by_levels(rows: Sequence[ArmDifference]) -> list[list[ArmDifference]]:
    """Return the measured rows of each level, without rows that another measured row replaces."""
    measured = [row for row in rows if row.finding != "not measured"]
    criteria = {row.criterion for row in measured}
    deciding = [row for row in measured if INSTEAD.get(row.criterion) not in criteria]
    return [[row for row in deciding if row.criterion in level] for level in LEVELS]


def _named(row: ArmDifference) -> str:
    return (
        f"{row.criterion} ({row.reason})" if row.criterion == "damage" and row.reason not in REASONS.values() else row.criterion
    )


def compare(
    first: Run,
    second: Run,
    margin: float,
    criteria: Sequence[Criterion] = CRITERIA,
    whole: bool = False,
    allowed: Mapping[str, int] | None = None,
) -> Comparison:
    """Compare `second` with `first` by what both share. With `whole`, runs that do not share everything are refused.

    Two runs with one model each, or one architecture each, are compared across these. `allowed`: kind of damage -> how many
    effects more count as none. Raises ResultsError if the runs cannot be compared, or if a fault of either has no receipt.
    """
    for run in (first, second):
        require_receipts(run)
    runs = paired_runs(first, second, whole)
    before, after = (
        arms_of(replace(run, trials=run.trials.assign(on_the_clock=run.trials["api_seconds"] + run.trials["waiting_seconds"])))
        for run in (runs.first, runs.second)
    )
    instances = instances_by_scenario(runs.first)
    pairs: list[_ArmPair] = []
    for condition, named in before.items():
        models = (condition.model, runs.counterpart("model", condition.model))
        of_model = list(zip((runs.first, runs.second), models, strict=True))
        never_err, repeatable = (all(test(*each) for each in of_model) for test in (never_errs, _is_repeatable))
        for name, arm in named.items():
            other = after[replace(condition, model=models[1])][runs.counterpart("architecture", name)]
            names = (ArmName(name, models[0], condition.plan), ArmName(other.architecture, models[1], condition.plan))
            factors = factors_between(runs.first, *names, runs.second)
            pairs.append(_ArmPair(arm, other, len(instances[condition.scenario]) > 1, never_err, repeatable, factors))
    judge = _Judge(margin, criteria, allowed or {})
    rows = _corrected([judge.rows([pair]) for pair in pairs])
    arms = tuple(pair.comparison(of_pair) for pair, of_pair in zip(pairs, rows, strict=True))
    return Comparison(runs, margin, judge.rows(pairs), arms)


def _is_repeatable(run: Run, model: str) -> bool:
    """Return whether a rerun of a trial gives the same replies: they are simulated, on declared draws, or recorded."""
    return run.timings.get(model, frozenset()) <= {"simulated", "recorded"}


def _corrected(arms: Sequence[tuple[ArmDifference, ...]]) -> list[tuple[ArmDifference, ...]]:
    """Return the rows of the arms after a correction for their number: no arm is better or worse if that could be chance among
    so many arms."""
    every = [row for rows in arms for row in rows if row.criterion != "damage" and row.finding != "not measured"]
    holds = proven([row.contrast for row in every])
    chance = {id(row) for row, held in zip(every, holds, strict=True) if not held and row.finding in ("better", "worse")}

    def corrected(row: ArmDifference) -> ArmDifference:
        return replace(row, finding=finding_of(row.contrast, is_proven=False), reason=BY_CHANCE) if id(row) in chance else row

    return [tuple(map(corrected, rows)) for rows in arms] if len(arms) > 1 else list(arms)


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
        acted = {self._unit(pair) for pair in self._acted}
        return before, after, {pair: pair in acted for pair in before if pair in after}

    @cached_property
    def _acted(self) -> frozenset[Pair]:
        trials = [arm.trials[had_occasion(arm.trials, self.factors)] for arm in (self.before, self.after)]
        return frozenset(pair for of_arm in trials for pair in pairs_of(of_arm))

    def _unit(self, pair: Pair) -> Pair:
        instance, repetition = pair
        return (f"{self.before.condition.scenario}/{instance if self.several else repetition}", repetition)

    def comparison(self, rows: tuple[ArmDifference, ...]) -> ArmComparison:
        arms = (self.before, self.after)
        dollars = (per_solved(arms[0].trials, COLUMNS["cost"]), per_solved(arms[1].trials, COLUMNS["cost"]))
        names = (arms[0].architecture, arms[1].architecture)
        return ArmComparison(arms[0].condition, arms[1].condition, names, rows, dollars)


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
    counts = counted_once([instance for instance, _ in pairs], [[of_arm[pair] for of_arm in values] for pair in pairs])
    copies = {pair for pair, counts_here in zip(pairs, counts, strict=True) if not counts_here}
    return _but(before, copies), _but(after, copies)


def _but(arm: Arm, pairs: Collection[Pair]) -> Arm:
    trials, usable = (rows[[pair not in pairs for pair in pairs_of(rows)]] for rows in (arm.trials, arm.usable))
    return replace(arm, trials=trials, usable=usable)


@dataclass(frozen=True)
class _Judge:
    margin: float
    criteria: Sequence[Criterion]
    allowed: Mapping[str, int]

    def rows(self, pairs: Sequence[_ArmPair]) -> tuple[ArmDifference, ...]:
        """Return these arms, taken together, by each criterion that is asked for and that they have."""
        asked = set(self.criteria)
        if all(pair.before.condition.plan == FAULT_FREE for pair in pairs):
            asked -= {"price", "first_round"}
        if len(asked) > 1 and not all(pair.has_dollars for pair in pairs):
            asked -= {"cost"}
        if not any(_damages(pair.before) for pair in pairs):
            asked -= {"damage"}
        return tuple(self._row(criterion, pairs) for criterion in CRITERIA if criterion in asked)

    def _row(self, criterion: Criterion, pairs: Sequence[_ArmPair]) -> ArmDifference:
        before, after, acted = _joined([pair.values(criterion) for pair in pairs])
        contrast, difference = self._contrast(criterion, before, after)
        differ = could_differ(before, after, {pair for pair, had in acted.items() if had})
        rests_on = VerdictEvidence((), len(acted), len(differ), len({unit for unit, _ in differ}))
        if contrast.pairs and (why := refusal(rests_on, named=None)):
            contrast = replace(contrast, low=None, high=None, p=None, why=why)
        finding: ComparisonFinding = finding_of(contrast)
        reason = contrast.why or REASONS[finding]
        if (contrast.pairs or 0) < FEWEST.get(criterion, 0):
            finding = "not measured"
            reason = f"both repaired a failure in {contrast.pairs or 0} pairs, which is too few"
            if criterion == "cost":
                reason = "no pair has known dollars: give the models of both runs price_in and price_out"
            contrast, difference = replace(contrast, before=None, after=None, low=None, high=None), statistics.mean_of(())
        elif contrast.pairs and not differ:
            pass
        elif criterion == "damage" and all(pair.is_repeatable for pair in pairs):
            finding, reason = counterexamples(before, after, self.allowed)
        elif all(pair.is_equal for pair in pairs):
            finding, reason = "equal", EQUAL
        needed = None
        if (
            finding in ("inconclusive", "no worse", "no better")
            and isinstance(difference, Mean)
            and difference.mean is not None
        ):
            distance = abs(difference.mean) - contrast.margin
            required = statistics.required_pairs(distance, difference)
            needed = required.cautious if required else None
        unpaired = len(before) + len(after) - 2 * len(before.keys() & after.keys())
        return ArmDifference(criterion, contrast, difference, unpaired, finding, reason, needed)

    def _contrast(
        self, criterion: Criterion, before: Mapping[Pair, Any], after: Mapping[Pair, Any]
    ) -> tuple[Contrast, Mean | RateDifference]:
        if criterion == "solved":
            return contrast_of_rates(before, after, self.margin, more_is_good=True)
        if criterion == "damage":
            first, second = ({pair: any(harms.values()) for pair, harms in side.items()} for side in (before, after))
            return contrast_of_rates(first, second, self.margin, more_is_good=False)
        return contrast_of_amounts(before, after, self.margin, measure_of(COLUMNS[criterion]))


def _joined(pairs: Sequence[tuple[Mapping[Pair, Any], ...]]) -> tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]]:
    """Return the values of several arms under distinct pairs: the trials of a unit are numbered anew."""
    numbers = Counter[str]()
    joined: tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]] = ({}, {}, {})
    for sides in pairs:
        for pair in dict.fromkeys([*sides[0], *sides[1]]):
            numbers[pair[0]] += 1
            for known, side in zip(joined, sides, strict=True):
                known.update({(pair[0], numbers[pair[0]]): side[pair]} if pair in side else {})
    return joined
