"""Is a run worse than another? Arm by arm, pair by pair, for whoever has to decide (`bench compare`).

By one criterion, of an arm:

    no worse       the 95% interval of the paired difference lies within the margin
    better         it lies wholly beyond the margin, on the good side
    worse          it lies wholly beyond the margin, on the bad side
    inconclusive   neither

Of tokens and seconds the margin is that share of the first run's mean, as found; of the rate of solved trials it is that many
points in itself. An arm that is equal in every pair, by outcome, tokens and seconds, is no worse: nothing is to be inferred.

Of an arm by all criteria: what is solved comes first. An arm that solves more and is dearer is a trade-off, which no program
can decide; one that solves fewer is worse, however cheap. A run is worse if an arm is, and no worse if all of them are, which
needs no correction (an intersection-union test: Berger, Technometrics 24, 1982). That one arm is worse by chance among many is
not corrected for.

Seconds are those on the clock, of calls and waiting: framework time is this machine's, and a replay's clock has none. Errors
count against the second run before it is no worse or better, and for it before it is worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bench.analysis import statistics
from bench.analysis.arms import Arm, Arms, Condition, arms_of, pairs_of, require_receipts
from bench.analysis.frames import Run
from bench.analysis.overlap import Overlap, overlap_of
from bench.analysis.statistics import Mean, Pair, RateDifference

Criterion = Literal["tokens", "seconds", "solved"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
Finding = Literal["no worse", "better", "worse", "inconclusive"]
Decision = Literal["worse", "trade-off", "inconclusive", "no worse"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
"""In the order in which an arm's decides the run's."""
COLUMNS: Mapping[str, str] = {"tokens": "tokens", "seconds": "on_the_clock"}
EQUAL = "equal in every pair"


@dataclass(frozen=True)
class ArmDifference:
    """One arm by one criterion. `margin` is in the criterion's own unit; `difference` is the second run's less the first's.

    before, after   the means, or the rates of solved trials; None where there is none
    needed          pairs that would decide it, were the difference the one found; None where that cannot be told
    """

    first: Condition
    second: Condition
    architectures: tuple[str, str]
    criterion: Criterion
    before: float | None
    after: float | None
    difference: Mean | RateDifference
    margin: float
    pairs: int
    unpaired: int
    finding: Finding
    reason: str
    needed: int | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """`second`: the run that is judged, with only the trials that were compared; notes: what a reader must know beside."""

    first: Run
    second: Run
    margin: float
    rows: tuple[ArmDifference, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Decision:
        arms: dict[tuple[Condition, tuple[str, str]], list[ArmDifference]] = {}
        for row in self.rows:
            arms.setdefault((row.first, row.architectures), []).append(row)
        decisions = {_decision(rows) for rows in arms.values()}
        return next(decision for decision in DECISIONS if decision in decisions)

    @property
    def summary(self) -> str:
        """The verdict, and of a trade-off what is won and lost."""
        if self.verdict != "trade-off":
            return self.verdict
        return f"trade-off: better in {self._criteria_with('better')}; worse in {self._criteria_with('worse')}"

    def _criteria_with(self, finding: Finding) -> str:
        return ", ".join(dict.fromkeys(row.criterion for row in self.rows if row.finding == finding))


def _decision(rows: Sequence[ArmDifference]) -> Decision:
    """Of one arm."""
    findings = {row.criterion: row.finding for row in rows}
    if findings.get("solved") == "worse":
        return "worse"
    if "worse" in findings.values():
        return "trade-off" if findings.get("solved") == "better" else "worse"
    return "inconclusive" if "inconclusive" in findings.values() else "no worse"


def compare(
    first: Run, second: Run, margin: float, criteria: Sequence[Criterion] = CRITERIA, narrow: bool = False
) -> Comparison:
    """Is `second` no worse than `first`? `narrow`: compare what they share, where that is not all.

    Two runs with one model each, or one architecture, are compared across these. Raises ResultsError where they cannot be
    compared, and where a fault of either has no receipt.
    """
    for run in (first, second):
        require_receipts(run)
    shared = overlap_of(first, second, narrow)
    before, after = (arms_of(_with_clock(run)) for run in (shared.first, shared.second))
    rows = tuple(
        row
        for arms in before.values()
        for arm in arms.values()
        for row in _rows(arm, _counterpart(arm, after, shared), margin, criteria)
    )
    return Comparison(shared.first, shared.second, margin, rows, shared.notes)


def _with_clock(run: Run) -> Run:
    return replace(run, trials=run.trials.assign(on_the_clock=run.trials["api_seconds"] + run.trials["waiting_seconds"]))


def _counterpart(arm: Arm, others: Arms, shared: Overlap) -> Arm:
    condition = replace(arm.condition, model=shared.counterpart("model", arm.condition.model))
    return others[condition][shared.counterpart("architecture", arm.architecture)]


def _rows(before: Arm, after: Arm, margin: float, criteria: Sequence[Criterion]) -> Iterator[ArmDifference]:
    equal = _equal(before, after)
    for criterion in criteria:
        row = _solved(before, after, margin) if criterion == "solved" else _spent(before, after, margin, criterion)
        yield replace(row, finding="no worse", reason=EQUAL, needed=None) if equal else row


def _equal(before: Arm, after: Arm) -> bool:
    """Whether nothing that is compared differs in any trial. Errors are equal to nothing: they say nothing."""
    columns = ["outcome", *COLUMNS.values()]
    one, two = (
        dict(zip(pairs_of(arm.trials), arm.trials[columns].itertuples(index=False, name=None), strict=True))
        for arm in (before, after)
    )
    return one == two and not after.usable.empty


# Tokens and seconds


def _spent(before: Arm, after: Arm, margin: float, criterion: Criterion) -> ArmDifference:
    column = COLUMNS[criterion]
    paired = after.less(before, column)
    difference = paired.difference
    in_both, _ = statistics.in_common(before.by_pair(column), after.by_pair(column))
    base = statistics.mean_of(statistics.by_unit(in_both).values()).mean
    allowed = margin * base if base is not None else 0.0
    finding, reason = _of_a_cost(difference, allowed)
    return ArmDifference(
        *_place(before, after),
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


def _place(before: Arm, after: Arm) -> tuple[Condition, Condition, tuple[str, str]]:
    return before.condition, after.condition, (before.architecture, after.architecture)


def _of_a_cost(difference: Mean, margin: float) -> tuple[Finding, str]:
    if difference.low is None or difference.high is None:
        return "inconclusive", "no pair of graded trials" if not difference.n else "one pair: no interval"
    if difference.high < -margin:
        return "better", "the interval lies beyond the margin, on the good side"
    if difference.high <= margin:
        return "no worse", "the interval lies within the margin"
    if difference.low > margin:
        return "worse", "the interval lies beyond the margin"
    return "inconclusive", "the interval holds the margin"


def _needed(difference: Mean, margin: float) -> int | None:
    distance = None if difference.mean is None else difference.mean - margin
    found = statistics.required_pairs(distance, difference) if distance else None
    return found.cautious if found else None


# Solved


def _solved(before: Arm, after: Arm, margin: float) -> ArmDifference:
    difference = after.solved_less(before)
    at_worst = statistics.paired_rates(_by_pair(after, errors=False), _by_pair(before, errors=True))
    at_best = statistics.paired_rates(_by_pair(after, errors=True), _by_pair(before, errors=False))
    finding, reason = _of_a_rate(at_worst, at_best, margin)
    return ArmDifference(
        *_place(before, after),
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
    """Was each graded trial solved? `errors`: what a trial that ended in an error counts as."""
    pairs = zip(pairs_of(arm.graded), arm.graded["outcome"].tolist(), strict=True)
    return {pair: errors if outcome == "error" else outcome == "solved" for pair, outcome in pairs}


def _of_a_rate(at_worst: RateDifference, at_best: RateDifference, margin: float) -> tuple[Finding, str]:
    if at_worst.low is None or at_best.high is None:
        return "inconclusive", "nothing was graded in both"
    if at_worst.pairs == 1:
        return "inconclusive", "one pair"
    if at_worst.low > margin:
        return "better", "the interval lies beyond the margin, on the good side"
    if at_worst.low >= -margin:
        return "no worse", "the interval lies within the margin"
    if at_best.high < -margin:
        return "worse", "the interval lies beyond the margin"
    return "inconclusive", "the interval holds the margin"
