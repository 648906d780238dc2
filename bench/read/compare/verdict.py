"""The findings and the verdict of `bench compare`. Its gate is a few measures that its owner names, with one pooled test each.

The finding on a measure of B beside A, over all pairs, with the margin m that the owner allows:

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

The verdict on the measures together. Quality, which is what is solved and damaged, goes before what is spent:

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
MAX_ALLOWED_EFFECTS = 10**6
RULE_OF_THREE = 3
"""An event that none of n trials showed has a chance of at most 3 / n, at 95%. Source: Hanley and Lippman-Hand, JAMA 249
(1983)."""
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

    low, high     the interval; None if there is none
    margin        how much worse B may be, in the unit of the measure
    pairs         the number of pairs; None if trials are not paired
    p             the two-sided p of an exact test that nothing differs
    is_rate       whether the measure is a rate; else it is an amount
    more_is_good  whether a higher value is better; False for what is spent or damaged
    within        whether the bound of B's loss is within the margin
    alike         whether the measure is the same in every pair
    least         the least p that the units that differ can give
    shows         the loss that these pairs would find with 80% power; None if unknown
    needed        the number of units that would find a loss of the margin with 80% power; None if unknown
    why           why nothing can be concluded, or ""
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
    """The finding on one measure. `is_quality`: whether it measures what is solved or damaged, and not what is spent."""

    finding: ComparisonFinding
    is_quality: bool


def compare_rates(
    before: Mapping[Pair, bool | None], after: Mapping[Pair, bool | None], margin: float, *, more_is_good: bool
) -> tuple[MeasureChange, RateDifference]:
    """Compare a rate in A and in B, pair by pair.

    A value is unknown (None) if the trial ended in an error. Its pair is left out of the difference, but counts against every
    finding: the interval's low end assumes that all unknown values speak for A, and its high end that all speak for B.

    Args:
        before: Pair -> whether A's trial succeeded; None if that is unknown.
        after: Pair -> whether B's trial succeeded.
        margin: How much lower B's rate may be, or higher if more is bad; a share of 1.
        more_is_good: Whether success is good, as *solved* is and *damaged* is not.

    Returns:
        The change with its test, and the difference B minus A with its interval.
    """
    known_before, known_after = (
        {pair: value for pair, value in values.items() if value is not None} for values in (before, after)
    )
    difference = statistics.paired_rates(known_after, known_before)
    # B's values and A's: first with the unknown values as A would have them, then as B would.
    extremes = [(_with_unknown_as(after, is_best), _with_unknown_as(before, not is_best)) for is_best in (False, True)]
    at_worst, at_best = (statistics.paired_rates(*values) for values in extremes)
    tests = [statistics.mcnemar_test(*values) for values in extremes]
    differences = [statistics.mean_of(statistics.differences_of(*statistics.in_common(*values))) for values in extremes]
    widest = max(differences, key=lambda mean: mean.sd or 0.0)
    units = min(_count_units(*values) for values in extremes)
    would_show_margin = units > 0 and (1 - margin) ** units <= LEVEL
    loss = -(at_worst.low or 0.0) if more_is_good else (at_best.high or 0.0)  # the greatest loss within the interval
    first, second = statistics.in_common(known_before, known_after)
    unseen_loss = 1 - LEVEL ** (1 / units) if units else 1.0  # the greatest loss that so many units may all miss
    shows, needed = _power(widest, margin, widest.sd)
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
        within=would_show_margin and loss <= margin,
        alike=bool(first) and first == second and len(first) == at_worst.pairs,
        least=max((test.least for test in tests if test.least is not None), default=None),
        shows=max(unseen_loss, shows or 0.0),
        needed=max(needed or 0, math.ceil(math.log(LEVEL) / math.log(1 - margin))) if 0 < margin < 1 else None,
        why=_too_few_reason(at_worst.pairs),
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
        before: Pair -> A's amount.
        after: Pair -> B's amount.
        margin: How much more B may take: a share of the smaller mean, or in the unit of the amounts if `unseen` is given.
        measure: What the amounts measure.
        unseen: The loss that is assumed of a rare failure which no pair shows; None for the smaller mean.
        noise: Differences of units between A and earlier runs like A. Their spread counts like the spread of B minus A.

    Returns:
        The change with its test, and the mean of B minus A with its interval.
    """
    first, second = statistics.in_common(before, after)
    first_mean, second_mean = (_mean(statistics.by_unit(values)) for values in (first, second))
    difference = statistics.paired_difference(second, first, measure).difference
    smaller = min(first_mean or 0.0, second_mean or 0.0)
    if unseen is None:
        allowed, unseen = margin * smaller, smaller
        beyond_margin = {pair: value - (1 + margin) * first[pair] for pair, value in second.items()}
    else:
        allowed = margin
        beyond_margin = {pair: value - first[pair] - margin for pair, value in second.items()}
    rare = unseen * difference.n / max(1, len(first))  # the mean loss of a unit of which one pair has the unseen loss
    test = statistics.paired_test(second, first)
    spread = _spread(statistics.differences_of(second, first), noise)
    shows, needed = _power(difference, allowed, spread, RULE_OF_THREE * rare)
    change = MeasureChange(
        before=first_mean,
        after=second_mean,
        low=difference.low,
        high=difference.high,
        margin=allowed,
        pairs=len(first),
        p=test.p,
        is_rate=False,
        more_is_good=False,
        within=_is_below_0(beyond_margin, rare - allowed, noise),
        alike=bool(first) and first == second,
        least=test.least,
        shows=shows,
        needed=needed,
        why=_too_few_reason(difference.n),
    )
    return change, difference


