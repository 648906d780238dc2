"""The gate of `bench compare`: a few measures that its owner names, one pooled test each.

A measure of B beside A over all pairs, with the margin m that the owner allows:

    no worse       the bound of B's loss is within m
    worse          B is worse by more than m, and the sign-flip test says that this is no chance: its exact p, over the units
                   that differ, is below 0.05
    better         the same on the good side
    equal          nothing differs in any pair
    trade-off      only of counted damage: B damages more in some pairs, and less in others
    undecided      these pairs cannot decide it

An amount's loss is within m if two tests refute that B takes (1 + m) times what A takes: the sign-flip test at 5%, and
Student's t at 2.5% with one pair more, in which B takes a whole attempt more. Without that pair a rare loss that no pair shows
would count as none. A rate's loss is within m if the end of its 95% interval is, and if so many units would have shown a loss
of m: all miss one with a chance of (1 - m)^units, which must be below 5%. `reports/gate` says how often each finding is wrong.

The measures together, quality (what is solved and damaged) before what is spent:

    worse          B is worse in quality and not better in it, or worse in what it spends and better in nothing
    trade-off      worse in one measure and better in another of the same rank, or better in quality and worse in what it spends
    undecided      a measure is undecided, or arms or pairs of A are missing in B
    better, equal, no worse   every measure is better, equal or no worse; better if any is, equal if all are

Damage is counted, not estimated, if nothing in a trial is left to chance (the replies of both sides are simulated or recorded):
a single pair in which B damages more is a counterexample, and a rerun shows it again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from scipy import special

from bench.common.errors import ConfigError, nearest
from bench.read.analysis import statistics
from bench.read.analysis.measure import Measure
from bench.read.analysis.statistics import Mean, Pair, RateDifference
from bench.record.damage import DAMAGES

ComparisonVerdict = Literal["worse", "better", "trade-off", "equal", "no worse", "undecided"]
ComparisonFinding = ComparisonVerdict | Literal["not measured"]
LEVEL = 0.05
MOST_ALLOWED = 10**6
RULE_OF_THREE = 3
"""What no trial of n showed has, at 95%, a chance of no more than 3 / n. Source: Hanley and Lippman-Hand, JAMA 249 (1983)."""
EQUAL = "equal in every pair"
REASONS: Mapping[ComparisonFinding, str] = {
    "better": "it is better by more than the margin, and not by chance",
    "worse": "it is worse by more than the margin, and not by chance",
    "no worse": "the one-sided bound of the loss is within the margin",
    "equal": EQUAL,
    "trade-off": "more in some pairs, less in others",
    "undecided": "these pairs cannot decide it",
}

Harms = Mapping[str, int]
"""Kind of damage -> number of damaged effects."""


@dataclass(frozen=True)
class MeasureChange:
    """The change of one measure from A to B: both values, and the interval of B minus A.

    low, high     None if there is no interval
    margin        in the unit of the measure
    pairs         None if trials are not paired
    p             of an exact test that nothing differs, two-sided
    is_rate       whether it is a rate, and no amount
    more_is_good  False for what is spent or damaged
    within        whether the bound of B's loss is within the margin
    alike         whether the measure is the same in every pair
    least         the least p that the units that differ can give
    shows         the loss that these pairs call worse four times in five; None if that is not known
    needed        the units that tell a loss of the margin from none as often; None if that is not known
    why           why nothing can be concluded
    """

    before: float | None
    after: float | None
    low: float | None
    high: float | None
    margin: float
    pairs: int | None
    p: float | None
    is_rate: bool
    more_is_good: bool
    within: bool = False
    alike: bool = False
    least: float | None = None
    shows: float | None = None
    needed: int | None = None
    why: str = ""


class GatedMeasure(NamedTuple):
    """The finding on one measure, and whether the measure is quality and not what is spent."""

    finding: ComparisonFinding
    is_quality: bool


def compare_rates(
    before: Mapping[Pair, bool | None], after: Mapping[Pair, bool | None], margin: float, *, more_is_good: bool
) -> tuple[MeasureChange, RateDifference]:
    """Compare a rate in A and in B, pair by pair.

    A pair with an unknown value is left out of the difference. An unknown value (None, of a trial that ended in an error)
    counts against every finding: the interval reaches from the low end where all of them speak for A to the high end where all
    of them speak for B.

    Args:
        before: Whether each pair of A succeeded; None if that is unknown.
        after: Whether each pair of B succeeded.
        margin: How much lower B's rate may be, or higher if more is bad; a share of 1.
        more_is_good: Whether success is good, as *solved* is and *damaged* is not.

    Returns:
        The change with its test, and the difference B minus A with its interval.
    """
    known = [{pair: value for pair, value in side.items() if value is not None} for side in (before, after)]
    difference = statistics.paired_rates(known[1], known[0])
    extremes = [(_assume(after, best), _assume(before, not best)) for best in (False, True)]
    at_worst, at_best = (statistics.paired_rates(*sides) for sides in extremes)
    tests = [statistics.mcnemar_test(*sides) for sides in extremes]
    rises = [statistics.differences_of(*statistics.in_common(*sides)) for sides in extremes]
    units = min(_units(*sides) for sides in extremes)
    is_seen = units > 0 and (1 - margin) ** units <= LEVEL
    loss = -(at_worst.low or 0.0) if more_is_good else at_best.high or 0.0
    first, second = statistics.in_common(*known)
    spread = max((statistics.mean_of(each) for each in rises), key=lambda mean: mean.sd or 0.0)
    unseen = 1 - LEVEL ** (1 / units) if units else 1.0
    shows, needed = _plan(spread, margin, spread.sd)
    change = MeasureChange(
        before=_mean(first),
        after=_mean(second),
        low=at_worst.low,
        high=at_best.high,
        margin=margin,
        pairs=difference.pairs,
        p=max((test.p for test in tests if test.p is not None), default=None),
        is_rate=True,
        more_is_good=more_is_good,
        within=is_seen and loss <= margin,
        alike=bool(first) and first == second and len(first) == at_worst.pairs,
        least=max((test.least for test in tests if test.least is not None), default=None),
        shows=max(unseen, shows or 0.0),
        needed=max(needed or 0, math.ceil(math.log(LEVEL) / math.log(1 - margin))) if 0 < margin < 1 else None,
        why=_too_few(at_worst.pairs),
    )
    return change, difference


def compare_amounts(
    before: Mapping[Pair, float],
    after: Mapping[Pair, float],
    margin: float,
    measure: Measure = "spent",
    *,
    unseen: float | None = None,
    noise: Sequence[float] = (),
) -> tuple[MeasureChange, Mean]:
    """Compare an amount in A and in B, pair by pair. A smaller amount is better.

    Args:
        before: A's amounts.
        after: B's amounts.
        margin: A share of the smaller mean; in the unit of the amounts, if `unseen` is given.
        measure: What the amounts measure.
        unseen: The loss of a pair that nobody saw; the smaller mean, if it is not given.
        noise: Differences of units between A and earlier runs like it, whose spread counts with the spread of B minus A.

    Returns:
        The change with its test, and the mean of B minus A with its interval.
    """
    first, second = statistics.in_common(before, after)
    base, other = (_mean(statistics.by_unit(side)) for side in (first, second))
    difference = statistics.paired_difference(second, first, measure).difference
    smaller = min(base or 0.0, other or 0.0)
    allowed, factor, more = (margin * smaller, 1 + margin, 0.0) if unseen is None else (margin, 1.0, margin)
    beyond = {pair: value - factor * first[pair] - more for pair, value in second.items()}
    rare = (smaller if unseen is None else unseen) * difference.n / max(1, len(first))
    test = statistics.paired_test(second, first)
    spread = _spread(statistics.differences_of(second, first), noise)
    shows, needed = _plan(difference, allowed, spread, RULE_OF_THREE * rare)
    change = MeasureChange(
        before=base,
        after=other,
        low=difference.low,
        high=difference.high,
        margin=allowed,
        pairs=len(first),
        p=test.p,
        is_rate=False,
        more_is_good=False,
        within=_is_below_0(beyond, rare - allowed, noise),
        alike=bool(first) and first == second,
        least=test.least,
        shows=shows,
        needed=needed,
        why=_too_few(difference.n),
    )
    return change, difference


def finding_of(change: MeasureChange, p: float | None) -> ComparisonFinding:
    """Return the finding on a measure. `p` is of its test; of an arm by itself, it is corrected over all arms."""
    if change.why or change.before is None or change.after is None:
        return "undecided"
    gain = (change.after - change.before) * (1 if change.more_is_good else -1)
    if p is not None and p < LEVEL and abs(gain) > change.margin:
        return "worse" if gain < 0 else "better"
    return "no worse" if change.within else "undecided"


def floor_reason(change: MeasureChange, family: int = 1) -> str:
    """Return why no difference could be told from chance after a correction for so many tests: too few units differ; "" if it
    could."""
    if change.least is None or change.least * family < LEVEL:
        return ""
    differ = "at most 1" if change.least >= 1 else round(1 - math.log2(change.least))
    needed = math.floor(math.log2(2 * family / LEVEL)) + 1
    return f"{differ} of the {needed} units that must differ do (floor)"


def verdict_of(measures: Iterable[GatedMeasure], missing: bool = False) -> ComparisonVerdict:
    """Return the verdict that the measures of a gate give together. `missing`: whether arms or pairs of A are missing in B."""
    measured = [each for each in measures if each.finding != "not measured"]
    quality, spent = ({each.finding for each in measured if each.is_quality is is_quality} for is_quality in (True, False))
    every = quality | spent
    if "trade-off" in quality or {"worse", "better"} <= quality:
        return "trade-off"
    if "worse" in every:
        return "trade-off" if "worse" in spent and "better" in every else "worse"
    if missing or not every or "undecided" in every:
        return "undecided"
    return "better" if "better" in every else "equal" if every == {"equal"} else "no worse"


def holm_corrected(ps: Sequence[float | None]) -> list[float | None]:
    """Return each p after Holm's correction over all that could be tested."""
    adjusted = statistics.holm({place: p for place, p in enumerate(ps) if p is not None})
    return [adjusted.get(place) for place in range(len(ps))]


