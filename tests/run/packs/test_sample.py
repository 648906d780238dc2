"""A sample of names is drawn by its seed, and is part of every larger one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.run.packs.loading import sample


@given(st.lists(st.text("abc", min_size=1), unique=True), st.integers(0, 9), st.integers(0, 9), st.integers())
def test_a_smaller_sample_is_part_of_a_larger_one_and_both_stand_in_the_names_order(
    names: list[str], few: int, further: int, seed: int
) -> None:
    small, large = (sample(names, count, seed) for count in (few, few + further))
    assert len(large) == min(few + further, len(names)) and set(small) <= set(large)
    assert large == [name for name in names if name in large] and sample(names, None, seed) == names
    assert set(sample(names[::-1], few, seed)) == set(small), "in whatever order they are given"


def test_each_name_is_drawn_as_often_as_any_other() -> None:
    names = [f"case_{number}" for number in range(20)]
    drawn = [name for seed in range(2_000) for name in sample(names, 5, seed, "pack")]
    assert all(400 <= drawn.count(name) <= 600 for name in names)
