"""Each variation is the same trials, read otherwise as it says, and nothing else is changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from records import (
    accepted,
    called,
    committed,
    config_in,
    fault,
    recovered,
    rejected,
    run_of,
    smooth,
    trial,
    undamaged,
    with_manifest,
)

from bench.read.analysis.frames import Run
from bench.read.claims.published import load_published
from bench.read.claims.sensitivity import MOST_LEFT_OUT, bounded, by_all_rounds, by_usage, in_place_of, tables, variations
from bench.read.claims.verdicts import judge_all
from bench.read.render.table import Table
from bench.record.events import Answered, Called, Event
from bench.record.record import TrialRecord

K8S = "k8s_oomkill"
PUBLISHED = load_published()
ABOVE = "retry.rca.static-above-monolithic"


def tried_thrice(struck_attempt: int = 1, then_c: bool = True) -> list[Event]:
    """b is struck, and asked for three times; c is first asked for after that."""
    late = struck_attempt == 3
    return [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *([] if late else fault("planned", "delivered")),
        *(called(2, "b"), *([] if late else [undamaged(2, "b")]), rejected(2, "b"), *([] if late else fault("detected"))),
        *(called(3, "b", cause="retry", tokens=(200, 20), attempt=2, caused_by=4 if late else 7), rejected(3, "b")),
        *(fault("planned", "delivered", call=4) if late else []),
        *(called(4, "b", cause="retry", tokens=(300, 20), attempt=3, caused_by=6 if late else 10), accepted(4, "b")),
        committed(4, "b", made_from=[("a", 1)]),
        *((called(5, "c"), accepted(5, "c"), committed(5, "c", made_from=[("b", 1)])) if then_c else ()),
        Answered((("a", 1), ("b", 1), *([("c", 1)] if then_c else []))),
    ]


def only_trial(run: Run) -> pd.Series:
    [(_, row)] = run.trials.iterrows()
    return row


def run_of_one(folder: Path, events: Sequence[Event], outcome: str = "solved") -> Run:
    return run_of(folder / "run", [trial("static", "paper", 1, outcome, events, scenario=K8S, timing="live")])  # type: ignore[arg-type]


# The readings


def test_all_rounds_are_those_until_what_was_struck_stood_accepted_again(tmp_path: Path) -> None:
    run = run_of_one(tmp_path, tried_thrice())
    assert only_trial(run)["first_round_counted_tokens"] == 220
    assert only_trial(by_all_rounds(run))["first_round_counted_tokens"] == 220 + 320


def test_usage_stands_in_the_place_of_our_count_and_is_missing_where_one_call_told_none(tmp_path: Path) -> None:
    def with_usage(reported: int) -> list[Event]:
        return [
            replace(event, usage_in=event.tokens_in + 7, usage_out=event.tokens_out)
            if isinstance(event, Called) and event.call <= reported
            else event
            for event in recovered(130)
        ]

    all_told, two_told = (only_trial(by_usage(run_of_one(tmp_path / str(number), with_usage(number)))) for number in (3, 2))
    assert (all_told["first_round_counted_tokens"], all_told["first_pass_tokens"]) == (150 + 7, 240 + 14)
    assert pd.isna(two_told["first_round_counted_tokens"]) and two_told["first_pass_tokens"] == 240 + 14


def test_a_trial_that_went_beyond_the_bound_gave_up_and_its_later_calls_never_were(tmp_path: Path) -> None:
    run = run_of_one(tmp_path, tried_thrice())
    assert only_trial(run)["first_pass_tokens"] == 360
    cut = bounded(run, 2)
    cut_trial = only_trial(cut)
    assert (cut_trial["outcome"], bool(cut_trial["correct"])) == ("gave_up", False)
    assert cut_trial["first_round_tokens"] == 220, "the fault and its first round lie within the bound"
    assert pd.isna(cut_trial["first_pass_tokens"]) and pd.isna(cut_trial["first_pass_seconds"]), "c was never asked for"
    assert cut.replies["call"].tolist() == [1, 2, 3]


def test_a_first_pass_that_was_complete_before_the_bound_stays(tmp_path: Path) -> None:
    cut_trial = only_trial(bounded(run_of_one(tmp_path, tried_thrice(then_c=False)), 2))
    assert (cut_trial["outcome"], cut_trial["first_pass_tokens"]) == ("gave_up", 240)


def test_a_fault_beyond_the_bound_has_no_round_nor_has_one_at_the_last_attempt(tmp_path: Path) -> None:
    run = run_of_one(tmp_path, tried_thrice())
    assert pd.isna(only_trial(bounded(run, 1))["first_round_tokens"]), "no attempt was left"
    late = run_of_one(tmp_path / "late", tried_thrice(struck_attempt=3))
    late = replace(late, trials=late.trials.assign(first_round_tokens=99.0))
    assert pd.isna(only_trial(bounded(late, 2))["first_round_tokens"]), "the call that carried it never was"


def test_a_bound_that_nothing_goes_beyond_changes_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial("static", plan, n, scenario=K8S) for plan in ("none", "paper") for n in (1, 2)])
    same = bounded(run, 2)
    pd.testing.assert_frame_equal(same.trials, run.trials, check_frame_type=False)
    pd.testing.assert_frame_equal(same.replies, run.replies, check_frame_type=False)


def test_a_variant_stands_in_the_place_of_its_base(tmp_path: Path) -> None:
    run = run_of(
        tmp_path / "run", [trial(name, "none", n, scenario=K8S) for name in ("static", "told", "mine") for n in (1, 2)]
    )
    trials = in_place_of(run, "static", "told").trials
    assert sorted(trials["architecture"]) == ["mine", "mine", "static", "static"]
    assert set(trials.loc[trials["architecture"] == "static", "trial"]) == set(
        run.trials.loc[run.trials["architecture"] == "told", "trial"]
    )


def test_a_run_is_varied_in_what_it_holds_the_data_of(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(name, "paper", n, scenario=K8S) for name in ("static", "told") for n in range(1, 6)])
    config = {**config_in(tmp_path / "run"), "max_attempts": 4, "architecture": {"told": {"base": "static"}}}
    reported = with_manifest(run, config=config)
    assert [variation.name for variation in variations(reported)] == [
        *("First 2 of 5 repetitions", "All rounds", "At most 3 attempts", "At most 2 attempts", "static as told"),
    ]
    assert [variation.name for variation in variations(run)] == ["First 2 of 5 repetitions", "All rounds", "At most 2 attempts"]
    first = next(variations(run)).run
    assert set(first.trials["repetition"]) == {1, 2}


# The table


def rounds(tokens: dict[str, float], n: int, timing: str = "live") -> list[TrialRecord]:
    """Trials whose first rounds take about so many tokens."""
    draw = random.Random(1)
    return [
        trial(name, "paper", at, events=recovered(int(centre + draw.uniform(-9, 9)) - 20), scenario=K8S, timing=timing)
        for name, centre in tokens.items()
        for at in range(1, n + 1)
    ]


def table_of(run: Run) -> Table:
    [table] = tables(run, PUBLISHED, judge_all(run, PUBLISHED))
    return table


def row_of(table: Table, claim: str) -> dict[str, str]:
    [row] = [row for row in table.texts() if row[0] == claim]
    return dict(zip(table.columns, row, strict=True))


def test_a_verdict_is_shown_under_each_variation_and_how_often_it_outlives_one_repetition_less(tmp_path: Path) -> None:
    table = table_of(run_of(tmp_path / "run", rounds({"static": 1600, "monolithic": 900}, 10)))
    assert row_of(table, ABOVE) == {
        "Claim": ABOVE,
        "Model": "m",
        "Verdict": "holds",
        "First 5 of 10 repetitions": "cannot be decided with 5 pairs (floor), same side",
        "All rounds": "holds",
        "At most 2 attempts": "holds",
        "Without one repetition": "10 of 10, same side 10",
    }
    assert any(note.startswith("All rounds: ") and note.endswith("2 of 2 verdicts are the same") for note in table.notes)


def test_one_repetition_that_carries_a_verdict_shows(tmp_path: Path) -> None:
    """Of nine pairs eight are too few for the correction: the side stays, the verdict does not."""
    table = table_of(run_of(tmp_path / "run", rounds({"static": 1600, "monolithic": 900}, 9)))
    assert row_of(table, ABOVE)["Without one repetition"] == "0 of 9, same side 9"


def test_of_many_repetitions_none_is_left_out_alone(tmp_path: Path) -> None:
    table = table_of(run_of(tmp_path / "run", rounds({"static": 1600, "monolithic": 900}, MOST_LEFT_OUT + 1)))
    assert row_of(table, ABOVE)["Without one repetition"] == "not tried"
    assert table.notes[-1] == "without one repetition: not tried, since each of 51 weighs little"


def test_what_a_variation_does_not_hold_is_not_measured_there(tmp_path: Path) -> None:
    records = rounds({"static": 1600, "monolithic": 900}, 10)
    unstruck = [replace(record, events=tuple(smooth())) if record.repetition <= 5 else record for record in records]
    table = table_of(run_of(tmp_path / "run", [replace(each, tokens=_tokens(each)) for each in unstruck]))
    assert row_of(table, ABOVE)["First 5 of 10 repetitions"] == "not measured"


def _tokens(record: TrialRecord) -> int:
    return sum(event.tokens_in + event.tokens_out for event in record.events if isinstance(event, Called))


@pytest.mark.parametrize("scenario", [K8S, "demo"])
def test_where_nothing_was_judged_there_is_no_table(scenario: str, tmp_path: Path) -> None:
    simulated = rounds({"static": 1600, "monolithic": 900}, 10, "simulated")
    run = run_of(tmp_path / "run", [replace(each, scenario=scenario) for each in simulated])
    assert list(tables(run, PUBLISHED, judge_all(run, PUBLISHED))) == []