def _is_below_0(values: Mapping[Pair, float], rare: float, noise: Sequence[float]) -> bool:
    """Return whether two tests refute that the mean of units is 0 or more: the sign-flip test, and Student's t with the `rare`
    unit as one more and with the spread of the noise too."""
    units = list(statistics.by_unit(values).values())
    with_rare = [*units, rare]
    mean, error = math.fsum(with_rare) / len(with_rare), _spread(with_rare, noise) / math.sqrt(len(with_rare))
    if len(units) < 2 or mean >= 0 or math.fsum(units) >= 0:
        return False
    by_t = float(special.stdtr(len(units) + len(noise), mean / error)) if error else 0.0
    return by_t <= LEVEL / 2 and (statistics.sign_flip_test(units).p or 1.0) / 2 <= LEVEL


def _spread(values: Sequence[float], noise: Sequence[float]) -> float:
    """Return the standard deviation of values, pooled with noise about 0."""
    mean, degrees = math.fsum(values) / max(1, len(values)), len(values) - 1 + len(noise)
    squares = [(value - mean) ** 2 for value in values] + [value**2 for value in noise]
    return math.sqrt(math.fsum(squares) / degrees) if degrees > 0 else 0.0


def _plan(difference: Mean, margin: float, spread: float | None, unseen: float = 0.0) -> tuple[float | None, int | None]:
    """Return the loss that so many units call worse, and the units that tell a loss of the margin from none, four times in
    five. `unseen` is the loss of a unit with a rare failure, times `RULE_OF_THREE`."""
    if not spread or difference.n < 2:
        return None, None
    required = statistics.required_pairs(margin, Mean(difference.n, difference.mean, spread, None, None))
    least = max(math.ceil(1 - math.log2(LEVEL)), math.ceil(unseen / margin) if margin else 0)
    return statistics.found_difference(margin, spread, difference.n), max(least, required.plain) if required else None


