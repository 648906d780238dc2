"""Each statistic says how sure it is, and None where it cannot be known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.statistics import Mean, mean_of, median, paired_difference, share_of

NUMBERS = st.floats(-1e6, 1e6)


def test_the_interval_of_a_mean_is_students() -> None:
    found = mean_of([4.0, 5.0, 6.0, 7.0])  # t(0.975, 3) = 3.182446, sd = 1.290994
    assert (found.n, found.mean) == (4, 5.5)
    assert found.sd == pytest.approx(1.290994, abs=1e-6)
    assert [found.low, found.high] == pytest.approx([3.445740, 7.554260], abs=1e-5)


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
    found = mean_of(values)
    assert found.mean is not None and found.low is not None and found.high is not None
    assert found.low <= found.mean <= found.high
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= found.mean <= max(values) + slack


def test_a_share_has_wilsons_interval() -> None:
    found = share_of(8, 10)
    assert found.rate == 0.8
    assert [found.low, found.high] == pytest.approx([0.490162, 0.943318], abs=1e-6)


def test_a_share_of_none_or_all_still_has_an_interval() -> None:
    none, every = share_of(0, 10), share_of(10, 10)
    assert none.low == pytest.approx(0.0) and none.high == pytest.approx(0.277533, abs=1e-6)
    assert every.low == pytest.approx(0.722467, abs=1e-6) and every.high == pytest.approx(1.0)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3)])
def test_what_is_no_share_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        share_of(k, n)


def test_pairing_takes_out_what_the_twins_have_in_common() -> None:
    twins = {1: 100.0, 2: 900.0, 3: 500.0}
    found = paired_difference({key: value + 10.0 for key, value in twins.items()}, twins)
    assert found.difference == Mean(3, 10.0, 0.0, 10.0, 10.0)


def test_values_without_a_twin_are_left_out_and_counted() -> None:
    found = paired_difference({1: 5.0, 2: 6.0, 3: 7.0}, {1: 1.0, 4: 0.0})
    assert (found.difference.n, found.difference.mean, found.unpaired) == (1, 4.0, 3)


@pytest.mark.parametrize(("values", "middle"), [([3.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 3.0], 2.5)])
def test_the_median_is_the_middle(values: list[float], middle: float) -> None:
    assert median(values) == middle
