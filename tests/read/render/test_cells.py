"""A cell shows its number with what is known of it, and no interval that says nothing."""

from __future__ import annotations

import pytest

from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Mean, exact_share, mean_of, paired_rates, ratio_of_means, share_of
from bench.read.render.cells import BoundedNumber, Cell, Estimate, Number, PublishedNumber, Rate, RateGap, Spent, text_of
from bench.read.tables.contrasts import bootstrap_mean


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Estimate(mean_of([1.0, 2.0, 3.0]), 1), "2.0 ± 1.0 [-0.5, 4.5]†"),
        (Estimate(mean_of([1.0, 2.0, 3.0]), 1, with_n=True), "2.0 ± 1.0 [-0.5, 4.5]†, N=3"),
        (Estimate(mean_of([2.0])), "2 (sd, interval n/a)"),
        (Estimate(mean_of([])), "n/a"),
        (Estimate(mean_of([5.0, 5.0]), 2), "5.00 ± 0.00 [5.00, 5.00]†"),
        (Rate(share_of(8, 10)), "8/10 = 80.0% [49.0%, 94.3%]"),
        (Rate(share_of(0, 0)), "n/a (0/0)"),
        (PublishedNumber(703, 49), "703 ± 49"),
        (PublishedNumber(10.41, None, 2), "10.41"),
        (PublishedNumber(None), "–"),
        (Number(None, 3), "n/a"),
        (Number(-0.0004, 3), "0.000"),
        (Number(0.125, 1, percent=True), "12.5%"),
        (7, "7"),
    ],
)
def test_a_cell_shows_its_number_with_what_is_known_of_it(cell: Cell, text: str) -> None:
    assert text_of(cell) == text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (BoundedNumber(21.0, 0.0, 1_150_558.0), "21 (too few to say)"),
        (Estimate(Mean(2, 2089.0, 993.0, 29.0, 149_389.0)), "2089 ± 993 (too few to say)"),
        (Spent(PerSolved(10.0, 2, 4, 5.0, 0.0, 400.0, 4)), "10/2 = 5 (too few to say)"),
        (BoundedNumber(5.0, 0.0, 100.0), "5 [0, 100]"),
        (BoundedNumber(0.0, 0.0, 17.0), "0 [0, 17]"),
        (BoundedNumber(1.0, -50.0, 50.0), "1 [-50, 50]"),
    ],
)
def test_an_interval_that_ends_beyond_twenty_times_the_amount_is_told_in_words(cell: Cell, text: str) -> None:
    assert text_of(cell) == text


def test_an_interval_of_too_few_values_is_marked_in_each_kind_of_cell_and_one_of_enough_or_exact_is_not() -> None:
    held, missed = (
        dict.fromkeys(zip("abcd", range(4), strict=True), True),
        dict.fromkeys(zip("abcd", range(4), strict=True), False),
    )
    few = (
        Estimate(mean_of([1.0, 2.0, 3.0])),
        Rate(share_of(1, 3)),
        Spent(PerSolved(10.0, 2, 4, 5.0, 4.0, 6.0, 3)),
        BoundedNumber.of(ratio_of_means({1: 2.0, 2: 3.0}, {1: 1.0, 2: 1.1}), 2),
        bootstrap_mean({"a": 0.0, "b": 1.0, "c": 3.0}).cell(),
    )
    assert [text_of(cell).count("]†") for cell in few] == [1] * len(few)
    enough = (
        Estimate(mean_of(map(float, range(164)))),
        Rate(share_of(20, 40)),
        Rate(exact_share(1, 3)),
        RateGap(paired_rates(held, missed)),
        BoundedNumber(1.0, 0.5, 1.5),
    )
    assert not [text_of(cell) for cell in enough if "†" in text_of(cell)]
