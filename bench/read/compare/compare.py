"""Compare two runs by a gate: a few measures, each over the pairs of all arms together, decide whether the second run is
worse.

`compare(first, second)` compares runs, or parts of runs (`bench.read.analysis.pairing.part_of_run`). The gate's owner names
the measures and how much worse each may be (`DEFAULT_GATE`); `bench.read.compare.verdict` makes the verdict. All other
measures, and the arms by themselves, are beside the gate: they are shown, corrected together, and decide nothing.

A margin is a share of the smaller of both runs' means; for rates it is in points. An arm whose outcomes, damage, tokens,
dollars and seconds are equal in every pair is equal: there is nothing to infer.

Trials of one instance are one unit; if a pack has a single instance, trials of one repetition are, because they met the same
random draws. So arms that fail together do not count several times.

Seconds are those of calls and waiting: framework time depends on this machine, and a replay has none. Errors count against
every finding on what is solved. For simulated models that never err, repetitions of an instance with the same result in both
runs are copies, and count once (`bench.read.analysis.copies`). If A and B differ in a setting that could not act in any pair,
equal results show nothing, and the finding is undecided (`bench.read.analysis.factors`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args

import pandas as pd

from bench.common.errors import ConfigError, nearest
from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, Condition, arms_of, instances_by_scenario, pairs_of, require_receipts
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
DEFAULT_GATE: Margins = {"damage": 0.0, "solved": 0.05, "tokens": 0.1, "price": 0.1}
DEFAULT_MARGIN = 0.1
"""The margin of a measure that DEFAULT_GATE does not have."""
MIN_PAIRED_SHARE = 0.9
"""If a smaller share of A's trials has a partner in B, the verdict on B is undecided at best."""
COLUMN_OF: Mapping[Criterion, str] = {
    "price": "price_tokens",
    "first_round": "first_round_tokens",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "on_the_clock",
}
MIN_PAIRS: Mapping[Criterion, int] = {"price": MIN_PRICED_TRIALS, "first_round": 1, "cost": 1}
"""Criterion -> the least number of pairs with which it is measured."""
DAMAGE_PREFIX = "damage_"
"""The beginning of the names of the columns of damage."""


def gate_of(texts: Sequence[str]) -> Margins:
    """Return the gate, measure -> margin, that texts like `tokens` or `tokens=0.2` describe; the default gate for no texts.
    Raises ConfigError for an unknown measure, or a margin that is not from 0 to 1."""
    gate: dict[str, float] = {}
    for text in texts:
        name, has_margin, margin = text.partition("=")
        criterion = next((each for each in CRITERIA if each == name), None)
        if criterion is None:
            raise ConfigError(f"unknown measure '{name}': {nearest(name, CRITERIA)}")
        try:
            gate[criterion] = float(margin) if has_margin else DEFAULT_GATE.get(criterion, DEFAULT_MARGIN)
        except ValueError:
            gate[criterion] = -1.0  # refused below
        if not 0 <= gate[criterion] <= 1:
            raise ConfigError(f"--measure {text}: the margin is a number from 0 to 1, as in --measure {name}=0.1")
    return gate or DEFAULT_GATE


@dataclass(frozen=True)
class ArmDifference:
    """The difference by one criterion in one arm, or in all arms together. `difference` is the second run's value minus the
    first run's.

    gates        whether the criterion is one of the gate, on which the verdict rests
    unpaired     values without a partner in the other run
    reason       the reason of the finding, in words
    is_counted   whether the finding rests on counts of damaged effects, which the reason names, and on no test
    """

    criterion: Criterion
    gates: bool
    change: MeasureChange
    difference: Mean | RateDifference
    unpaired: int
    finding: ComparisonFinding
    reason: str
    is_counted: bool = False


