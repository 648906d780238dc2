"""Decide whether a scorecard is worse than another, for CI (`bench compare`).

The measures decide over all rows together. Each row in the control and for each kind of failure stands beside:

right    the share of trials that finished right
harm     damaged effects of all kinds beyond the control, for 100 failures; only if trials are paired
harmed   the share of struck trials with any such damage; if trials are not paired

Under the same fault schedule trials are paired by (instance, repetition, plan). Under different schedules shares are compared,
by Newcombe's interval and Fisher's exact test. `bench.read.compare.verdict` says what they come to; damage is counted if the
replies of neither side are live, so that one pair is a counterexample.

A row of A that B has no trials for is missing, and then the whole is at best undecided: who was not struck has shown nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

from bench.common.errors import ResultsError
from bench.read.analysis.statistics import (
    Pair,
    exact_share_by_instance,
    rates_differ,
    unpaired_rates,
)
from bench.read.compare.compare import GATE
from bench.read.compare.verdict import (
    ComparisonFinding,
    ComparisonVerdict,
    Contrast,
    GatedMeasure,
    Harms,
    contrast_of_amounts,
    contrast_of_rates,
    corrected,
    counterexamples,
    finding_of,
    verdict_of,
)
from bench.record.worlds.damage import DAMAGES
from bench.worlds.read.scorecard.card import ALL_CRASHES, CONTROL, Scorecard, ScorecardRow, ScoredTrial
from bench.worlds.read.scorecard.struck import belongs

CardMeasure = Literal["right", "harm", "harmed"]
ALL = "all"
"""What stands for the names of a row in a difference over all rows."""


@dataclass(frozen=True)
class Difference:
    """The difference in one measure of one row, or of all rows, over trials struck `by` this failure. `trials` counts them in
    each scorecard.

    adjusted   p after Holm's correction over all rows; of all rows together, p itself
    counted    what was damaged more and less often, if damage is counted
    """

    world: str
    systems: tuple[str, str]
    models: tuple[str, str]
    by: str
    measure: CardMeasure
    trials: tuple[int, int]
    measurement: Contrast
    adjusted: float | None = None
    finding: ComparisonFinding = "not measured"
    counted: str = ""


@dataclass(frozen=True)
class CardComparison:
    """The comparison of two scorecards. `overall` has the differences over all rows."""

    gate: Mapping[str, float]
    overall: tuple[Difference, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[str, ...]

    @property
    def verdict(self) -> ComparisonVerdict:
        alone = any(any(row.trials) and not all(row.trials) for row in self.differences)
        return verdict_of([GatedMeasure(row.finding, True) for row in self.overall], bool(self.left_out) or alone)


class _Both(NamedTuple):
    """A row of both scorecards, and whether their trials met the same faults."""

    before: ScorecardRow
    after: ScorecardRow
    are_paired: bool

    @property
    def is_repeatable(self) -> bool:
        """Whether a rerun gives the same result, because neither scorecard has live replies."""
        return "live" not in (self.before.whose, self.after.whose)


def compare_scorecards(
    first: Scorecard,
    second: Scorecard,
    gate: Mapping[str, float] = GATE,
    whole: bool = False,
    allowed: Mapping[str, int] | None = None,
) -> CardComparison:
    """Compare two scorecards. `gate` says how much worse B may be in what is `solved`, in points, and in `damage`, in effects
    per failure. `allowed` maps a kind of damage to the number of additional effects that are tolerated.

    Raises ResultsError if they have no row in common, or, with `whole`, if one has a row that the other lacks.
    """
    rows, left_out = _counterparts(first, second)
    if not rows:
        raise ResultsError(f"the scorecards share no row: {'; '.join(left_out)}")
    if left_out and whole:
        raise ResultsError(f"the scorecards differ in {'; '.join(left_out)}; leave --whole out to compare what they share")
    schedules = [{world.name: world.schedule for world in card.worlds} for card in (first, second)]
    both = [_Both(*row, schedules[0][row[0].world] == schedules[1][row[1].world]) for row in rows]
    differences = [each for row in both for by in _kinds(row.before) for each in _differences([row], by, gate, allowed or {})]
    adjusted = corrected([row.measurement.p if all(row.trials) else None for row in differences])
    judged = [_corrected(row, p) for row, p in zip(differences, adjusted, strict=True)]
    return CardComparison(gate, tuple(_differences(both, ALL, gate, allowed or {})), tuple(judged), left_out)


def _corrected(row: Difference, adjusted: float | None) -> Difference:
    """Return the row with its adjusted p, by which it is judged, unless damage was counted or nothing differs."""
    row = replace(row, adjusted=adjusted)
    if row.counted or row.finding in ("equal", "not measured"):
        return row
    return replace(row, finding=finding_of(row.measurement, adjusted))


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


def _kinds(row: ScorecardRow) -> list[str]:
    """Return the kinds of failure that are compared separately. If all crashes are at one point, "all points" would repeat
    it."""
    kinds = [struck.by for struck in row.struck]
    repeats = sum(belongs(by, ALL_CRASHES) for by in kinds) == 2
    return [CONTROL, *(by for by in kinds if not (repeats and by == ALL_CRASHES))]


# One measure of some rows

TrialPairs = Sequence[tuple[Sequence[ScoredTrial], Sequence[ScoredTrial]]]
"""The trials of both scorecards, row by row."""
Value = TypeVar("Value")


def _differences(rows: Sequence[_Both], by: str, gate: Mapping[str, float], allowed: Mapping[str, int]) -> Iterator[Difference]:
    """Yield the differences of these rows together. A kind of failure that only one side has is inconclusive."""
    first = rows[0]
    place = (first.before.world, (first.before.system, first.after.system), (first.before.model, first.after.model))
    sides = [(_struck(row.before, by), _struck(row.after, by)) for row in rows]
    trials = (sum(len(before) for before, _ in sides), sum(len(after) for _, after in sides))
    are_paired, are_repeatable = all(row.are_paired for row in rows), all(row.is_repeatable for row in rows)
    is_equal = are_paired and all(trials) and _by_trial(sides, 0) == _by_trial(sides, 1)
    for measure, contrast in _paired(sides, gate) if are_paired else _unpaired(sides, gate):
        if by == CONTROL and measure != "right":
            continue
        finding, counted = (finding_of(contrast, contrast.p), "") if any(trials) else ("not measured", "")
        if is_equal:
            finding = "equal"
        elif measure == "harm" and are_repeatable and all(trials):
            finding, counted = counterexamples(*_in_common(sides, _harms), allowed)
        p = contrast.p if by == ALL else None
        yield Difference(
            *((ALL, (ALL, ALL), (ALL, ALL)) if by == ALL else place), by, measure, trials, contrast, p, finding, counted
        )


def _struck(row: ScorecardRow, by: str) -> list[ScoredTrial]:
    return [trial for trial in row.results if by == ALL or belongs(trial.by, by)]


def _by_trial(sides: TrialPairs, which: Literal[0, 1]) -> list[dict[tuple[str, int, str, str], tuple[object, ...]]]:
    return [
        {(trial.instance, trial.repetition, trial.plan, trial.by): (trial.right, trial.harm) for trial in row[which]}
        for row in sides
    ]


def _paired(sides: TrialPairs, gate: Mapping[str, float]) -> Iterator[tuple[CardMeasure, Contrast]]:
    rights, _ = contrast_of_rates(*_in_common(sides, lambda trial: trial.right), _margin(gate, "solved"), more_is_good=True)
    yield "right", rights
    harms, _ = contrast_of_amounts(*_in_common(sides, _for_100), 100 * _margin(gate, "damage"), unseen=100.0)
    yield "harm", harms


def _margin(gate: Mapping[str, float], measure: Literal["solved", "damage"]) -> float:
    return gate.get(measure, GATE[measure])


def _unpaired(sides: TrialPairs, gate: Mapping[str, float]) -> Iterator[tuple[CardMeasure, Contrast]]:
    measures: tuple[tuple[CardMeasure, Callable[[ScoredTrial], bool | None]], ...] = (
        ("right", lambda trial: trial.right),
        ("harmed", lambda trial: None if trial.harm is None else trial.harm > 0),
    )
    for measure, read in measures:
        shares = []
        for which in (0, 1):
            values = [(trial.instance, value) for row in sides for trial in row[which] if (value := read(trial)) is not None]
            shares.append(exact_share_by_instance([instance for instance, _ in values], [value for _, value in values]))
        before, after = shares
        low, high = unpaired_rates(after, before) or (None, None)
        margin = _margin(gate, "solved" if measure == "right" else "damage")
        within = low is not None and high is not None and (high if measure == "harmed" else -low) <= margin
        p = rates_differ(before, after)
        yield measure, Contrast(before.rate, after.rate, low, high, margin, None, p, True, measure == "right", within)


def _for_100(trial: ScoredTrial) -> float | None:
    return None if trial.harm is None or not trial.failures else 100 * trial.harm / trial.failures


def _harms(trial: ScoredTrial) -> Harms | None:
    """Return what a trial damaged, by kind. An earlier scorecard has no kinds, so all damage counts together."""
    if trial.harm is None or not trial.failures:
        return None
    return {"damaged": trial.harm} if trial.harms is None else {kind: trial.harms.get(kind, 0) for kind in DAMAGES}


def _in_common(sides: TrialPairs, read: Callable[[ScoredTrial], Value | None]) -> tuple[dict[Pair, Value], dict[Pair, Value]]:
    """Return the values of trials that both sides have. Each pair is of the task (or the repetition, if a world has one task)
    and a number."""
    joined: tuple[dict[Pair, Value], dict[Pair, Value]] = ({}, {})
    numbers = Counter[str]()
    for row in sides:
        several = len({trial.instance for trials in row for trial in trials}) > 1
        first, other = (
            {(trial.instance, trial.repetition, trial.plan): value for trial in trials if (value := read(trial)) is not None}
            for trials in row
        )
        for place in sorted(place for place in first if place in other):
            unit = place[0] if several else str(place[1])
            numbers[unit] += 1
            for known, values in zip(joined, (first, other), strict=True):
                known[unit, numbers[unit]] = values[place]
    return joined
