"""The noise floor is what an arm differs from itself by chance."""

from __future__ import annotations

import numpy as np
import pytest

from bench.read.tables import noise
from bench.read.tables.noise import halves_of


def test_every_split_of_a_few_values_is_compared_once() -> None:
    """By hand, 1 2 4 8: 12|48, 14|28, 18|24 lie 4.5, 2.5 and 1.5 apart."""
    halves = halves_of(4)
    assert (halves.n, halves.half, halves.splits, halves.floor([1.0, 2.0, 4.0, 8.0])) == (4, 2, 3, 4.5)


def test_where_the_number_is_odd_each_value_is_left_out_in_turn() -> None:
    """By hand, 1 2 4: 1|2, 1|4, 2|4."""
    halves = halves_of(3)
    assert (halves.half, halves.splits, halves.floor([1.0, 2.0, 4.0])) == (1, 3, 3.0)


def test_the_order_of_the_repetitions_does_not_matter() -> None:
    values = [3.0, 9.0, 4.0, 1.0, 7.0, 5.0, 8.0]
    assert halves_of(7).floor(values) == halves_of(7).floor(values[::-1])


def test_equal_values_have_no_noise_and_a_single_one_none_that_is_known() -> None:
    assert halves_of(6).floor([5.0] * 6) == 0.0
    assert halves_of(1).floor([5.0]) is None
    assert halves_of(0).floor([]) is None
    assert (halves_of(0).splits, halves_of(1).splits) == (0, 0)


def test_of_many_values_random_splits_are_drawn_the_same_each_time() -> None:
    values = np.random.default_rng(1).normal(1000, 100, 101).tolist()
    halves = halves_of(101)
    assert (halves.half, halves.splits) == (50, 1999)
    assert halves.floor(values) == halves_of(101).floor(values)
    # of independent values with this sd, 95% of such differences lie within 1.96 x 100 sqrt(2/50) = 39
    assert halves.floor(values) == pytest.approx(39.2, rel=0.2)


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        halves_of(2).floor([1.0, float("nan")])


def test_the_halves_of_one_number_of_trials_are_not_those_of_another() -> None:
    with pytest.raises(ValueError, match="3 values, but the halves are of 4"):
        halves_of(4).floor([1.0, 2.0, 3.0])


@pytest.mark.parametrize("n", [4, 5, 30, 31])
def test_no_value_stands_in_both_halves_of_a_split(n: int) -> None:
    [dealt] = halves_of(n).dealt()
    assert dealt.shape[1] == n // 2 * 2
    assert all(len(set(row)) == len(row) for row in dealt.tolist())


def test_splits_that_are_dealt_some_at_a_time_are_those_that_are_dealt_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(1000, 100, (2, 101)).tolist()
    [dealt], at_once = halves_of(101).dealt(), halves_of(101).floors(values)
    monkeypatch.setattr(noise, "AT_ONCE", 250)
    pieces = list(halves_of(101).dealt())
    assert len(pieces) == 1000 and np.array_equal(np.concatenate(pieces), dealt)
    assert halves_of(101).floors(values) == at_once == [halves_of(101).floor(each) for each in values]