@dataclass(frozen=True)
class ArmComparison:
    """One arm of the first run and its counterpart in the second, compared by each criterion. These findings are beside the
    gate. `factors` are the settings in which the arms differ."""

    first: Condition
    second: Condition
    architectures: tuple[str, str]
    rows: tuple[ArmDifference, ...]
    factors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of two runs, A and B: B is judged by A. `runs` has only the trials that were compared.

    overall   all arms together, by each criterion: those of the gate, and those beside it
    usable    the number of pairs of which both trials were graded or gave up
    missing   what B lacks of A, if that keeps B from being judged, in words
    dollars   the cost of a solved task in A and in B, over the compared trials
    flaky     names of trials that ended in different ways in A and in earlier runs like A
    """

    runs: PairedRuns
    gate: Margins
    overall: tuple[ArmDifference, ...]
    arms: tuple[ArmComparison, ...]
    usable: int
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
        verdict = verdict_of(measures, bool(self.missing))
        return "no worse" if verdict == "equal" and self.usable < self.runs.trials else verdict

    @property
    def factors(self) -> tuple[str, ...]:
        """The settings in which A and B differ in any arm. If two architectures of one run are compared, the aspects in which
        these differ come first."""
        architectures = self.runs.counterparts.get(ARCHITECTURE)
        aspects = aspects_between(self.runs.first, *architectures) if architectures else ()
        factors = dict.fromkeys(factor for arm in self.arms for factor in arm.factors)
        return (*aspects, *(factor for factor in factors if not aspects or factor != ARCHITECTURE))


@dataclass(frozen=True)
class EarlierRuns:
    """How much runs like A differ by chance.

    noise   criterion -> the differences between A and each earlier run, by unit
    flaky   names of trials whose outcomes differ among these runs
    """

    noise: Mapping[Criterion, Sequence[float]] = field(default_factory=dict)
    flaky: tuple[str, ...] = ()


def compare(
    first: Run,
    second: Run,
    gate: Margins = DEFAULT_GATE,
    whole: bool = False,
    allowed: Mapping[str, int] | None = None,
    earlier: Sequence[Run] = (),
) -> Comparison:
    """Compare `second` with `first` by what both share.

    Two runs with one model each, or one architecture each, are compared across these.

    Args:
        first: The run A, by which B is judged.
        second: The run B.
        gate: The measures that decide, with their margins.
        whole: Whether runs that do not share everything are refused.
        allowed: Kind of damage -> how many more effects B may damage than A.
        earlier: Earlier runs of the same experiment as A, which show how much is chance.

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
    rows_by_arm = [overall]
    if len(pairs) > 1:
        rows_by_arm = [judge.rows([pair]) for pair in pairs]
        beside_gate = [row for row in overall if not row.gates]
        # The corrected rows come in this order: those of all arms together that are beside the gate, then those of each arm.
        corrected = iter(_correct([*beside_gate, *chain.from_iterable(rows_by_arm)]))
        overall = tuple(row if row.gates else next(corrected) for row in overall)
        rows_by_arm = [tuple(next(corrected) for _ in rows) for rows in rows_by_arm]
    arms = tuple(pair.comparison(rows) for pair, rows in zip(pairs, rows_by_arm, strict=True))
    dollars = (spent_per_solved(runs.first.trials, COLUMN_OF["cost"]), spent_per_solved(runs.second.trials, COLUMN_OF["cost"]))
    usable = sum(len(pair.usable_pairs) for pair in pairs)
    return Comparison(runs, gate, overall, arms, usable, _missing(runs, usable), dollars, judge.history.flaky)


def _arm_pairs(runs: PairedRuns) -> list[_ArmPair]:
    """Return each arm of the first run with its counterpart in the second."""

    def arms_with_seconds(run: Run) -> Arms:
        seconds = run.trials["api_seconds"] + run.trials["waiting_seconds"]
        return arms_of(replace(run, trials=run.trials.assign(**{COLUMN_OF["seconds"]: seconds})))

    before, after = arms_with_seconds(runs.first), arms_with_seconds(runs.second)
    instances = instances_by_scenario(runs.first)
    pairs: list[_ArmPair] = []
    for condition, by_architecture in before.items():
        model, other_model = condition.model, runs.counterpart("model", condition.model)
        never_err = is_error_free(runs.first, model) and is_error_free(runs.second, other_model)
        is_repeatable = _is_repeatable(runs.first, model) and _is_repeatable(runs.second, other_model)
        for name, arm in by_architecture.items():
            counterpart = after[replace(condition, model=other_model)][runs.counterpart("architecture", name)]
            names = (ArmName(name, model, condition.plan), ArmName(counterpart.architecture, other_model, condition.plan))
            factors = factors_between(runs.first, *names, runs.second)
            has_several = len(instances[condition.scenario]) > 1
            pairs.append(_ArmPair(arm, counterpart, has_several, never_err, is_repeatable, factors))
    return pairs


