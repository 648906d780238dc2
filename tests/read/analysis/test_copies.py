"""Copies count once: repetitions that could not have come out otherwise, and did not."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_runs import config, run
from hypothesis import given
from hypothesis import strategies as st

import bench
from bench.read.analysis.copies import first_of_copies, is_error_free
from bench.read.compare.compare import compare


def test_of_repetitions_that_all_came_to_the_same_one_counts() -> None:
    assert first_of_copies(["a", "a", "b", "a"], [1, 1, 2, 1]).tolist() == [True, False, True, False]


def test_where_one_came_out_otherwise_all_count_so_that_no_rate_is_bent() -> None:
    assert first_of_copies(["a"] * 4, [0, 0, 0, 1]).tolist() == [True] * 4


def test_what_is_unknown_in_all_is_the_same() -> None:
    assert first_of_copies(["a", "a"], [float("nan"), float("nan")]).tolist() == [True, False]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_each_group_keeps_a_trial_and_its_mean(rows: list[tuple[str, bool]]) -> None:
    groups, values = [group for group, _ in rows], [value for _, value in rows]
    counts = first_of_copies(groups, values)
    for group in set(groups):
        every = [value for name, value in rows if name == group]
        kept = [value for (name, value), counted in zip(rows, counts, strict=True) if name == group and counted]
        assert kept and sum(kept) / len(kept) == sum(every) / len(every)


@pytest.mark.parametrize("rate_name", ["failure_rate", "error_rate"])
def test_a_model_with_failures_draws_anew_in_each_repetition(tmp_path: Path, rate_name: str) -> None:
    for rate in (0.0, 0.2):
        run(config({"kind": "simulated", rate_name: rate}, repetitions=1, plans=["none"]), tmp_path / str(rate))
    assert [is_error_free(bench.load_run(tmp_path / str(rate)), "small") for rate in (0.0, 0.2)] == [True, False]


@pytest.mark.parametrize(("rate", "pairs"), [(0.0, 1), (0.001, 3)])
def test_a_comparison_counts_the_solved_repetitions_of_a_model_that_never_errs_once(
    tmp_path: Path, rate: float, pairs: int
) -> None:
    run(config({"kind": "simulated", "failure_rate": rate}, plans=["none"]), tmp_path / "run")
    loaded = bench.load_run(tmp_path / "run")
    comparison = compare(loaded, loaded)
    assert {row.change.pairs for arm in comparison.arms for row in arm.rows if row.criterion == "solved"} == {pairs}
    assert {row.change.pairs for arm in comparison.arms for row in arm.rows if row.criterion == "seconds"} == {3}
    assert comparison.verdict == "equal"