def finding_of(change: MeasureChange, p: float | None) -> ComparisonFinding:
    """Return the finding on a measure. `p` is the p of its test; for an arm by itself, p after the correction over all arms."""
    if change.why or change.before is None or change.after is None:
        return "undecided"
    gain = (change.after - change.before) * (1 if change.more_is_good else -1)
    if p is not None and p < LEVEL and abs(gain) > change.margin:
        return "worse" if gain < 0 else "better"
    return "no worse" if change.within else "undecided"


def floor_reason(change: MeasureChange, family: int = 1) -> str:
    """Return why no difference of this measure could be told from chance after a correction for `family` tests: too few units
    differ. "" if a difference could be told."""
    if change.least is None or change.least * family < LEVEL:
        return ""
    differ = "at most 1" if change.least >= 1 else round(1 - math.log2(change.least))  # the least p is 2 / 2^differ
    needed = math.floor(math.log2(2 * family / LEVEL)) + 1
    return f"{differ} of the {needed} units that must differ do (floor)"


def verdict_of(measures: Iterable[GatedMeasure], missing: bool = False) -> ComparisonVerdict:
    """Return the verdict that the measures of a gate give together. `missing`: whether arms or pairs of A are missing in B."""
    measured = [measure for measure in measures if measure.finding != "not measured"]
    quality = {measure.finding for measure in measured if measure.is_quality}
    spent = {measure.finding for measure in measured if not measure.is_quality}
    findings = quality | spent
    if "trade-off" in quality or {"worse", "better"} <= quality:
        return "trade-off"
    if "worse" in quality:
        return "worse"
    if "worse" in spent:
        return "trade-off" if "better" in findings else "worse"
    if missing or not findings or "undecided" in findings:
        return "undecided"
    if "better" in findings:
        return "better"
    return "equal" if findings == {"equal"} else "no worse"


def holm_corrected(ps: Sequence[float | None]) -> list[float | None]:
    """Return each p after Holm's correction over the p that are not None."""
    adjusted = statistics.holm({index: p for index, p in enumerate(ps) if p is not None})
    return [adjusted.get(index) for index in range(len(ps))]


def _is_below_0(values: Mapping[Pair, float], rare: float, noise: Sequence[float]) -> bool:
    """Whether two tests refute that the mean of the units is 0 or more: the sign-flip test, and Student's t with `rare` as one
    more unit and with a spread that includes the noise."""
    units = list(statistics.by_unit(values).values())
    with_rare = [*units, rare]
    mean, error = math.fsum(with_rare) / len(with_rare), _spread(with_rare, noise) / math.sqrt(len(with_rare))
    if len(units) < 2 or mean >= 0 or math.fsum(units) >= 0:
        return False
    p_of_t = float(special.stdtr(len(units) + len(noise), mean / error)) if error else 0.0
    return p_of_t <= LEVEL / 2 and (statistics.sign_flip_test(units).p or 1.0) / 2 <= LEVEL


