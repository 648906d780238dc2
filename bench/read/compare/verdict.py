"""The verdict of a comparison of A and B. `bench compare` uses it for runs and for scorecards.

A measure of B beside A, with the margin m within which a difference counts as none:

    better         the difference is beyond m on the good side, and the 95% interval says so: of an amount it lies wholly beyond
                   m, of a rate beyond 0
    worse          the same on the bad side
    no worse       the interval's bad end is within m
    no better      its good end is within m
    equal          both ends are within m, or nothing differs in any pair
    inconclusive   anything else

Each measure is taken over all arms first. An arm by itself is better or worse only if an exact test of its pairs says so too,
after Holm's correction over all arms and measures.

The levels are decided in order: quality first (what is solved, what is damaged), then what is spent.

    worse, better  a measure of this level is, no measure of it is the contrary, and every earlier level is settled that way
    trade-off      one measure of this level is better, and another is worse
    no worse, no better, equal   no level decides, and this holds for every measure
    inconclusive   anything else

An earlier level is settled that way if it is no better (for worse) or no worse (for better), or the same in every pair.

Exchange of A and B exchanges worse and better, and no worse and no better; the other words stay. So B is never worse than A
while A is worse than B.

Damage is counted, not estimated, if nothing in a trial is left to chance (the replies of both sides are simulated or recorded):
a single pair in which B damages more is a counterexample, and a rerun shows it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from bench.common.errors import ConfigError, nearest
from bench.read.analysis import statistics
from bench.read.analysis.measure import Measure
from bench.read.analysis.statistics import Mean, Pair, RateDifference
from bench.record.worlds.damage import DAMAGES

ComparisonFinding = Literal["worse", "better", "trade-off", "equal", "no worse", "no better", "inconclusive", "not measured"]
ComparisonVerdict = Literal["worse", "better", "trade-off", "equal", "no worse", "no better", "inconclusive"]
VERDICTS: tuple[ComparisonVerdict, ...] = get_args(ComparisonVerdict)
LEVEL = 0.05
ALIKE = 6
"""From this many pairs on, a difference that is the same in each is no chance: the signs alone have p = 2 / 2^6 = 0.03."""
MOST_ALLOWED = 10**6
REASONS: Mapping[ComparisonFinding, str] = {
    "better": "it is better by more than the margin, and not by chance",
    "worse": "it is worse by more than the margin, and not by chance",
    "equal": "the interval is within the margin",
    "no worse": "the bad end of the interval is within the margin",
    "no better": "the good end of the interval is within the margin",
    "inconclusive": "the interval includes the margin",
}
EQUAL = "equal in every pair"
BY_CHANCE = "of so many tests, one may come out so by chance"

Harms = Mapping[str, int]
"""Kind of damage -> number of damaged effects."""


@dataclass(frozen=True)
class Contrast:
    """One measure in A and in B, and the interval of B minus A.

    low, high     None if there is no interval
    pairs         None if trials are not paired
    p             of an exact test that nothing differs, two-sided
    is_rate       whether it is a rate, and no amount
    more_is_good  False for what is spent or damaged
    alike         whether the measure is the same in every pair
    why           why there is no interval
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
    alike: bool = False
    why: str = ""


class JudgedMeasure(NamedTuple):
    """The finding on one measure. `alike` means that the measure is the same in every pair, even if there are too few pairs for
    a verdict."""

    finding: ComparisonFinding
    alike: bool = False


class Level(NamedTuple):
    """Findings that are decided together: the measures over all arms, and the findings on single arms."""

    overall: Sequence[JudgedMeasure]
    arms: Sequence[ComparisonFinding]


def contrast_of_rates(
    before: Mapping[Pair, bool | None], after: Mapping[Pair, bool | None], margin: float, *, more_is_good: bool
) -> tuple[Contrast, RateDifference]:
    """Return the contrast of two rates, pair by pair, and their difference. A pair with an unknown value is left out of the
    difference.

    An unknown value (None, of a trial that ended in an error) counts against either finding: the interval reaches from the low
    end where all of them speak for A to the high end where all of them speak for B.
    """
    known = [{pair: value for pair, value in side.items() if value is not None} for side in (before, after)]
    difference = statistics.paired_rates(known[1], known[0])
    extremes = [(_assumed(before, not best), _assumed(after, best)) for best in (False, True)]
    at_worst, at_best = (statistics.paired_rates(second, first) for first, second in extremes)
    tests = [statistics.mcnemar_test(second, first).p for first, second in extremes]
    why = (
        "no trial was graded in both runs" if not at_worst.pairs else "one pair has no interval" if at_worst.pairs == 1 else ""
    )
    first, second = statistics.in_common(*known)
    contrast = Contrast(
        before=_mean(first),
        after=_mean(second),
        low=None if why else at_worst.low,
        high=None if why else at_best.high,
        margin=margin,
        pairs=difference.pairs,
        p=max((p for p in tests if p is not None), default=None),
        is_rate=True,
        more_is_good=more_is_good,
        alike=bool(first) and first == second and len(first) == at_worst.pairs,
        why=why,
    )
    return contrast, difference


