"""What so many pairs cannot decide, whatever they show."""

from __future__ import annotations

import pytest

from bench.read.analysis.statistics import beyond_reach, holm, open_verdict, paired_test


@pytest.mark.parametrize("family", [1, 11, 27])
@pytest.mark.parametrize("pairs", range(1, 13))
def test_pairs_are_beyond_reach_just_where_the_plainest_difference_is_not_found(pairs: int, family: int) -> None:
    plain = paired_test({("i", n): 1.0 + n for n in range(pairs)}, {("i", n): 0.0 for n in range(pairs)})
    p = holm({"plain": plain.p, **{str(n): None for n in range(1, family)}})["plain"]
    assert p is not None and beyond_reach(plain.least, family) == (p >= 0.05)


def test_the_verdict_says_how_many_pairs_cannot_decide() -> None:
    assert open_verdict(9, 2 / 2**9, 27, "instances") == "cannot be decided with 9 instances (floor)"
    assert open_verdict(1, 1.0, 1) == "cannot be decided with 1 pair (floor)"
    assert open_verdict(11, 2 / 2**11, 27) == open_verdict(0, None, 27) == "inconclusive"
