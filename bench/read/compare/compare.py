"""Is a run worse than another? `bench compare` decides it arm by arm, pair by pair.

An arm by one criterion:

    no worse       the 95% interval of the paired difference ends before the margin on the bad side
    better         it lies wholly beyond the margin, on the good side
    worse          it lies wholly beyond the margin, on the bad side
    inconclusive   neither
    not measured   a failure has no cost if none was repaired; a price is not measured under five pairs; dollars are known only
    if the config has prices

For tokens, dollars and seconds the margin is a share of the first run's mean. For the rate of solved trials it is in points. An
arm that is equal in every pair, by outcome, tokens, dollars and seconds, is no worse: there is nothing to infer.
If all differences are the same and not 0, the interval has no width. From six pairs on, their signs alone are no chance.

An arm by all criteria: the levels are checked in order. They are what is solved; what one failure costs, by its price, or by
its first round if the price is not measured; and what the whole trial costs, in dollars, or in tokens if dollars are not known,
and in seconds. In a level with several criteria an arm is worse if it is worse by any of them.

    worse          it is worse by a level, and better by none before it
    trade-off      it is worse by a level, and better by a level before it: for example, it solves more and costs more
    better         it is better by a level, worse by none, and every level before that one is settled
    no worse       it is worse by no level
    inconclusive   anything else

So an arm that solves fewer is worse, however cheap it is. If the runs are too short to tell what is solved, a dearer arm is
worse only if the difference in what is solved does not favour it. If both runs have prices, an arm that costs fewer dollars and
solves no fewer is a trade-off at worst, whatever its tokens and seconds: models are not paid in tokens.

A run is worse if an arm is, and no worse if all arms are, which needs no correction (an intersection-union test: Berger,
Technometrics 24, 1982). There is no correction for one of many arms being worse by chance.

Seconds are of calls and waiting: framework time depends on this machine, and a replay has none. Errors count against the second
run before it is no worse or better, and for it before it is worse. For simulated models that never err, repetitions of an
instance with the same result in both runs are copies, and count once (`bench.read.analysis.copies`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Condition, arms_of, pairs_of, require_receipts
from bench.read.analysis.copies import counted_once, never_errs
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import LEAST_PRICED
from bench.read.analysis.pairing import PairedRuns, paired_runs
from bench.read.analysis.per_solved import PerSolved, per_solved
from bench.read.analysis.statistics import Mean, Pair, RateDifference
from bench.record.config import FAULT_FREE

Criterion = Literal["solved", "price", "first_round", "cost", "tokens", "seconds"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
LEVELS: tuple[tuple[Criterion, ...], ...] = (("solved",), ("price", "first_round"), ("cost", "tokens", "seconds"))
"""The levels, in the order in which they decide."""
OF_A_FAILURE = LEVELS[1]
INSTEAD: Mapping[Criterion, Criterion] = {"first_round": "price", "tokens": "cost"}
"""A criterion -> the criterion that decides instead, if that is measured."""
ComparisonFinding = Literal["no worse", "better", "worse", "inconclusive", "not measured"]
ComparisonVerdict = Literal["worse", "inconclusive", "trade-off", "better", "no worse"]
VERDICTS: tuple[ComparisonVerdict, ...] = get_args(ComparisonVerdict)
"""The first of these that an arm has is the run's."""
COLUMNS: Mapping[Criterion, str] = {
    "price": "price_tokens",
    "first_round": "first_round_tokens",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "on_the_clock",
}
FEWEST: Mapping[Criterion, int] = {"price": LEAST_PRICED, "first_round": 1, "cost": 1}
"""Under this many pairs the criterion is not measured."""
ALIKE = 6
"""From this many pairs on, a difference that is the same in each is no chance: the signs alone have p = 2 / 2^6 = 0.03."""
EQUAL = "equal in every pair"
WITHIN = "the bad end of the interval is within the margin"