def _is_repeatable(run: Run, model: str) -> bool:
    """Whether a rerun of a trial gives the same replies, because they are recorded, or simulated with declared random draws."""
    return run.timings.get(model, frozenset()) <= {"simulated", "recorded"}


def _missing(runs: PairedRuns, usable: int) -> tuple[str, ...]:
    """Return in words what B lacks of A: whole arms, or more than a tenth of the pairs."""
    pairs = len(runs.first.trials)
    missing = [f"{len(runs.absent)} of {runs.arms} arms of A: {', '.join(runs.absent)}"] if runs.absent else []
    if pairs < MIN_PAIRED_SHARE * runs.trials:
        missing.append(f"{runs.trials - pairs} of {runs.trials} trials of A have no partner in B")
    if not missing and usable < MIN_PAIRED_SHARE * pairs:
        missing.append(f"only {usable} of {pairs} pairs can be used")
    return tuple(missing)


def _history(first: Run, earlier: Sequence[Run]) -> EarlierRuns:
    """Return the differences between `first` and each earlier run like it, and the trials whose outcomes differ among these
    runs."""
    noise: dict[Criterion, list[float]] = {}
    outcomes: dict[tuple[object, ...], set[str]] = {}
    for run in (first, *earlier):
        keys = [run.trials[name].tolist() for name in ("scenario", "instance", "architecture", "model", "plan", "repetition")]
        for *trial, outcome in zip(*keys, run.trials["outcome"].tolist(), strict=True):
            outcomes.setdefault(tuple(trial), set()).add(outcome)
    for run in earlier:
        require_receipts(run)
        pairs = _arm_pairs(paired_runs(first, run, whole=False))
        for criterion in COLUMN_OF:
            before, after, _ = _join([pair.values(criterion) for pair in pairs])
            noise.setdefault(criterion, []).extend(statistics.differences_of(after, before))
    flaky = [" ".join(str(name) for name in trial if name) for trial, endings in outcomes.items() if len(endings) > 1]
    return EarlierRuns(noise, tuple(flaky))


def _correct(rows: Sequence[ArmDifference]) -> list[ArmDifference]:
    """Return rows beside the gate with findings that are corrected for the number of their tests. A row without a test stays as
    it is: of damage, or of a measure that is equal or not measured."""
    has_test = [row.criterion != "damage" and row.finding not in ("not measured", "equal") for row in rows]
    adjusted = holm_corrected([row.change.p if tested else None for row, tested in zip(rows, has_test, strict=True)])
    family = sum(p is not None for p in adjusted)

    def corrected(row: ArmDifference, p: float | None) -> ArmDifference:
        finding = finding_of(row.change, p)
        return replace(row, finding=finding, reason=_reason_text(row.change, finding, family))

    return [corrected(row, p) if tested else row for row, tested, p in zip(rows, has_test, adjusted, strict=True)]


def _reason_text(change: MeasureChange, finding: ComparisonFinding, family: int = 1) -> str:
    """Return the reason of a finding in words. `family` is the number of tests that are corrected together."""
    own_reason = (change.why or floor_reason(change, family)) if finding == "undecided" else ""
    return own_reason or REASONS[finding]


