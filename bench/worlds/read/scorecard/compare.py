"""Say whether a scorecard is worse than another, for CI (`bench compare`).

Each row is compared in the control and for each kind of failure:

right    the share of trials that finished right
harm     damaged effects of all kinds beyond the control, for 100 failures; only if trials are paired
harmed   the share of struck trials with any such damage; if trials are not paired

Under the same fault schedule trials are paired by (instance, repetition, plan): `right` is tested by McNemar's exact test, or
by the sign-flip test if an instance has several pairs, `harm` by the sign-flip test. Under different schedules both shares are
compared by Fisher's exact test. All p of a comparison are adjusted together, by Holm.

not measured   neither has a trial
worse          adjusted p < 0.05, and worse
better         adjusted p < 0.05, and better
no worse       the 95% interval of the difference lies within the margin, or all pairs are equal
inconclusive   all else: also if only one of the two has trials
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from bench.common.errors import ResultsError
from bench.read.analysis.statistics import (
    Pair,
    Share,
    exact_share,
    has_width,
    holm,
    mcnemar_test,
    paired_difference,
    paired_rates,
    paired_test,
    rates_differ,
    unpaired_rates,
)
from bench.worlds.read.scorecard.card import ALL_CRASHES, CONTROL, Scorecard, ScorecardRow, ScoredTrial
from bench.worlds.read.scorecard.struck import belongs

LEVEL = 0.05
ALIKE = 6
"""From this many pairs, an equal difference in every pair is not chance (`bench.read.compare.compare`)."""
CardMeasure = Literal["right", "harm", "harmed"]
CardFinding = Literal["worse", "better", "no worse", "inconclusive", "not measured"]
CardVerdict = Literal["worse", "inconclusive", "better", "no worse"]
Value = TypeVar("Value")
NOTHING = exact_share(0, 0)


@dataclass(frozen=True)
class Contrast:
    """Two rows by one measure: rates, or effects for 100 failures, and the interval of their difference.

    pairs   number of paired trials; None if trials are not paired
    p       of the test, two-sided
    """

    before: float | None
    after: float | None
    low: float | None
    high: float | None
    pairs: int | None
    p: float | None


@dataclass(frozen=True)
class Difference:
    """One measure of one row, over trials struck `by` this failure. `trials` counts them in each scorecard.

    adjusted   p after Holm's correction over the whole comparison
    """

    world: str
    systems: tuple[str, str]
    models: tuple[str, str]
    by: str
    measure: CardMeasure
    trials: tuple[int, int]
    measurement: Contrast
    adjusted: float | None = None
    finding: CardFinding = "not measured"


@dataclass(frozen=True)
class CardComparison:
    margin: float
    differences: tuple[Difference, ...]
    left_out: tuple[str, ...]

    @property
    def verdict(self) -> CardVerdict:
        findings = {difference.finding for difference in self.differences}
        if "worse" in findings:
            return "worse"
        if "inconclusive" in findings or findings == {"not measured"}:
            return "inconclusive"
        return "better" if "better" in findings else "no worse"


def compare_scorecards(first: Scorecard, second: Scorecard, margin: float, whole: bool = False) -> CardComparison:
    """Compare two scorecards. `margin`: in points for rates, in effects for one failure for harm.

    Raises ResultsError if they have no row in common, or, with `whole`, if one has a row that the other lacks.
    """
    rows, left_out = _counterparts(first, second)
    if not rows:
        raise ResultsError(f"the scorecards share no row: {'; '.join(left_out)}")
    if left_out and whole:
        raise ResultsError(f"the scorecards differ in {'; '.join(left_out)}; leave --whole out to compare what they share")
    schedules = [{world.name: world.schedule for world in card.worlds} for card in (first, second)]
    differences = [
        difference
        for before, after in rows
        for difference in _of_row(before, after, schedules[0][before.world] == schedules[1][after.world])
    ]
    adjusted = holm({place: difference.measurement.p for place, difference in enumerate(differences) if any(difference.trials)})
    judged = [replace(difference, adjusted=adjusted.get(place)) for place, difference in enumerate(differences)]
    return CardComparison(
        margin, tuple(replace(difference, finding=_finding(difference, margin)) for difference in judged), left_out
    )


def _counterparts(first: Scorecard, second: Scorecard) -> tuple[list[tuple[ScorecardRow, ScorecardRow]], tuple[str, ...]]:
    """Match rows by world, system and model. If each scorecard has one system, or one model, its name is ignored."""
    cards = (first, second)
    one_system, one_model = (
        all(len({getattr(row, name) for row in card.rows}) == 1 for card in cards) for name in ("system", "model")
    )

    def place(row: ScorecardRow) -> tuple[str, ...]:
        return (row.world, *([] if one_system else [row.system]), *([] if one_model else [row.model]))

    before, after = ({place(row): row for row in card.rows} for card in cards)
    alone = [*((at, "first") for at in before if at not in after), *((at, "second") for at in after if at not in before)]
    rows = [(row, after[at]) for at, row in before.items() if at in after]
    return rows, tuple(f"the row {' / '.join(at)} (only in the {which})" for at, which in alone)


def _of_row(before: ScorecardRow, after: ScorecardRow, same_faults: bool) -> Iterator[Difference]:
    """Yield the differences of a row. A kind of failure that only the first has is inconclusive: the second has no trials for
    it."""
    measure = _paired if same_faults else _unpaired
    for by in (CONTROL, *(struck.by for struck in before.struck if not _is_repeated(struck.by, before))):
        trials = (_trials(before, by), _trials(after, by))
        for name, measurement in measure(before, after, by):
            models, systems = (before.model, after.model), (before.system, after.system)
            yield Difference(before.world, systems, models, by, name, trials, measurement)


def _is_repeated(by: str, row: ScorecardRow) -> bool:
    """Return whether all crashes are at one point, so that "all points" would repeat it."""
    return by == ALL_CRASHES and sum(belongs(struck.by, by) for struck in row.struck) == 2


def _trials(row: ScorecardRow, by: str) -> int:
    return sum(belongs(result.by, by) for result in row.results)


# Unpaired: under different faults


def _unpaired(before: ScorecardRow, after: ScorecardRow, by: str) -> Iterator[tuple[CardMeasure, Contrast]]:
    yield "right", _two_rates(_right(before, by), _right(after, by))
    if by != CONTROL:
        yield "harmed", _two_rates(_harmed(before, by), _harmed(after, by))


def _two_rates(share: Share, other: Share) -> Contrast:
    low, high = unpaired_rates(other, share) or (None, None)
    return Contrast(share.rate, other.rate, low, high, None, rates_differ(share, other))


def _right(row: ScorecardRow, by: str) -> Share:
    if by == CONTROL:
        return row.control
    struck = row.struck_by(by)
    return struck.right if struck else NOTHING


def _harmed(row: ScorecardRow, by: str) -> Share:
    struck = row.struck_by(by)
    return struck.any_harm if struck else NOTHING


# Paired


def _paired(before: ScorecardRow, after: ScorecardRow, by: str) -> Iterator[tuple[CardMeasure, Contrast]]:
    rights = _in_common(before, after, by, lambda result: result.right)
    yield "right", _two_by_pair(rights)
    if by != CONTROL:
        harms = _in_common(
            before, after, by, lambda result: None if result.harm is None else 100 * result.harm / result.failures
        )
        yield "harm", _harm_by_pair(harms)


def _two_by_pair(rights: tuple[Mapping[Pair, bool], Mapping[Pair, bool]]) -> Contrast:
    before, after = rights
    difference = paired_rates(after, before)
    low, high = (0.0, 0.0) if before and before == after else (difference.low, difference.high)
    return Contrast(_mean(before), _mean(after), low, high, difference.pairs, mcnemar_test(after, before).p)


def _harm_by_pair(harms: tuple[Mapping[Pair, float], Mapping[Pair, float]]) -> Contrast:
    before, after = harms
    paired = paired_difference(after, before)
    difference, equal = paired.difference, bool(before) and before == after
    is_measured = equal or has_width(difference) or difference.n >= ALIKE
    low, high = (0.0, 0.0) if equal else (difference.low, difference.high) if is_measured else (None, None)
    return Contrast(_mean(before), _mean(after), low, high, paired.pairs, paired_test(after, before).p)


def _in_common(
    before: ScorecardRow, after: ScorecardRow, by: str, read: Callable[[ScoredTrial], Value | None]
) -> tuple[dict[Pair, Value], dict[Pair, Value]]:
    """Return the values of trials that both rows have, by instance and a number for (repetition, plan)."""
    first, other = (
        {
            (result.instance, result.repetition, result.plan): value
            for result in row.results
            if belongs(result.by, by) and (value := read(result)) is not None
        }
        for row in (before, after)
    )
    places = sorted(place for place in first if place in other)
    numbers = {rest: number for number, rest in enumerate(sorted({place[1:] for place in places}))}
    return {(at[0], numbers[at[1:]]): first[at] for at in places}, {(at[0], numbers[at[1:]]): other[at] for at in places}


def _mean(values: Mapping[Pair, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None


# The finding


def _finding(difference: Difference, margin: float) -> CardFinding:
    measurement = difference.measurement
    if not any(difference.trials):
        return "not measured"
    if measurement.before is None or measurement.after is None:
        return "inconclusive"
    good_is_more = difference.measure == "right"
    if difference.adjusted is not None and difference.adjusted < LEVEL:
        return "better" if (measurement.after > measurement.before) == good_is_more else "worse"
    if measurement.low is None or measurement.high is None:
        return "inconclusive"
    allowed = 100 * margin if difference.measure == "harm" else margin
    held = measurement.low >= -allowed if good_is_more else measurement.high <= allowed
    return "no worse" if held else "inconclusive"
