"""What the scorecard's numbers are worked out by, against answers by hand."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.read.analysis.statistics import (
    exact_share,
    exact_share_by_instance,
    pass_hat,
    ratio_of_sums,
    share_of,
)
from bench.read.analysis.statistics.rates import unpaired_rates


@given(st.lists(st.booleans(), min_size=2, max_size=9), st.integers(1, 9))
def test_the_chance_of_k_right_ones_is_the_share_of_all_draws_of_k(tries: list[bool], k: int) -> None:
    chance = pass_hat(k, [(sum(tries), len(tries))])
    draws = list(combinations(tries, k))
    if not draws:
        assert (chance.value, chance.low, chance.high) == (None, None, None)
    else:
        assert chance.value is not None and chance.low is not None and chance.high is not None
        assert chance.value == pytest.approx(sum(map(all, draws)) / len(draws))
        assert chance.low <= chance.value <= chance.high


def test_of_several_tasks_it_is_their_mean_and_tasks_with_fewer_than_k_tries_are_counted_apart() -> None:
    assert pass_hat(2, [(3, 4), (4, 4)]).value == pytest.approx((0.5 + 1) / 2)
    for lost in ((1, 1), (0, 1), (0, 0)):
        one_lost = pass_hat(2, [(1, 2)] * 9 + [lost])
        assert (one_lost.value, one_lost.of, one_lost.n, one_lost.left_out) == (0, "tasks", 9, 1)
    assert pass_hat(1, [(1, 2), (1, 1)]).value == pytest.approx(0.75)


def test_without_a_task_that_has_k_tries_there_is_no_pass_hat() -> None:
    once = pass_hat(2, [(1, 1), (1, 1), (0, 1)])
    assert (once.value, once.low, once.high, once.n, once.left_out) == (None, None, None, 0, 3)
    assert pass_hat(2, []).value is None


def test_of_tasks_tried_once_the_chance_of_one_is_their_share_with_its_exact_interval() -> None:
    once, share = pass_hat(1, [(1, 1), (1, 1), (1, 1), (0, 1)]), exact_share(3, 4)
    assert (once.value, once.low, once.high) == (share.rate, share.low, share.high)


@given(st.lists(st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=6), st.integers(1, 6))
def test_it_is_the_mean_over_the_tasks_with_k_tries_within_its_interval(tasks: list[tuple[int, int]], k: int) -> None:
    tried = [(c, n) for c, n in tasks if n >= k]
    hat = pass_hat(k, tasks)
    assert (hat.n, hat.left_out) == (len(tried), len(tasks) - len(tried))
    assert (hat.value, hat.low, hat.high) == (pass_hat(k, tried).value, pass_hat(k, tried).low, pass_hat(k, tried).high)
    if tried:
        assert hat.value == pytest.approx(sum(math.comb(c, k) / math.comb(n, k) for c, n in tried) / len(tried))
        assert hat.value is not None and hat.low is not None and hat.high is not None
        assert 0 <= hat.low <= hat.value <= hat.high <= 1


def test_a_ratio_of_sums_has_the_interval_of_its_units_residuals() -> None:
    """Residuals of 3/2 over (1, 1): -0.5 and 0.5, of sd sqrt(0.5); t(1) = 12.706; / sqrt(2) / mean 1."""
    ratio = ratio_of_sums([1, 2], [1, 1])
    assert (ratio.pairs, ratio.ratio) == (2, 1.5)
    assert ratio.high == pytest.approx(1.5 + 12.7062 * math.sqrt(0.5) / math.sqrt(2), rel=1e-4)
    assert ratio.low == pytest.approx(3 - (ratio.high or 0))
    assert ratio_of_sums([-3, 1], [2, 2]).ratio == -0.5


def test_no_interval_of_one_unit_or_of_units_that_are_alike_and_no_ratio_of_nothing() -> None:
    assert ratio_of_sums([2], [1]).low is None
    assert (ratio_of_sums([2, 4], [1, 2]).ratio, ratio_of_sums([2, 4], [1, 2]).low) == (2, None)
    assert ratio_of_sums([], []).ratio is None
    with pytest.raises(ValueError, match="nothing to put its total by"):
        ratio_of_sums([1, 1], [1, 0])


def test_an_exact_share_is_wider_where_trials_of_an_instance_are_alike() -> None:
    alike = exact_share_by_instance(["a"] * 5 + ["b"] * 5 + ["c"] * 5 + ["d"] * 5, [True] * 10 + [False] * 10)
    apart = exact_share(10, 20)
    assert (alike.k, alike.n, alike.instances) == (10, 20, 4)
    assert alike.low is not None and apart.low is not None and alike.high is not None and apart.high is not None
    assert alike.low < apart.low < apart.high < alike.high
    assert exact_share_by_instance(list("abcd"), [True, False, True, True]) == exact_share(3, 4)


def test_where_all_or_none_of_several_tasks_held_each_task_counts_once() -> None:
    """Else crashes of one task, all ending alike, would be taken for as many tasks."""
    for held, share in ((True, exact_share(2, 2)), (False, exact_share(0, 2))):
        result = exact_share_by_instance(["a", "a", "b"], [held] * 3)
        assert (result.k, result.n, result.instances) == (3 * held, 3, 2)
        assert [result.low, result.high] == pytest.approx([share.low, share.high])
    assert exact_share_by_instance(["a"] * 3, [True] * 3) == exact_share(3, 3)
    assert pass_hat(2, [(3, 3), (3, 3)]).low == pytest.approx((exact_share(2, 2).low or 0.0) ** 2)


def test_newcombes_interval_is_that_of_his_paper() -> None:
    """Newcombe 1998, table II, example (a), method 10: 56/70 less 48/80."""
    assert unpaired_rates(share_of(56, 70), share_of(48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert unpaired_rates(share_of(0, 0), share_of(1, 2)) is None