@dataclass(frozen=True)
class ArmDifference:
    """One arm by one criterion. `margin` is in the criterion's unit. `difference` is the second run's value less the first's.

    before, after   the means, or the rates of solved trials; None if there is none
    needed          pairs that would decide, if the true difference were the observed one; None if that cannot be told
    """

    criterion: Criterion
    before: float | None
    after: float | None
    difference: Mean | RateDifference
    margin: float
    pairs: int
    unpaired: int
    finding: ComparisonFinding
    reason: str
    needed: int | None = None

    @property
    def leans_good(self) -> bool:
        """Whether the observed difference favours the second run, even if by chance."""
        if isinstance(self.difference, Mean):
            return (self.difference.mean or 0.0) < 0
        return (self.difference.difference or 0.0) > 0


@dataclass(frozen=True)
class ArmComparison:
    """One arm of the first run and its counterpart, by each criterion. `dollars` is each one's cost of a solved task, over the
    trials that are compared."""

    first: Condition
    second: Condition
    architectures: tuple[str, str]
    rows: tuple[ArmDifference, ...]
    dollars: tuple[PerSolved, PerSolved]

    @cached_property
    def verdict(self) -> ComparisonVerdict:
        by_levels = self._by_levels()
        return "trade-off" if by_levels == "worse" and self._saves_dollars() else by_levels

    def _saves_dollars(self) -> bool:
        """Return whether the arm costs fewer dollars and solved no fewer."""
        row = {row.criterion: row for row in self.rows}
        if not {"solved", "cost"} <= row.keys() or row["cost"].finding != "better" or row["solved"].finding == "worse":
            return False
        solved = row["solved"].difference
        return isinstance(solved, RateDifference) and (solved.difference or 0.0) >= 0

    def _by_levels(self) -> ComparisonVerdict:
        better = doubtful = hopeful = measured = False
        for rows in filter(None, map(self._deciding, LEVELS)):
            findings, measured = {row.finding for row in rows}, True
            if "worse" in findings:
                return "trade-off" if better else "inconclusive" if hopeful else "worse"
            if "inconclusive" in findings:
                doubtful = doubtful or not better
                hopeful = hopeful or any(row.leans_good for row in rows if row.finding == "inconclusive")
            elif "better" in findings:
                better, hopeful = better or not doubtful, hopeful or doubtful
        return "better" if better else "inconclusive" if doubtful or not measured else "no worse"

    def _deciding(self, level: tuple[Criterion, ...]) -> list[ArmDifference]:
        """Return the measured rows of a level, without those that another measured row replaces."""
        rows = [row for row in self.rows if row.criterion in level and row.finding != "not measured"]
        measured = {row.criterion for row in rows}
        return [row for row in rows if INSTEAD.get(row.criterion) not in measured]

    def criteria(self, finding: ComparisonFinding) -> list[Criterion]:
        return [row.criterion for row in self.rows if row.finding == finding]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of two `runs`, with only the trials that were compared. The second run is judged by the first."""

    runs: PairedRuns
    margin: float
    arms: tuple[ArmComparison, ...]

    @property
    def verdict(self) -> ComparisonVerdict:
        verdicts = {arm.verdict for arm in self.arms}
        return next(verdict for verdict in VERDICTS if verdict in verdicts)

    @property
    def priced(self) -> tuple[ArmComparison, ...]:
        """The arms whose dollars are known in both runs."""
        return tuple(arm for arm in self.arms if all(amount.spent is not None for amount in arm.dollars))

    @property
    def summary(self) -> str:
        """The verdict, and the criteria by which the arms that decide it are better or worse."""
        deciding = [arm for arm in self.arms if arm.verdict == self.verdict]
        sentences = []
        for finding in ("better", "worse"):
            counts = Counter(criterion for arm in deciding for criterion in arm.criteria(finding))
            criteria = [name if k == len(deciding) else f"{name} ({k} of {len(deciding)} arms)" for name, k in counts.items()]
            sentences += [f"{finding} in {', '.join(criteria)}"] if criteria else []
        sentence = "; ".join(sentences)
        return f"{self.verdict}: {sentence}" if sentence else self.verdict


def compare(
    first: Run, second: Run, margin: float, criteria: Sequence[Criterion] = CRITERIA, whole: bool = False
) -> Comparison:
    """Compare `second` with `first` by what they share. `whole`: refuse runs that do not share all.

    Two runs with one model each, or one architecture each, are compared across these. Raises ResultsError if they cannot be
    compared, or if a fault of either has no receipt.
    """
    for run in (first, second):
        require_receipts(run)
    runs = paired_runs(first, second, whole)
    before, after = (
        arms_of(replace(run, trials=run.trials.assign(on_the_clock=run.trials["api_seconds"] + run.trials["waiting_seconds"])))
        for run in (runs.first, runs.second)
    )
    arms: list[ArmComparison] = []
    for condition, named in before.items():
        other = replace(condition, model=runs.counterpart("model", condition.model))
        never_err = never_errs(runs.first, condition.model) and never_errs(runs.second, other.model)
        for name, arm in named.items():
            other_name = runs.counterpart("architecture", name)
            pair = (arm, after[other][other_name])
            rows = tuple(_rows(*pair, margin, criteria, never_err))
            dollars = (per_solved(pair[0].trials, COLUMNS["cost"]), per_solved(pair[1].trials, COLUMNS["cost"]))
            arms.append(ArmComparison(condition, other, (name, other_name), rows, dollars))
    return Comparison(runs, margin, tuple(arms))


def _rows(before: Arm, after: Arm, margin: float, criteria: Sequence[Criterion], never_err: bool) -> Iterator[ArmDifference]:
    equal = _equal(before, after)
    for criterion in CRITERIA:
        if criterion not in criteria or (criterion in OF_A_FAILURE and before.condition.plan == FAULT_FREE):
            continue
        if criterion == "cost" and len(criteria) > 1 and not (before.by_pair("cost") and after.by_pair("cost")):
            continue
        arms = _without_copies(before, after, COLUMNS.get(criterion, "outcome")) if never_err else (before, after)
        row = _solved(*arms, margin) if criterion == "solved" else _spent(*arms, margin, criterion)
        measured = row.finding != "not measured"
        yield replace(row, finding="no worse", reason=EQUAL, needed=None) if equal and measured else row


def _without_copies(before: Arm, after: Arm, column: str) -> tuple[Arm, Arm]:
    """Return both arms with one repetition for each instance whose repetitions all have the same values in both."""
    values = [dict(zip(pairs_of(arm.trials), arm.trials[column].tolist(), strict=True)) for arm in (before, after)]
    pairs = [pair for pair in values[0] if pair in values[1]]
    counts = counted_once([instance for instance, _ in pairs], [[of_arm[pair] for of_arm in values] for pair in pairs])
    copies = {pair for pair, counts_here in zip(pairs, counts, strict=True) if not counts_here}
    return _but(before, copies), _but(after, copies)


def _but(arm: Arm, pairs: Collection[Pair]) -> Arm:
    trials, usable = (rows[[pair not in pairs for pair in pairs_of(rows)]] for rows in (arm.trials, arm.usable))
    return replace(arm, trials=trials, usable=usable)


def _equal(before: Arm, after: Arm) -> bool:
    """Return whether nothing that is compared differs in any trial. Errors are equal to nothing: they say nothing."""
    columns = ["outcome", COLUMNS["tokens"], COLUMNS["cost"], COLUMNS["seconds"]]
    unknown = {COLUMNS["cost"]: -1.0}
    first, second = (
        dict(zip(pairs_of(arm.trials), arm.trials[columns].fillna(unknown).itertuples(index=False, name=None), strict=True))
        for arm in (before, after)
    )
    return first == second and not after.usable.empty


# What is spent


def _spent(before: Arm, after: Arm, margin: float, criterion: Criterion) -> ArmDifference:
    column = COLUMNS[criterion]
    paired = after.less(before, column)
    difference = paired.difference
    in_both, _ = statistics.in_common(before.by_pair(column), after.by_pair(column))
    base = statistics.mean_of(statistics.by_unit(in_both).values()).mean
    allowed = margin * base if base is not None else 0.0
    finding, reason = _of_a_cost(difference, allowed)
    if difference.n < FEWEST.get(criterion, 0):
        finding, reason = "not measured", _lacking(criterion, difference.n)
        base, difference, allowed = None, statistics.mean_of(()), 0.0
    return ArmDifference(
        criterion=criterion,
        before=base,
        after=None if base is None or difference.mean is None else base + difference.mean,
        difference=difference,
        margin=allowed,
        pairs=paired.pairs,
        unpaired=paired.unpaired,
        finding=finding,
        reason=reason,
        needed=_needed(difference, allowed) if finding == "inconclusive" else None,
    )


def _lacking(criterion: Criterion, pairs: int) -> str:
    if criterion == "cost":
        return "no pair has known dollars: give the models of both runs price_in and price_out"
    return f"both repaired a failure in {pairs} pairs, which is too few"


def _of_a_cost(difference: Mean, margin: float) -> tuple[ComparisonFinding, str]:
    if difference.low is None or difference.high is None:
        return "inconclusive", "no trial was graded in both runs" if not difference.n else "one pair has no interval"
    if difference.low == difference.high == 0:
        return "no worse", EQUAL
    if difference.low == difference.high and difference.n < ALIKE:
        return "inconclusive", f"the same in each of {difference.n} pairs, of which {ALIKE} are needed"
    if difference.high < -margin:
        return "better", "the interval lies beyond the margin, on the good side"
    if difference.high <= margin:
        return "no worse", WITHIN
    if difference.low > margin:
        return "worse", "the interval lies beyond the margin"
    return "inconclusive", "the interval includes the margin"


def _needed(difference: Mean, margin: float) -> int | None:
    distance = None if difference.mean is None else difference.mean - margin
    pairs = statistics.required_pairs(distance, difference) if distance else None
    return pairs.cautious if pairs else None


# Solved


def _solved(before: Arm, after: Arm, margin: float) -> ArmDifference:
    difference = after.solved_less(before)
    at_worst = statistics.paired_rates(_by_pair(after, errors=False), _by_pair(before, errors=True))
    at_best = statistics.paired_rates(_by_pair(after, errors=True), _by_pair(before, errors=False))
    finding, reason = _of_a_rate(at_worst, at_best, margin)
    return ArmDifference(
        criterion="solved",
        before=before.solved().rate,
        after=after.solved().rate,
        difference=difference,
        margin=margin,
        pairs=difference.pairs,
        unpaired=difference.unpaired,
        finding=finding,
        reason=reason,
    )


def _by_pair(arm: Arm, errors: bool) -> dict[Pair, bool]:
    """Return whether each graded trial was solved. A trial that ended in an error counts as `errors`."""
    pairs = zip(pairs_of(arm.graded), arm.graded["outcome"].tolist(), strict=True)
    return {pair: errors if outcome == "error" else outcome == "solved" for pair, outcome in pairs}


def _of_a_rate(at_worst: RateDifference, at_best: RateDifference, margin: float) -> tuple[ComparisonFinding, str]:
    if at_worst.low is None or at_best.high is None:
        return "inconclusive", "no trial was graded in both runs"
    if at_worst.pairs == 1:
        return "inconclusive", "one pair has no interval"
    if at_worst.low > margin:
        return "better", "the interval lies beyond the margin, on the good side"
    if at_worst.low >= -margin:
        return "no worse", WITHIN
    if at_best.high < -margin:
        return "worse", "the interval lies beyond the margin"
    return "inconclusive", "the interval includes the margin"
