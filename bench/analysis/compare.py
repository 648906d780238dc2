"""Is a run worse than another? Arm by arm, pair by pair, for whoever has to decide (`bench compare`).

    no worse       the 95% interval of the paired difference lies within the margin
    worse          it lies wholly beyond the margin
    inconclusive   neither

Of tokens and seconds the margin is that share of the first run's mean, as found; of the rate of solved trials it is that many
points in itself. An arm that is equal in every pair, by outcome, tokens and seconds, is no worse: nothing is to be inferred.
A run is worse if an arm is, and no worse if all of them are, which needs no correction (an intersection-union test: Berger,
Technometrics 24, 1982). That one arm is worse by chance among many is not corrected for.

Seconds are those on the clock, of calls and waiting: framework time is this machine's, and a replay's clock has none. Errors
count against the second run before it is no worse, and for it before it is worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bench.analysis import statistics
from bench.analysis.arms import Arm, Condition, arms_of, require_receipts
from bench.analysis.frames import Run
from bench.analysis.overlap import shared_part
from bench.analysis.statistics import Mean, RateDifference

Measure = Literal["tokens", "seconds", "solved"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
Verdict = Literal["no worse", "worse", "inconclusive"]
COLUMNS: Mapping[str, str] = {"tokens": "tokens", "seconds": "on_the_clock"}


@dataclass(frozen=True)
class Row:
    """One arm by one measure. `margin` is in the measure's own unit; `difference` is the second run's less the first's.

    before, after   the means, or the rates of solved trials; None where there is none
    needed          pairs that would decide it, were the difference the one found; None where that cannot be told
    """

    condition: Condition
    architecture: str
    measure: Measure
    before: float | None
    after: float | None
    difference: Mean | RateDifference
    margin: float
    pairs: int
    unpaired: int
    verdict: Verdict
    reason: str
    needed: int | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """`second`: the run that is judged, with only the trials that were compared; notes: what a reader must know beside."""

    first: Run
    second: Run
    margin: float
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        found = {row.verdict for row in self.rows}
        return next(verdict for verdict in ("worse", "inconclusive", "no worse") if verdict in found)


def compare(first: Run, second: Run, margin: float, measures: Sequence[Measure] = MEASURES, narrow: bool = False) -> Comparison:
    """Is `second` no worse than `first`? `narrow`: compare what they share, where that is not all.

    Raises ResultsError where they cannot be compared, and where a fault of either has no receipt.
    """
    for run in (first, second):
        require_receipts(run)
    shared = shared_part(first, second, narrow)
    before, after = (arms_of(_with_clock(run)) for run in (shared.first, shared.second))
    rows = tuple(
        row
        for condition, arms in before.items()
        for name, arm in arms.items()
        for row in _rows(arm, after[condition][name], margin, measures)
    )
    return Comparison(shared.first, shared.second, margin, rows, shared.notes)


def _with_clock(run: Run) -> Run:
    return replace(run, trials=run.trials.assign(on_the_clock=run.trials["api_seconds"] + run.trials["waiting_seconds"]))


def _rows(before: Arm, after: Arm, margin: float, measures: Sequence[Measure]) -> Iterator[Row]:
    equal = _equal(before, after)
    for measure in measures:
        row = _solved(before, after, margin) if measure == "solved" else _spent(before, after, margin, measure)
        yield replace(row, verdict="no worse", reason="equal in every pair", needed=None) if equal else row


def _equal(before: Arm, after: Arm) -> bool:
    """Whether nothing that is compared differs in any trial. Errors are equal to nothing: they say nothing."""
    columns = ["repetition", "outcome", *COLUMNS.values()]
    one, two = (arm.trials[columns].sort_values("repetition", ignore_index=True) for arm in (before, after))
    return bool(one.equals(two)) and not after.usable.empty


# Tokens and seconds


def _spent(before: Arm, after: Arm, margin: float, measure: Measure) -> Row:
    column = COLUMNS[measure]
    paired = after.less(before, column)
    both = before.usable["repetition"].isin(after.usable["repetition"])
    base = statistics.mean_of(before.usable.loc[both, column].tolist()).mean
    allowed = margin * base if base is not None else 0.0
    difference = paired.difference
    verdict, reason = _of_a_cost(difference, allowed)
    after_mean = None if base is None or difference.mean is None else base + difference.mean
    needed = _needed(difference, allowed) if verdict == "inconclusive" else None
    place = (before.condition, before.architecture, measure, base, after_mean)
    return Row(*place, difference, allowed, difference.n, paired.unpaired, verdict, reason, needed)


def _of_a_cost(difference: Mean, margin: float) -> tuple[Verdict, str]:
    if difference.low is None or difference.high is None:
        return "inconclusive", "no pair of graded trials" if not difference.n else "one pair: no interval"
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


def _solved(before: Arm, after: Arm, margin: float) -> Row:
    shown = after.solved_less(before)
    at_worst = statistics.paired_rates(_by_repetition(after, errors=False), _by_repetition(before, errors=True))
    at_best = statistics.paired_rates(_by_repetition(after, errors=True), _by_repetition(before, errors=False))
    verdict, reason = _of_a_rate(at_worst, at_best, margin)
    rates = (before.solved().rate, after.solved().rate)
    place = (before.condition, before.architecture, _SOLVED, *rates)
    return Row(*place, shown, margin, shown.pairs, shown.unpaired, verdict, reason)


_SOLVED: Measure = "solved"


def _by_repetition(arm: Arm, errors: bool) -> dict[int, bool]:
    """Was each graded trial solved? `errors`: what a trial that ended in an error counts as."""
    graded = arm.trials[arm.trials["outcome"] != "ungraded"]
    pairs = zip(graded["repetition"].tolist(), graded["outcome"].tolist(), strict=True)
    return {repetition: errors if outcome == "error" else outcome == "solved" for repetition, outcome in pairs}


def _of_a_rate(at_worst: RateDifference, at_best: RateDifference, margin: float) -> tuple[Verdict, str]:
    if at_worst.low is None or at_best.high is None:
        return "inconclusive", "nothing was graded in both"
    if at_worst.pairs == 1:
        return "inconclusive", "one pair"
    if at_worst.low >= -margin:
        return "no worse", "the interval lies within the margin"
    if at_best.high < -margin:
        return "worse", "the interval lies beyond the margin"
    return "inconclusive", "the interval holds the margin"