def contrast_of_amounts(
    before: Mapping[Pair, float], after: Mapping[Pair, float], margin: float, measure: Measure = "spent"
) -> tuple[Contrast, Mean]:
    """Return the contrast of two amounts, pair by pair, and their mean difference. A smaller amount is better. The margin is a
    share of the smaller mean."""
    first, second = statistics.in_common(before, after)
    base, other = (_mean(statistics.by_unit(side)) for side in (first, second))
    difference = statistics.paired_difference(second, first, measure).difference
    low, high, why = difference.low, difference.high, ""
    alike = bool(first) and first == second
    if low is None:
        why = "no trial was graded in both runs" if not difference.n else "one pair has no interval"
    elif not (alike or statistics.has_width(difference) or difference.n >= ALIKE):
        low, high = None, None
        why = f"the same in each of {difference.n} pairs, of which {ALIKE} are needed"
    contrast = Contrast(
        before=base,
        after=other,
        low=low,
        high=high,
        margin=margin * min(base or 0.0, other or 0.0),
        pairs=len(first),
        p=statistics.paired_test(second, first).p,
        is_rate=False,
        more_is_good=False,
        alike=alike,
        why=why,
    )
    return contrast, difference


def finding_of(contrast: Contrast, is_proven: bool = True) -> ComparisonFinding:
    """Return the finding that the interval gives. `is_proven` says whether the measure can count as better or worse, if the
    interval lies far enough from 0."""
    if None in (contrast.low, contrast.high, contrast.before, contrast.after):
        return "inconclusive"
    sign = 1 if contrast.more_is_good else -1
    gain = sign * ((contrast.after or 0.0) - (contrast.before or 0.0))
    low, high = sorted((sign * (contrast.low or 0.0), sign * (contrast.high or 0.0)))
    margin, least = contrast.margin, 0.0 if contrast.is_rate else contrast.margin
    if is_proven and low > least and gain > margin:
        return "better"
    if is_proven and high < -least and gain < -margin:
        return "worse"
    no_worse, no_better = low >= -margin, high <= margin
    return "equal" if no_worse and no_better else "no worse" if no_worse else "no better" if no_better else "inconclusive"


def proven(contrasts: Sequence[Contrast]) -> list[bool]:
    """Return the measures that differ by an exact test, after Holm's correction over all measures that could be tested."""
    tested = {place: contrast.p for place, contrast in enumerate(contrasts) if contrast.p is not None}
    adjusted = statistics.holm(tested)
    return [(adjusted.get(place) or 0.0) < LEVEL if place in adjusted else False for place in range(len(contrasts))]


def verdict_of(levels: Iterable[Level]) -> ComparisonVerdict:
    """Return the verdict that all levels give together."""
    may_be_better = may_be_worse = False
    judged: set[ComparisonFinding] = set()
    for level in levels:
        measured = [each for each in level.overall if each.finding != "not measured"]
        findings = {*(each.finding for each in measured), *level.arms}
        is_worse, is_better = (not findings.isdisjoint({word, "trade-off"}) for word in ("worse", "better"))
        if is_worse and is_better:
            return "inconclusive" if may_be_better or may_be_worse else "trade-off"
        if is_worse or is_better:
            return "inconclusive" if (may_be_better if is_worse else may_be_worse) else "worse" if is_worse else "better"
        doubtful = {each.finding for each in measured if not each.alike}
        may_be_better = may_be_better or not doubtful.isdisjoint({"no worse", "inconclusive"})
        may_be_worse = may_be_worse or not doubtful.isdisjoint({"no better", "inconclusive"})
        judged |= {each.finding for each in measured}
    no_worse, no_better = (bool(judged) and judged <= {"equal", word} for word in ("no worse", "no better"))
    return "equal" if no_worse and no_better else "no worse" if no_worse else "no better" if no_better else "inconclusive"


# Damage


def counterexamples(
    before: Mapping[Pair, Harms], after: Mapping[Pair, Harms], allowed: Mapping[str, int]
) -> tuple[ComparisonFinding, str]:
    """Return the finding on damage, and a text with how many more and how many fewer effects B damages than A, by kind.

    Args:
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


def _assumed(values: Mapping[Pair, bool | None], unknown: bool) -> dict[Pair, bool]:
    return {pair: unknown if value is None else value for pair, value in values.items()}


def _mean(values: Mapping[Any, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None