def _units(after: Mapping[Pair, bool], before: Mapping[Pair, bool]) -> float:
    ours, theirs = statistics.in_common(after, before)
    return statistics.effective_number([unit for unit, _ in ours], [ours[pair] - theirs[pair] for pair in ours])


def _too_few(units: int) -> str:
    return "" if units > 1 else "one pair has no interval" if units else "no trial has a value in both runs"


# Damage


def compare_damage(
    before: Mapping[Pair, Harms], after: Mapping[Pair, Harms], allowed: Mapping[str, int]
) -> tuple[ComparisonFinding, str]:
    """Return the finding on damage, and a text with how many more and how many fewer effects B damages than A, by kind.

    Args:
        before: Pair -> the damaged effects of A's trial, by kind.
        after: Pair -> the damaged effects of B's trial, by kind.
        allowed: Kind of damage -> how many effects more count as none; 0 for a kind that it does not have.
    """
    more, fewer = Counter[str](), Counter[str]()
    pairs = [pair for pair in before if pair in after]
    for pair in pairs:
        for kind in before[pair].keys() & after[pair].keys():
            change = after[pair][kind] - before[pair][kind]
            more[kind] += max(0, change)
            fewer[kind] += max(0, -change)
    kinds = sorted(+more | +fewer)
    is_worse, is_better = (any(count[kind] > allowed.get(kind, 0) for kind in kinds) for count in (more, fewer))
    changes = [
        f"{count[kind]} {kind} {word}" for kind in kinds for count, word in ((more, "more"), (fewer, "fewer")) if count[kind]
    ]
    finding: ComparisonFinding = (
        "trade-off" if is_worse and is_better else "worse" if is_worse else "better" if is_better else "equal"
    )
    return ("not measured", "no pair") if not pairs else (finding, ", ".join(changes) or EQUAL)


def allowed_damage(texts: Iterable[str]) -> dict[str, int]:
    """Return kind of damage -> number of effects, read from texts like `doubled=0`.

    Raises ConfigError for a text of another form, or an unknown kind.
    """
    allowed = {}
    for text in texts:
        kind, _, number = text.partition("=")
        if not (number.isascii() and number.isdigit() and len(number) < len(str(MOST_ALLOWED))):
            raise ConfigError(f"--allow {text}: give a kind of damage and a number of effects, as in --allow doubled=0")
        if kind not in DAMAGES:
            raise ConfigError(f"--allow {text}: unknown kind of damage '{kind}'; {nearest(kind, DAMAGES)}")
        allowed[kind] = int(number)
    return allowed


def _assume(values: Mapping[Pair, bool | None], unknown: bool) -> dict[Pair, bool]:
    return {pair: unknown if value is None else value for pair, value in values.items()}


def _mean(values: Mapping[Any, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None
