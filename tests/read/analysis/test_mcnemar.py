"""Which of two arms solves more is told by the pairs that one alone solved, and by how many tasks they are of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.read.analysis.statistics import Pair, TwoByTwo, mcnemar_test, paired_test, required_instances, two_by_two

Held = dict[Pair, bool]
OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12)


def arms(held: Sequence[tuple[bool, bool]], repetitions: int = 1) -> tuple[Held, Held]:
    """Each pair of outcomes is that of an instance, which had it at each of its repetitions."""
    pairs = [(f"case_{number}", repetition) for number in range(len(held)) for repetition in range(1, repetitions + 1)]
    outcomes = [each for each in held for _ in range(repetitions)]
    first, second = zip(*outcomes, strict=True)
    return dict(zip(pairs, first, strict=True)), dict(zip(pairs, second, strict=True))


def of(both: int, first: int, second: int, neither: int) -> list[tuple[bool, bool]]:
    return [(True, True)] * both + [(True, False)] * first + [(False, True)] * second + [(False, False)] * neither


@given(OUTCOMES)
def test_a_two_by_two_counts_each_pair_that_both_have_once(pairs: list[tuple[bool, bool]]) -> None:
    first, second = arms(pairs)
    second["alone", 1] = True
    table = two_by_two(first, second)
    assert table.pairs == len(pairs)
    assert table == TwoByTwo(*(pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))


@given(OUTCOMES)
def test_with_one_pair_an_instance_to_flip_signs_is_mcnemars_exact_test(pairs: list[tuple[bool, bool]]) -> None:
    solved = arms(pairs)
    exact = mcnemar_test(*solved).p
    assert exact is not None and exact == pytest.approx(paired_test(*solved).p)
    table = two_by_two(*solved)
    if table.first + table.second:
        assert exact == pytest.approx(stats.binomtest(table.first, table.first + table.second).pvalue, rel=1e-12)


@given(OUTCOMES.filter(lambda each: len(each) > 1), st.integers(2, 4))
def test_to_repeat_what_came_out_finds_no_more(pairs: list[tuple[bool, bool]], repetitions: int) -> None:
    once, again = arms(pairs), arms(pairs, repetitions)
    assert mcnemar_test(*again).p == pytest.approx(mcnemar_test(*once).p)
    assert required_instances(*again) == required_instances(*once)


def test_nothing_discordant_is_no_evidence_and_no_pair_is_no_test() -> None:
    assert mcnemar_test(*arms(of(5, 0, 0, 5))).p == 1.0
    assert mcnemar_test({}, {}).p is None and required_instances({}, {}) is None


def test_one_discordance_of_five_is_the_least_p_that_it_can_give() -> None:
    test = mcnemar_test(*arms(of(3, 0, 5, 2)))
    assert test.p == test.least == 2 / 2**5
    assert (other := mcnemar_test(*arms(of(3, 1, 5, 2)))).least == 2 / 2**6 and other.p != other.least


def test_at_the_number_of_instances_the_test_finds_ten_points_in_about_four_of_five() -> None:
    required = required_instances(*arms(of(8, 2, 0, 0)))
    assert required
    number = required.number
    power = 0.0
    for discordant in range(1, number + 1):
        gained = np.arange(discordant + 1)
        p = 2 * stats.binom.cdf(np.minimum(gained, discordant - gained), discordant, 0.5)
        result = stats.binom.pmf(gained[p <= 0.05], discordant, (0.2 + 0.1) / (2 * 0.2)).sum()
        power += float(stats.binom.pmf(discordant, number, 0.2) * result)
    assert 0.75 < power < 0.83, "the exact test is somewhat too careful"


def test_the_number_of_instances_has_the_interval_of_the_share_that_it_is_made_of() -> None:
    few, many = (required_instances(*arms(of(7 * size, 2 * size, size, 0))) for size in (1, 10))
    assert (
        few
        and many
        and few.number == many.number == math.ceil(((1.959964 * 0.3**0.5 + 0.841621 * 0.29**0.5) / 0.1) ** 2) == 234
    )
    assert few.low < many.low < 234 < many.high < few.high


def test_an_instance_that_is_discordant_in_one_of_two_repetitions_counts_a_quarter() -> None:
    first, second = arms(of(12, 8, 0, 0), 2)
    second |= {(instance, 1): first[instance, 1] for instance, _ in first}
    assert required_instances(first, second) == required_instances(*arms(of(18, 2, 0, 0)))


def test_where_all_pairs_agree_as_many_are_discordant_as_differ_at_the_least() -> None:
    none, least = required_instances(*arms(of(9, 0, 0, 9))), required_instances(*arms(of(9, 1, 0, 0)))
    assert none and least and none.number == least.number == 77
