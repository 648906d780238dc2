"""Is one scorecard worse than another? Small cases whose verdict is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records import run_of
from scorecards import ACK, CRASH, lived, shop

from bench.common.errors import ResultsError
from bench.worlds.read.scorecard.build import scorecard_of
from bench.worlds.read.scorecard.card import Scorecard
from bench.worlds.read.scorecard.compare import CardComparison, Difference, compare_scorecards

GATE = {"solved": 0.05, "damage": 0.05}


def card(folder: Path, **values: Any) -> Scorecard:
    return scorecard_of([run_of(folder, shop(**values))])


def elsewhere(scorecard: Scorecard) -> Scorecard:
    """The same under another fault schedule."""
    return replace(scorecard, worlds=tuple(replace(world, schedule="another") for world in scorecard.worlds))


def by_measure(comparison: CardComparison) -> dict[tuple[str, str], Difference]:
    return {(difference.by, difference.measure): difference for difference in comparison.differences}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Scorecard:
    return card(tmp_path_factory.mktemp("bad"), doubled=2, outcome="wrong", instances=12)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Scorecard:
    return card(tmp_path_factory.mktemp("good"), doubled=0, outcome="solved", instances=12)


def test_a_scorecard_against_itself_is_equal_and_the_better_one_is_better(bad: Scorecard, good: Scorecard) -> None:
    assert compare_scorecards(bad, bad, GATE).verdict == "equal"
    assert compare_scorecards(bad, good, GATE).verdict == "better"


def test_more_damage_and_fewer_right_are_worse_by_paired_tests(bad: Scorecard, good: Scorecard) -> None:
    result = by_measure(compare_scorecards(good, bad, GATE))
    crash = "process:unacknowledged"
    assert set(result) == {("control", "right"), (crash, "right"), (crash, "harm")}, "one point is not said twice"
    assert {place: first.finding for place, first in result.items() if place[0] == crash} == {
        (crash, "right"): "worse",
        (crash, "harm"): "worse",
    }
    harm = result[crash, "harm"].measurement
    assert (harm.before, harm.after, harm.pairs) == (0, 200, 12)
    assert result[crash, "right"].measurement.p == pytest.approx(2 / 2**12)
    assert result["control", "right"].finding == "equal"


def test_three_tests_are_one_family(bad: Scorecard, good: Scorecard) -> None:
    rows = compare_scorecards(good, bad, GATE).differences
    least = min(row.measurement.p or 1.0 for row in rows)
    assert min(row.adjusted or 1.0 for row in rows) == pytest.approx(len(rows) * least)


def test_damage_alone_is_enough_to_be_worse(tmp_path: Path, good: Scorecard) -> None:
    harmful = card(tmp_path / "harmful", doubled=1, outcome="solved", instances=12)
    comparison = compare_scorecards(good, harmful, GATE)
    assert comparison.verdict == "worse"
    assert {difference.measure for difference in comparison.differences if difference.finding == "worse"} == {"harm"}


def live(card: Scorecard) -> Scorecard:
    return replace(card, rows=tuple(replace(row, whose="live") for row in card.rows))


def test_a_single_pair_that_damages_more_is_worse_if_no_reply_is_live(tmp_path: Path) -> None:
    clean, harmful = (card(tmp_path / str(doubled), doubled=doubled, outcome="solved", instances=1) for doubled in (0, 1))
    assert compare_scorecards(clean, harmful, GATE).verdict == "worse"
    back = compare_scorecards(harmful, clean, GATE)
    assert {row.measure: row.finding for row in back.overall} == {"right": "undecided", "harm": "better"}, "one pair of endings"
    assert by_measure(compare_scorecards(clean, harmful, GATE))["process:unacknowledged", "harm"].counted == "1 doubled more"
    assert compare_scorecards(clean, harmful, GATE, allowed={"doubled": 1}).verdict == "undecided", "one pair"
    assert compare_scorecards(clean, live(harmful), GATE).verdict == "undecided", "a live model may differ by chance"


def test_a_scorecard_without_kinds_of_damage_is_still_counted(tmp_path: Path) -> None:
    clean, harmful = (card(tmp_path / str(doubled), doubled=doubled, outcome="solved", instances=1) for doubled in (0, 1))
    old = replace(
        harmful,
        rows=tuple(replace(row, results=tuple(replace(each, harms=None) for each in row.results)) for row in harmful.rows),
    )
    assert by_measure(compare_scorecards(clean, old, GATE))["process:unacknowledged", "harm"].finding in ("worse", "equal")


def test_few_crashes_decide_nothing(tmp_path: Path) -> None:
    good, bad = (card(tmp_path / outcome, doubled=0, outcome=outcome, instances=3) for outcome in ("solved", "wrong"))
    assert compare_scorecards(good, bad, GATE).verdict == "undecided"


def test_under_other_faults_rates_are_compared_by_fishers_test(bad: Scorecard, good: Scorecard) -> None:
    result = by_measure(compare_scorecards(good, elsewhere(bad), GATE))
    harmed = result["process:unacknowledged", "harmed"]
    assert (harmed.measurement.pairs, harmed.measurement.before, harmed.measurement.after, harmed.finding) == (
        None,
        0,
        1,
        "worse",
    )
    assert harmed.measurement.p == pytest.approx(2 / 2704156), "2 / C(24, 12)"
    assert compare_scorecards(good, elsewhere(good), GATE).verdict == "undecided", "12 pairs cannot hold 5 points"


def test_who_was_not_struck_where_the_other_was_has_shown_nothing(tmp_path: Path, good: Scorecard) -> None:
    """A fault that never landed gives no clean score."""
    records = [each if each.plan == "none" else lived("crash", each.instance) for each in shop(instances=12)]
    records.append(lived("answers", "task_1", by=(ACK,)))
    unstruck = scorecard_of([run_of(tmp_path, records)])
    same_faults = replace(unstruck, worlds=good.worlds)
    for second in (unstruck, same_faults):
        comparison = compare_scorecards(good, second, GATE)
        assert by_measure(comparison)["process:unacknowledged", "right"].finding == "undecided"
        assert comparison.verdict == "undecided"


def test_systems_of_other_names_are_compared_where_each_scorecard_has_one(tmp_path: Path, good: Scorecard) -> None:
    other = card(tmp_path / "other", system="other", doubled=0, outcome="solved", instances=12)
    assert compare_scorecards(good, other, GATE).differences[0].systems == ("agent", "other")


def test_rows_that_only_one_has_are_named_and_refused_if_all_is_to_be_compared(tmp_path: Path, good: Scorecard) -> None:
    two = scorecard_of([run_of(tmp_path, [*shop(doubled=0, outcome="solved", instances=12), *shop(system="new")])])
    comparison = compare_scorecards(good, replace(two, worlds=good.worlds), GATE)
    assert comparison.left_out == ("the row shop / new (only in the second)",)
    with pytest.raises(ResultsError, match="differ in the row shop / new"):
        compare_scorecards(good, two, GATE, whole=True)


def test_scorecards_of_different_worlds_share_no_row(tmp_path: Path, good: Scorecard) -> None:
    with pytest.raises(ResultsError, match="share no row"):
        compare_scorecards(good, card(tmp_path, scenario="bank"), GATE)


def test_crashes_at_two_points_are_compared_apart_and_together(tmp_path: Path) -> None:
    records = [*shop(instances=2), *(lived("late", f"task_{n}", by=(("process", "recorded"),)) for n in range(2))]
    first = scorecard_of([run_of(tmp_path, records)])
    kinds = [row.by for row in compare_scorecards(first, first, GATE).differences if row.measure == "harm"]
    assert kinds == ["process:*", "process:unacknowledged", "process:recorded"] and CRASH[1] == "unacknowledged"
