"""Each statistic says how sure it is, and None where it cannot be known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from bench.read.analysis.statistics import (
    Denominators,
    Mean,
    Measure,
    Pair,
    PairedTest,
    Ratio,
    RequiredPairs,
    Share,
    amount_of,
    by_unit,
    exact_share,
    generator,
    has_width,
    holm,
    limits_of,
    mean_of,
    median,
    paired_difference,
    paired_rates,
    paired_test,
    ranking_depends,
    ratio_of_means,
    required_pairs,
    share_by_instance,
    share_of,
    sign_flip_test,
)
from bench.read.analysis.statistics.power import power_of

NUMBERS = st.floats(-1e6, 1e6)
WHOLE = st.integers(0, 10_000).map(float)
CHANCES = st.floats(0, 1)
Value = TypeVar("Value")


def by_number(values: list[float]) -> dict[Pair, float]:
    return of(dict(enumerate(values)))


def of(values: Mapping[int, Value], instance: str = "") -> dict[Pair, Value]:
    """These values by repetition, as those of one instance."""
    return {(instance, repetition): value for repetition, value in values.items()}


def nothing(pairs: int) -> dict[Pair, float]:
    return by_number([0.0] * pairs)


# A mean


def test_the_interval_of_a_mean_is_students() -> None:
    mean = mean_of([4.0, 5.0, 6.0, 7.0])  # t(0.975, 3) = 3.182446, sd = 1.290994
    assert (mean.n, mean.mean) == (4, 5.5)
    assert mean.sd == pytest.approx(1.290994, abs=1e-6)
    assert [mean.low, mean.high] == pytest.approx([3.445740, 7.554260], abs=1e-5)


def test_of_nothing_nothing_is_known() -> None:
    assert mean_of([]) == Mean(0, None, None, None, None)
    assert share_of(0, 0).rate is None
    assert median([]) is None


def test_one_value_has_a_mean_but_no_spread() -> None:
    assert mean_of([3.0]) == Mean(1, 3.0, None, None, None)


def test_equal_values_have_a_spread_of_nothing() -> None:
    assert mean_of([0.1, 0.1, 0.1]) == Mean(3, 0.1, 0.0, 0.1, 0.1)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no finite number"):
        mean_of([1.0, value])


@given(st.lists(NUMBERS, min_size=2, max_size=30))
def test_a_mean_lies_in_its_interval_and_among_its_values(values: list[float]) -> None:
    mean = mean_of(values)
    assert mean.mean is not None and mean.low is not None and mean.high is not None
    assert mean.low <= mean.mean <= mean.high
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= mean.mean <= max(values) + slack


def test_an_amounts_interval_is_students_on_the_logarithm() -> None:
    amount, plain = amount_of([4.0, 5.0, 6.0, 7.0]), mean_of([4.0, 5.0, 6.0, 7.0])
    assert (amount.n, amount.mean, amount.sd) == (plain.n, plain.mean, plain.sd)
    factor = math.exp(3.182446 * 1.290994 / 2 / 5.5)  # by t(3) sd / sqrt(n) / mean
    assert [amount.low, amount.high] == pytest.approx([5.5 / factor, 5.5 * factor], abs=1e-4)


def test_a_scores_interval_is_students_on_the_logit() -> None:
    amount = amount_of([0.0, 0.5, 1.0, 0.5], "score")  # the mean's odds are 1, sd = 0.408248
    factor = math.exp(3.182446 * 0.408248 / 2 / 0.25)
    assert [amount.low, amount.high] == pytest.approx([1 / (1 + factor), factor / (1 + factor)], abs=1e-5)


@given(st.lists(WHOLE, min_size=2, max_size=30).filter(lambda values: len(set(values)) > 1))
def test_no_amount_may_lie_below_nothing_nor_a_score_above_one(values: list[float]) -> None:
    amount, score = amount_of(values), amount_of([value / 10_000 for value in values], "score")
    for bounded, least, most in ((amount, 0.0, math.inf), (score, 0.0, 1.0)):
        assert bounded.low is not None and bounded.mean is not None and bounded.high is not None
        assert least <= bounded.low < bounded.mean < bounded.high <= most


@given(st.lists(st.floats(1.0, 1.02), min_size=3, max_size=30))
def test_where_values_lie_close_together_an_amounts_interval_is_that_of_a_difference(values: list[float]) -> None:
    amount, plain = amount_of(values), mean_of(values)
    assert [amount.low, amount.high] == pytest.approx([plain.low, plain.high], abs=2e-3)


@pytest.mark.parametrize(("values", "measure"), [([1.0, -0.1], "retry"), ([1.0, 1.1], "score")])
def test_an_amount_out_of_its_bounds_is_refused(values: list[float], measure: Measure) -> None:
    with pytest.raises(ValueError, match=f"a value of {measure} is out of its bounds"):
        amount_of(values, measure)


@pytest.mark.parametrize(
    ("result", "width"),
    [
        (mean_of([1.0, 2.0]), True),
        (mean_of([1.0]), False),
        (amount_of([0.0, 0.0, 0.0]), False),
        (ratio_of_means({1: 0.3, 2: 0.9, 3: 2.1}, {1: 0.1, 2: 0.3, 3: 0.7}), False),
        (share_of(0, 5), True),
        (share_of(0, 0), False),
    ],
)
def test_equal_values_have_an_interval_without_width_but_for_rounding(result: Mean | Ratio | Share, width: bool) -> None:
    assert has_width(result) is width


@pytest.mark.parametrize(("values", "middle"), [([3.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 3.0], 2.5)])
def test_the_median_is_the_middle(values: list[float], middle: float) -> None:
    assert median(values) == middle


def test_a_declared_generator_begins_anew_each_time() -> None:
    assert generator().random() == generator().random()


# Pairs


def test_pairing_takes_out_what_the_two_have_in_common() -> None:
    others = of({1: 100.0, 2: 900.0, 3: 500.0})
    difference = paired_difference({key: value + 10.0 for key, value in others.items()}, others)
    assert difference.difference == Mean(3, 10.0, 0.0, 10.0, 10.0)


def test_values_without_a_counterpart_are_left_out_and_counted() -> None:
    difference = paired_difference(of({1: 5.0, 2: 6.0, 3: 7.0}), of({1: 1.0, 4: 0.0}))
    assert (difference.difference.n, difference.pairs, difference.difference.mean, difference.unpaired) == (1, 1, 4.0, 3)


def test_darwins_plants_give_fishers_own_p() -> None:
    # Eighths of an inch, crossed less self-fertilised: Fisher, The Design of Experiments (1935), sections 17 and 21.
    differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    test = paired_test(by_number([*map(float, differences)]), nothing(15))
    assert test.p == pytest.approx(1726 / 32768, abs=1e-12)
    assert test.least == 2 / 2**15


@example([1e-10, 1e-10])
@example([1e-308, 1e-308])
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12).filter(lambda values: any(map(abs, values))))
def test_on_the_grid_p_is_never_below_the_p_of_all_flips_and_hardly_above(differences: list[float]) -> None:
    flips = np.array([*itertools.product((1, -1), repeat=len(differences))]) @ np.array(differences)
    near = 1e-9 * sum(map(abs, differences))
    exact = np.mean(np.abs(flips) >= abs(sum(differences)) - near)
    coarse = np.mean(np.abs(flips) >= abs(sum(differences)) - 4e-5 * sum(map(abs, differences)))
    assert exact - 1e-12 <= (sign_flip_test(differences).p or 0.0) <= coarse + 1e-12


def test_means_of_repetitions_are_tested_exactly_and_their_ties_count() -> None:
    thirds, whole = [1 / 3, 2 / 3, -1.0, 5 / 3, 4 / 3, 7 / 3, 2.0], [1, 2, -3, 5, 4, 7, 6]
    assert (
        sign_flip_test(thirds).p
        == sign_flip_test(list(map(float, whole))).p
        == sign_flip_test([each * 1e4 for each in whole]).p
    )


def test_pairs_without_a_difference_do_not_count_for_the_least_p() -> None:
    assert sign_flip_test([3.0] * 16 + [0.0] * 24) == PairedTest(40, 2 / 2**16, 2 / 2**16, 16)


def test_many_pairs_without_a_difference_are_no_finding() -> None:
    values = by_number([4.0] * 40)
    assert paired_test(values, values).p == 1.0


@given(st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=6))
def test_the_flips_are_all_counted(differences: list[float]) -> None:
    test = paired_test(by_number(differences), nothing(len(differences)))
    sums = [sum(map(lambda d, s: d * s, differences, signs)) for signs in itertools.product((1, -1), repeat=len(differences))]
    assert test.p == pytest.approx(np.mean([abs(each) >= abs(sum(differences)) for each in sums]))


def test_flips_are_those_of_scipy() -> None:
    few = [3.0, -1.0, 4.0, 4.0, 1.5, -2.5, 6.0]
    of_scipy = stats.permutation_test((few,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True)
    assert paired_test(by_number(few), nothing(7)).p == pytest.approx(of_scipy.pvalue, rel=1e-12)


def test_sums_that_differ_by_rounding_alone_are_equal() -> None:
    differences = [0.1, 0.2, -0.3, 0.7, -0.7, 0.6, -0.6] * 3  # their sum is 0, but not to the last digit
    assert paired_test(by_number(differences), nothing(21)).p == 1.0


def test_so_few_pairs_cannot_find_anything_and_say_so() -> None:
    test = paired_test(of({1: 5.0, 2: 9.0, 3: 7.0}), of({1: 1.0, 2: 1.0, 3: 1.0}))
    assert (test.p, test.least) == (0.25, 0.25)
    assert paired_test(of({1: 1.0}), of({2: 1.0})) == PairedTest(0, None, None)
    assert paired_test(of({1: 1.0}), of({1: 1.0})) == PairedTest(1, 1.0, 1.0)
    assert paired_test(of({1: 3.0}), of({1: 1.0})) == PairedTest(1, 1.0, 1.0, 1)


def test_a_ratios_interval_is_students_on_the_logarithm() -> None:
    values = by_number([933.0, 1100.0, 870.0, 990.0, 1020.0])
    other = by_number([703.0, 760.0, 640.0, 720.0, 650.0])
    result = ratio_of_means(values, other)
    ratio = 4913 / 3473
    rest = np.array([*values.values()]) - ratio * np.array([*other.values()])
    factor = math.exp(2.776445 * float(rest.std(ddof=1)) / math.sqrt(5) / (4913 / 5))
    assert [result.ratio, result.low, result.high] == pytest.approx([ratio, ratio / factor, ratio * factor], rel=1e-6)


def test_a_ratio_that_the_data_do_not_bear_has_no_bounds() -> None:
    assert ratio_of_means({1: 0.0, 2: 0.0}, {1: 1.0, 2: 2.0}) == Ratio(2, 0.0, None, None)
    with pytest.raises(ValueError, match="out of its bounds"):
        ratio_of_means({1: 2.0, 2: 3.0}, {1: 1.0, 2: -0.5})
    assert ratio_of_means({1: 2.0}, {1: 4.0}) == Ratio(1, 0.5, None, None)
    assert ratio_of_means({1: 2.0}, {1: 0.0}) == Ratio(1, None, None, None)
    assert ratio_of_means({1: 2.0}, {2: 1.0}) == Ratio(0, None, None, None)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=2, max_size=12))
def test_a_ratio_lies_in_its_interval(pairs: list[tuple[float, float]]) -> None:
    ratio = ratio_of_means(by_number([first for first, _ in pairs]), by_number([other for _, other in pairs]))
    assert ratio.ratio is not None
    assert ratio.low is not None and ratio.high is not None
    assert 0 < ratio.low <= ratio.ratio * (1 + 1e-6) and ratio.ratio <= ratio.high * (1 + 1e-6)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=2, max_size=12))
def test_a_ratio_upside_down_has_its_interval_upside_down(pairs: list[tuple[float, float]]) -> None:
    sides = by_number([first for first, _ in pairs]), by_number([other for _, other in pairs])
    ratio, turned = ratio_of_means(*sides), ratio_of_means(*reversed(sides))
    assert turned.low is not None and turned.high is not None
    assert [ratio.low, ratio.high] == pytest.approx([1 / turned.high, 1 / turned.low], rel=1e-6)


# Rates


def test_a_share_has_wilsons_interval() -> None:
    share = share_of(8, 10)
    assert share.rate == 0.8
    assert [share.low, share.high] == pytest.approx([0.490162, 0.943318], abs=1e-6)


def test_intervals_of_shares_are_those_of_scipy() -> None:
    for n in (1, 7, 60):
        for k in range(n + 1):
            test = stats.binomtest(k, n)
            for share, method in ((share_of(k, n), "wilson"), (exact_share(k, n), "exact")):
                interval = test.proportion_ci(0.95, method=method)
                assert [share.low, share.high] == pytest.approx([interval.low, interval.high], abs=1e-12)


def test_a_share_of_none_or_all_still_has_an_interval() -> None:
    none, every = share_of(0, 10), share_of(10, 10)
    assert none.low == pytest.approx(0.0) and none.high == pytest.approx(0.277533, abs=1e-6)
    assert every.low == pytest.approx(0.722467, abs=1e-6) and every.high == pytest.approx(1.0)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3)])
def test_what_is_no_share_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        share_of(k, n)


def test_the_paired_difference_of_rates_is_bonetts_and_prices() -> None:
    values = of({n: n < 8 for n in range(10)})  # of ten pairs five are gained and one is lost
    others = of({n: n < 3 or n == 9 for n in range(10)} | {10: True})
    difference = paired_rates(values, others)
    assert (difference.pairs, difference.gained, difference.lost, difference.difference, difference.unpaired) == (
        10,
        5,
        1,
        0.4,
        1,
    )
    half = 1.959964 * math.sqrt((6 / 12 + 2 / 12 - (4 / 12) ** 2) / 12)
    assert [difference.low, difference.high] == pytest.approx([4 / 12 - half, 4 / 12 + half], abs=1e-6)


def test_rates_without_a_pair_have_no_difference() -> None:
    empty = paired_rates(of({1: True}), of({2: True}))
    assert (empty.pairs, empty.difference, empty.low, empty.unpaired) == (0, None, None, 2)


@pytest.mark.parametrize(
    ("first", "other", "depends"),
    [
        ((8, 2, 0), (5, 5, 0), False),  # no errors: nothing to depend on
        ((6, 2, 2), (7, 3, 0), True),  # 6/8 > 7/10, but 6/10 < 7/10
        ((9, 0, 1), (2, 7, 1), False),  # even at its worst ahead of the other's best
        ((5, 4, 1), (5, 4, 1), True),  # equal in each way, but not if one's error is a success and the other's is not
        ((3, 7, 0), (3, 7, 0), False),
        ((0, 0, 5), (1, 4, 0), True),
    ],
)
def test_a_ranking_depends_on_errors_where_a_way_to_count_them_turns_it(
    first: tuple[int, int, int], other: tuple[int, int, int], depends: bool
) -> None:
    assert ranking_depends(counted(*first), counted(*other)) is depends
    assert ranking_depends(counted(*other), counted(*first)) is depends


def counted(solved: int, unsolved: int, errors: int) -> Denominators:
    n = solved + unsolved + errors
    return Denominators(share_of(solved, solved + unsolved), share_of(solved, n), share_of(solved + errors, n))


# Families, power


def test_holms_steps_are_those_of_a_worked_example() -> None:
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert list(adjusted) == ["a", "b", "c", "d"]


def test_a_declared_test_that_could_not_be_made_still_counts() -> None:
    assert holm({"a": 0.02, "b": None}) == {"a": 0.04, "b": None}
    assert holm({}) == {}
    with pytest.raises(ValueError, match="p-value"):
        holm({"a": math.nan})


@given(st.lists(CHANCES, min_size=1, max_size=10))
def test_holm_never_lowers_a_p_nor_changes_their_order(ps: list[float]) -> None:
    result = [each for each in holm(by_number(ps)).values() if each is not None]
    assert all(p <= adjusted <= min(1.0, len(ps) * p + 1e-12) for p, adjusted in zip(ps, result, strict=True))
    for (p, first), (q, other) in itertools.combinations(zip(ps, result, strict=True), 2):
        assert (first <= other) if p <= q else (first >= other)


def test_the_required_pairs_are_those_of_the_tables() -> None:
    pilot = Mean(10, 0.0, 2.0, None, None)
    assert required_pairs(1.0, pilot) == RequiredPairs(plain=34, cautious=55)  # d = 0.5, and 0.387 with the upper spread
    assert required_pairs(1.0, pilot, power=0.9) is not None
    assert power_of(0.5, 33) < 0.8 <= power_of(0.5, 34)
    strict = required_pairs(1.0, pilot, level=0.01)
    assert strict is not None and power_of(0.5, strict.plain - 1, 0.01) < 0.8 <= power_of(0.5, strict.plain, 0.01)
    assert strict.plain > 34


def test_what_cannot_be_planned_is_none_and_a_small_difference_takes_many() -> None:
    assert required_pairs(0.0, mean_of([1.0, 2.0])) is None
    assert required_pairs(1.0, mean_of([1.0, 1.0])) is None
    assert required_pairs(1.0, mean_of([1.0])) is None
    required = required_pairs(0.01, Mean(50, 0.0, 1.0, None, None))
    assert required is not None and required.plain == pytest.approx(78490, abs=2)
    with pytest.raises(ValueError, match="power"):
        required_pairs(1.0, mean_of([1.0, 2.0]), power=1.0)


# Several instances


def of_instances(values: Mapping[str, Sequence[Value]]) -> dict[Pair, Value]:
    return {(instance, place): value for instance, numbers in values.items() for place, value in enumerate(numbers, 1)}


@given(st.lists(WHOLE, min_size=1, max_size=8), st.lists(st.booleans(), min_size=1, max_size=8))
def test_one_instance_changes_no_number(values: list[float], held: list[bool]) -> None:
    assert list(by_unit(by_number(values)).values()) == values
    assert share_by_instance(["x"] * len(held), held) == share_of(sum(held), len(held))


def test_of_several_instances_each_counts_once_however_often_it_was_run() -> None:
    values = of_instances({"a": [1.0, 3.0] * 50, "b": [4.0], "c": [6.0, 8.0]})
    assert by_unit(values) == {"a": 2.0, "b": 4.0, "c": 7.0}
    others = dict.fromkeys(values, 0.0)
    difference = paired_difference(values, others)
    assert difference.difference == mean_of([2.0, 4.0, 7.0])
    assert (difference.pairs, difference.unpaired) == (103, 0)
    assert paired_test(values, others) == paired_test(by_number([2.0, 4.0, 7.0]), nothing(3))


def test_more_repetitions_of_the_same_tasks_do_not_narrow_a_rates_interval() -> None:
    few, many = (share_by_instance(["a"] * n + ["b"] * n + ["c"] * n, [True] * n + [False] * n + [True] * n) for n in (2, 200))
    assert (few.k, few.n, many.k, many.n) == (4, 6, 400, 600)
    assert few.rate == many.rate
    for result in (few, many):
        plain = share_of(result.k, result.n)
        assert result.low is not None and plain.low is not None and result.high is not None and plain.high is not None
        assert result.low < plain.low and plain.high < result.high
    three = share_of(2, 3)
    assert many.low is not None and three.low is not None and many.low <= three.low


def test_where_each_trial_is_an_instance_of_its_own_the_rates_interval_is_wilsons() -> None:
    assert share_by_instance(["a", "b", "c", "d"], [True, True, False, True]) == share_of(3, 4)


def test_instances_that_never_differ_count_once_each() -> None:
    share, three = share_by_instance(["a", "b", "c"] * 10, [False] * 30), share_of(0, 3)
    assert (share.k, share.n, share.low) == (0, 30, 0.0)
    assert share.high == pytest.approx(three.high)


def test_the_paired_difference_of_rates_counts_by_instance() -> None:
    gained = {"a": [True] * 20, "b": [True] * 20, "c": [True] * 20}
    difference = paired_rates(of_instances(gained), dict.fromkeys(of_instances(gained), False))
    three = paired_rates(of({1: True, 2: True, 3: True}), of({1: False, 2: False, 3: False}))
    assert (difference.pairs, difference.gained, difference.difference) == (60, 60, 1.0)
    assert (difference.low, difference.high) == pytest.approx((three.low, three.high))


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=40))
def test_a_rate_lies_in_its_interval_whatever_the_instances(trials: list[tuple[str, bool]]) -> None:
    share = share_by_instance([instance for instance, _ in trials], [held for _, held in trials])
    assert share.rate is not None and share.low is not None and share.high is not None
    assert 0.0 <= share.low <= share.rate + 1e-12 and share.rate <= share.high + 1e-12 <= 1.0 + 1e-9


# Limits


def test_a_number_is_shown_with_what_its_interval_does_not_hold() -> None:
    assert [limit.code for limit in limits_of(mean_of([1.0]))] == ["single"]
    assert [limit.code for limit in limits_of(amount_of([1.0, 2.0, 4.0]))] == ["coverage"]
    assert [limit.code for limit in limits_of(share_of(1, 5))] == ["coverage"]
    assert limits_of(mean_of([])) == limits_of(share_of(0, 0)) == ()
    (ten, _, five) = (limits_of(amount_of([1.0, *[2.0] * n], "retry"))[0] for n in (11, 9, 4))
    assert ten.measured is not None and five.measured is not None and ten.measured > five.measured


def test_a_limit_is_that_of_the_measure_and_of_means_or_differences() -> None:
    values = [1.0, 2.0, 2.0, 4.0, 8.0]
    result = [amount_of(values, "retry"), amount_of(values, "first_round"), mean_of(values, "first_round")]
    limits = [limit for each in result for limit in limits_of(each)]
    assert [limit.about for limit in limits] == ["mean of retry", "mean of first_round", "difference of first_round"]
    assert "a mean of retry tokens" in limits[0].text and "a mean difference of first rounds" in limits[2].text
    assert len({limit.measured for limit in limits}) == 3


def test_a_difference_of_rates_is_as_sure_as_it_says() -> None:
    for pairs in (3, 10, 164):
        assert limits_of(paired_rates(of({n: n % 2 == 0 for n in range(pairs)}), of(dict.fromkeys(range(pairs), True)))) == ()


def test_a_test_is_shown_with_what_it_cannot_find_and_what_it_finds_too_often() -> None:
    def of(pairs: int) -> list[str]:
        return [limit.code for limit in limits_of(PairedTest(pairs, 1.0, 2 / 2**pairs if pairs else None))]

    assert (of(0), of(5), of(6), of(12)) == ([], ["too_few"], ["shape"], ["shape"])
    assert [limit.code for limit in limits_of(Ratio(1, 2.0, None, None))] == ["single"]
    assert [limit.code for limit in limits_of(Ratio(5, 2.0, 1.0, 3.0))] == ["coverage"]


def test_between_two_sizes_that_were_calibrated_the_sign_flip_tests_worse_error_is_told() -> None:
    def errs(pairs: int) -> float | None:
        [limit] = limits_of(PairedTest(pairs, 1.0, 2 / 2**pairs))
        return limit.measured

    assert errs(6) == errs(10) < errs(15) == errs(20) == errs(30) > errs(60) == errs(40)  # type: ignore[operator]


def test_equal_values_say_how_common_the_unseen_may_be() -> None:
    (limit,) = limits_of(mean_of([7.0] * 10))
    assert limit.code == "no_spread" and "26% of trials" in limit.text  # 1 - 0.05^(1/10) = 0.2589
