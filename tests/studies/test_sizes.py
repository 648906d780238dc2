"""When a round of static is dearer than one of monolithic: the closed form, call by call and against trials."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_runs import run_of_matrix
from trials import Fault, matrix_of

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import paired_difference
from studies.sizes.study import pass_ratio, published_places, round_ratio, shared_at_parity, sizes, tables, verdict

DEPTH, SIZE = st.integers(2, 20), st.floats(0, 20)
ARCHITECTURES = ["monolithic", "static"]


def struck(subtask: str, effect: str = "missing_field") -> list[Fault]:
    return [{"point": "output", "effect": effect, "attempts": [1], "subtask": subtask}]


def run_of(folder: Path, pack: str, **plans: list[Fault]) -> Run:
    settings = {"architectures": ARCHITECTURES, "repetitions": 5}
    return run_of_matrix(folder, matrix_of(pack, {"none": [], **plans}, {"wrapping": False}, **settings))


@given(DEPTH, SIZE, SIZE)
def test_the_pass_ratio_is_that_of_equal_calls_added_up(depth: int, shared: float, handed_on: float) -> None:
    calls = [shared + handed_on + 1.0] * depth
    whole = shared + sum(1.0 for _ in range(depth))
    assert pass_ratio(depth, shared, handed_on) == pytest.approx(sum(calls) / whole)


@given(DEPTH, st.integers(1, 20), SIZE, SIZE)
def test_below_the_parity_a_round_of_static_is_cheaper_and_above_it_dearer(
    depth: int, again: int, shared: float, handed_on: float
) -> None:
    share = min(again, depth) / depth
    parity = shared_at_parity(depth, share, handed_on)
    ratio = round_ratio(pass_ratio(depth, shared, handed_on), share)
    if parity is None:
        assert depth * share <= 1 and round_ratio(pass_ratio(depth, shared), share) <= 1
    elif abs(shared - parity) > 1e-6:
        assert (ratio > 1) is (shared > parity)


def test_the_paper_s_own_two_points_give_back_its_two_percentages() -> None:
    ratios = [place.round_ratio for place in published_places().values()]
    assert [round(100 * (ratio - 1), 1) for ratio in ratios] == [32.7, 80.5]


def test_in_trials_the_rounds_are_those_of_the_closed_form(tmp_path: Path) -> None:
    run = run_of(tmp_path, "k8s_oomkill", early=struck("log_triage"), middle=struck("root_cause_analysis"))
    by_plan = {row.plan: row for row in sizes(run)}
    assert {name: len(sized.again) for name, sized in by_plan.items()} == {"early": 5, "middle": 3}
    for sized in by_plan.values():
        expected = (sized.place.round_ratio - 1) * sized.prices.monolithic
        assert sized.measured.difference.mean == pytest.approx(expected, rel=0.02)
        assert sized.verdict == "decided by sizes"
    assert by_plan["early"].place.round_ratio > 1 > by_plan["middle"].place.round_ratio


def test_the_same_failure_of_the_same_task_turns_its_sign_with_the_sizes(tmp_path: Path) -> None:
    plan = struck("root_cause_analysis")
    [large] = sizes(run_of(tmp_path / "large", "k8s_oomkill", plan=plan))
    [small] = sizes(run_of(tmp_path / "small", "k8s_oomkill:paper_sized", plan=plan))
    assert large.again == small.again
    assert large.place.round_ratio < 1 < small.place.round_ratio
    assert (large.measured.difference.mean or 0) < 0 < (small.measured.difference.mean or 0)


@pytest.mark.parametrize(
    ("ratio", "differences", "words"),
    [
        (1.3, [50, 60, 55, 52, 58], "decided by sizes"),
        (0.7, [-50, -60, -55, -52, -58], "decided by sizes"),
        (0.7, [50, 60, 55, 52, 58], "not by sizes alone"),
        (1.04, [50, 60, 55, 52, 58], "sizes do not decide"),
        (1.3, [50, -60, 55, -52, 8], "inconclusive"),
        (1.3, [50, 60, 55, 52], "not measured"),
    ],
)
def test_a_direction_is_decided_by_sizes_only_where_the_closed_form_has_its_sign(
    ratio: float, differences: list[float], words: str
) -> None:
    pairs = {("", number): float(difference) for number, difference in enumerate(differences, 1)}
    measured = paired_difference(pairs, dict.fromkeys(pairs, 0.0), "retry")
    assert verdict(ratio, measured) == words
    assert verdict(ratio, measured, ("architecture", "repair")) in ("not comparable", "not measured")


def test_the_table_shows_the_paper_s_points_beside_those_of_the_run(tmp_path: Path) -> None:
    first, parity = tables(run_of(tmp_path, "chain", plan=struck("step_1")))
    assert [row[0] for row in first.rows] == ["chain", "the paper's Table 1", "the paper's Table 2"]
    assert ("4", "0", "never", "2.0", "0.5", "always") in [tuple(map(str, row)) for row in parity.rows]


def test_a_fault_that_leaves_a_valid_output_says_nothing_of_the_rounds(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="whose one fault breaks a subtask's form"):
        sizes(run_of(tmp_path, "chain", plan=struck("step_1", "wrong_value")))