@dataclass(frozen=True, eq=False)
class _ArmPair:
    """An arm of run A, and its counterpart in run B.

    several         whether the pack has several instances
    never_err       whether the models never err, so that equal repetitions are copies
    is_repeatable   whether a rerun of a trial gives the same replies
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
        """Whether all compared values are equal in every usable pair, and the other pairs ended in the same way. Arms without a
        usable pair are not equal, since an error says nothing, also beside an error."""
        columns = ["outcome", *_damages(self.before), COLUMN_OF["tokens"], COLUMN_OF["cost"], COLUMN_OF["seconds"]]
        unknown = dict.fromkeys(columns[1:], -1)
        first, second = (
            dict(zip(pairs_of(arm.trials), arm.trials[columns].fillna(unknown).itertuples(index=False, name=None), strict=True))
            for arm in (self.before, self.after)
        )
        return first == second and bool(self.usable_pairs)

    @property
    def usable_pairs(self) -> set[Pair]:
        """The pairs of which both trials were graded or gave up."""
        return {*pairs_of(self.before.usable)} & {*pairs_of(self.after.usable)}

    @property
    def has_dollars(self) -> bool:
        """Whether both arms have trials with known dollars."""
        return bool(self.before.by_pair(COLUMN_OF["cost"]) and self.after.by_pair(COLUMN_OF["cost"]))

    def values(self, criterion: Criterion) -> tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]]:
        """Return the values of both arms, and whether the factors that differ could act, each by (unit, repetition). A unit is
        an instance of the pack, or a repetition if the pack has one instance."""
        arms = (self.before, self.after)
        if self.never_err:
            arms = _without_copies(*arms, COLUMN_OF.get(criterion, "outcome"))
        before, after = ({self._in_unit(pair): value for pair, value in _values(arm, criterion)} for arm in arms)
        affected = {self._in_unit(pair) for pair in self._affected_pairs}
        return before, after, {pair: pair in affected for pair in before if pair in after}

    @cached_property
    def _affected_pairs(self) -> frozenset[Pair]:
        """The pairs in which the factors that differ could act, in either arm."""
        trials = [arm.trials[factor_could_act(arm.trials, self.factors)] for arm in (self.before, self.after)]
        return frozenset(chain.from_iterable(map(pairs_of, trials)))

    def _in_unit(self, pair: Pair) -> Pair:
        """Return (unit, repetition) for (instance, repetition). The unit's name has the pack's name."""
        instance, repetition = pair
        return (f"{self.before.condition.scenario}/{instance if self.several else repetition}", repetition)

    def comparison(self, rows: tuple[ArmDifference, ...]) -> ArmComparison:
        """Return the comparison of the two arms with these findings."""
        names = (self.before.architecture, self.after.architecture)
        return ArmComparison(self.before.condition, self.after.condition, names, rows, self.factors)


def _values(arm: Arm, criterion: Criterion) -> Iterator[tuple[Pair, Any]]:
    """Yield for each pair the value by a criterion: whether it was solved (None for an error), the number of damaged effects
    by kind, or the amount that was spent."""
    if criterion == "solved":
        graded = arm.graded[:0] if arm.is_instrument else arm.graded  # an instrument has no task to solve
        for pair, outcome in zip(pairs_of(graded), graded["outcome"].tolist(), strict=True):
            yield pair, None if outcome == "error" else outcome == "solved"
    elif criterion == "damage":
        counts = arm.usable[list(_damages(arm))].to_dict("records")
        for pair, of_trial in zip(pairs_of(arm.usable), counts, strict=True):
            yield pair, {str(kind).removeprefix(DAMAGE_PREFIX): n for kind, n in of_trial.items() if n is not pd.NA}
    else:
        yield from arm.by_pair(COLUMN_OF[criterion]).items()


def _damages(arm: Arm) -> list[str]:
    """Return the columns of damage in which the arm's trials have values. An arm without a world has none."""
    columns = [metric.name for metric in METRICS if metric.harm and metric.name.startswith(DAMAGE_PREFIX)]
    return [column for column in columns if column in arm.usable and arm.usable[column].notna().any()]


def _without_copies(before: Arm, after: Arm, column: str) -> tuple[Arm, Arm]:
    """Return both arms without copies: if all repetitions of an instance have the same values in both arms, only one
    remains."""
    first, second = (dict(zip(pairs_of(arm.trials), arm.trials[column].tolist(), strict=True)) for arm in (before, after))
    pairs = [pair for pair in first if pair in second]
    counted = first_of_copies([instance for instance, _ in pairs], [(first[pair], second[pair]) for pair in pairs])
    copies = {pair for pair, is_counted in zip(pairs, counted, strict=True) if not is_counted}
    return _without_pairs(before, copies), _without_pairs(after, copies)


def _without_pairs(arm: Arm, pairs: Collection[Pair]) -> Arm:
    """Return the arm without the trials of these pairs."""
    trials, usable = (rows[[pair not in pairs for pair in pairs_of(rows)]] for rows in (arm.trials, arm.usable))
    return replace(arm, trials=trials, usable=usable)