def _spread(values: Sequence[float], noise: Sequence[float]) -> float:
    """Return the standard deviation of the values about their mean, pooled with that of the noise about 0."""
    mean, degrees = math.fsum(values) / max(1, len(values)), len(values) - 1 + len(noise)
    squares = [(value - mean) ** 2 for value in values] + [value**2 for value in noise]
    return math.sqrt(math.fsum(squares) / degrees) if degrees > 0 else 0.0


def _power(difference: Mean, margin: float, spread: float | None, unseen: float = 0.0) -> tuple[float | None, int | None]:
    """Return the loss that this many units would find with 80% power, and the number of units that would find a loss of the
    margin. `unseen` is the loss of a unit with a rare failure, times RULE_OF_THREE."""
    if not spread or difference.n < 2:
        return None, None
    required = statistics.required_pairs(margin, Mean(difference.n, difference.mean, spread, None, None))
    least_units = max(math.ceil(1 - math.log2(LEVEL)), math.ceil(unseen / margin) if margin else 0)
    return statistics.found_difference(margin, spread, difference.n), max(least_units, required.plain) if required else None


def _count_units(after: Mapping[Pair, bool], before: Mapping[Pair, bool]) -> float:
    """Return the effective number of independent units in the pairs that both have."""
    ours, theirs = statistics.in_common(after, before)
    return statistics.effective_number([unit for unit, _ in ours], [ours[pair] - theirs[pair] for pair in ours])


def _too_few_reason(units: int) -> str:
    """Return why so few units have no interval; "" for two or more."""
    return "" if units > 1 else ("one pair has no interval" if units else "no trial has a value in both runs")


# Damage


def compare_damage(
    before: Mapping[Pair, Harms], after: Mapping[Pair, Harms], allowed: Mapping[str, int]
) -> tuple[ComparisonFinding, str]:
    """Return the finding on damage, and a text with how many more and how many fewer effects B damages than A, by kind.

    Args:
        before: Pair -> the damaged effects of A's trial, by kind.
        after: Pair -> the damaged effects of B's trial, by kind.
        allowed: Kind of damage -> how many more damaged effects are allowed; 0 for a kind that it does not have.
    """
    more, fewer = Counter[str](), Counter[str]()
    pairs = [pair for pair in before if pair in after]
    for pair in pairs:
        for kind in before[pair].keys() & after[pair].keys():
            change = after[pair][kind] - before[pair][kind]
            more[kind] += max(0, change)
            fewer[kind] += max(0, -change)
    kinds = sorted(+more | +fewer)
    is_worse = any(more[kind] > allowed.get(kind, 0) for kind in kinds)
    is_better = any(fewer[kind] > allowed.get(kind, 0) for kind in kinds)
    changes = list[str]()
    for kind in kinds:
        changes += [f"{more[kind]} {kind} more"] if more[kind] else []
        changes += [f"{fewer[kind]} {kind} fewer"] if fewer[kind] else []
    if not pairs:
        return "not measured", "no pair"
    text = ", ".join(changes) or EQUAL
    if is_worse:
        return ("trade-off" if is_better else "worse"), text
    return ("better" if is_better else "equal"), text


def allowed_damage(texts: Iterable[str]) -> dict[str, int]:
    """Return kind of damage -> how many more damaged effects are allowed, read from texts like `doubled=0`. Raises ConfigError
    for a text of another form, or an unknown kind."""
    allowed = {}
    for text in texts:
        kind, _, number = text.partition("=")
        if not (number.isascii() and number.isdigit() and len(number) < len(str(MAX_ALLOWED_EFFECTS))):
            raise ConfigError(f"--allow {text}: give a kind of damage and a number of effects, as in --allow doubled=0")
        if kind not in DAMAGES:
            raise ConfigError(f"--allow {text}: unknown kind of damage '{kind}'; {nearest(kind, DAMAGES)}")
        allowed[kind] = int(number)
    return allowed


def _with_unknown_as(values: Mapping[Pair, bool | None], unknown: bool) -> dict[Pair, bool]:
    """Return the values, with `unknown` in place of each unknown value."""
    return {pair: unknown if value is None else value for pair, value in values.items()}


def _mean(values: Mapping[Any, float]) -> float | None:
    """Return the mean of the values; None if there are none."""
    return sum(values.values()) / len(values) if values else None