@dataclass(frozen=True)
class _Judge:
    """Judges arms by each criterion. `allowed`: kind of damage -> how many more damaged effects are allowed."""

    gate: Margins
    allowed: Mapping[str, int]
    history: EarlierRuns

    def rows(self, pairs: Sequence[_ArmPair]) -> tuple[ArmDifference, ...]:
        """Return the finding on these arms, taken together, by each criterion for which the arms have values. If they have
        values for no criterion of the gate, the gate's criteria are kept, as not measured."""
        unmeasured = set[Criterion]()
        if all(pair.before.condition.plan == FAULT_FREE for pair in pairs):
            unmeasured |= {"price", "first_round"}
        if not all(pair.has_dollars for pair in pairs):
            unmeasured |= {"cost"}
        if not any(_damages(pair.before) for pair in pairs):
            unmeasured |= {"damage"}
        if set(self.gate) <= unmeasured:
            unmeasured -= set(self.gate)
        return tuple(self._row(criterion, pairs) for criterion in CRITERIA if criterion not in unmeasured)

    def _row(self, criterion: Criterion, pairs: Sequence[_ArmPair]) -> ArmDifference:
        """Return the finding on these arms, taken together, by one criterion."""
        before, after, is_affected = _join([pair.values(criterion) for pair in pairs])
        change, difference = self._change(criterion, before, after)
        could_differ = pairs_that_could_differ(before, after, {pair for pair, affected in is_affected.items() if affected})
        evidence = VerdictEvidence((), len(is_affected), len(could_differ), len({unit for unit, _ in could_differ}))
        if change.pairs and (objection := reason_against_verdict(evidence, named=None)):
            change = replace(change, low=None, high=None, p=None, why=objection)
        finding, is_counted = finding_of(change, change.p), False
        reason = _reason_text(change, finding)
        if (change.pairs or 0) < MIN_PAIRS.get(criterion, 0):
            finding = "not measured"
            reason = f"both repaired a failure in {change.pairs or 0} pairs, which is too few"
            if criterion == "cost":
                reason = "no pair has known dollars: give the models of both runs price_in and price_out"
            change, difference = replace(change, before=None, after=None, low=None, high=None), statistics.mean_of(())
        elif change.pairs and not could_differ:
            pass  # the objection stays the reason: that the arms are equal shows nothing
        elif criterion == "damage" and all(pair.is_repeatable for pair in pairs):
            finding, reason = compare_damage(before, after, self.allowed)
            is_counted = True
        elif all(pair.is_equal for pair in pairs):
            usable, total = sum(len(pair.usable_pairs) for pair in pairs), sum(len(pair.before.trials) for pair in pairs)
            whole = REASONS["equal"]
            finding, reason = "equal", whole if usable == total else f"equal in the {usable} of {total} pairs that can be used"
        unpaired = len(before) + len(after) - 2 * len(before.keys() & after.keys())
        return ArmDifference(criterion, criterion in self.gate, change, difference, unpaired, finding, reason, is_counted)

    def _change(
        self, criterion: Criterion, before: Mapping[Pair, Any], after: Mapping[Pair, Any]
    ) -> tuple[MeasureChange, Mean | RateDifference]:
        """Return the change of one criterion over the pairs, with the gate's margin, and the estimated difference."""
        margin = self.gate.get(criterion, DEFAULT_GATE.get(criterion, DEFAULT_MARGIN))
        if criterion == "solved":
            return compare_rates(before, after, margin, more_is_good=True)
        if criterion == "damage":
            first, second = ({pair: any(harms.values()) for pair, harms in values.items()} for values in (before, after))
            return compare_rates(first, second, margin, more_is_good=False)
        noise = self.history.noise.get(criterion, ())
        return compare_amounts(before, after, margin, measure_of(COLUMN_OF[criterion]), noise=noise)


def _join(pairs: Sequence[tuple[Mapping[Pair, Any], ...]]) -> tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]]:
    """Return the values of several arms (`_ArmPair.values`) in one map each. The trials of a unit are numbered anew, so that
    trials of different arms have different pairs."""
    trials_of = Counter[str]()  # the number of a unit's trials so far
    joined: tuple[dict[Pair, Any], dict[Pair, Any], dict[Pair, Any]] = ({}, {}, {})
    for before, after, is_affected in pairs:
        for pair in {**before, **after}:
            unit, _ = pair
            trials_of[unit] += 1
            for target, values in zip(joined, (before, after, is_affected), strict=True):
                if pair in values:
                    target[unit, trials_of[unit]] = values[pair]
    return joined
