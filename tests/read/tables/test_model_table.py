"""Models are compared pair by pair, and what a solved task costs counts what was spent on the others as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from records import called, edit_manifest, experiment, recovered, run_of, smooth, trial, write_run

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.render.labels import model_label
from bench.read.render.table import comma_separated
from bench.read.report.page import page_of
from bench.read.report.tables import all_tables
from bench.read.report.written_report import report_of
from bench.record.events import Event
from bench.record.record import Outcome, TrialRecord

DEAR, CHEAP = "dear (SIMULATED)", "cheap (SIMULATED)"
PLACE = 5
"""How many cells of a row of `models` say where it is."""


def names_of(run: Run) -> list[str]:
    return [table.name for table in all_tables(Results(run))]


def rows_of(run: Run, name: str) -> list[list[str]]:
    return next(table.texts() for table in all_tables(Results(run)) if table.name == name)


def priced(folder: Path, records: Sequence[TrialRecord], models: Mapping[str, Any]) -> Run:
    """A run whose manifest tells these parameters of its models."""
    edit_manifest(write_run(folder, records), models=models)
    return bench.load_run(folder)


def spent(folder: Path, records: Sequence[TrialRecord], models: Mapping[str, Any]) -> list[str]:
    """Cost, tokens and seconds by solved task of the first arm."""
    return rows_of(priced(folder, records, models), "per_solved")[0][-3:]


def two_models() -> list[TrialRecord]:
    dear = [trial("static", "paper", number, model="dear", events=recovered(1000 + 10 * number)) for number in (1, 2, 3)]
    cheap = [trial("static", "paper", 1, "wrong", model="cheap"), *(trial("static", "paper", n, model="cheap") for n in (2, 4))]
    return [*dear, *cheap]


# One model against another


def test_two_models_are_compared_repetition_by_repetition(tmp_path: Path) -> None:
    by_measure = {row[0]: row[1:] for row in rows_of(run_of(tmp_path / "run", two_models()), "models_together")}
    # Repetitions 1 and 2 are those of both: 1210 and 1220 tokens in and 60 out against 310 and 320, and a wrong answer.
    assert by_measure["Tokens a trial"][:3] == ["1275", "375", "-900 [-900, -900]†"]
    assert by_measure["Solved"][:2] == ["100.0%", "50.0%"] and by_measure["Solved"][2].startswith("-50.0% [")


TWO_PRICES = {"dear": {"price_in": 10_000.0, "price_out": 0.0}, "cheap": {"price_in": 1000.0, "price_out": 0.0}}


def test_where_both_models_have_prices_dollars_stand_in_the_table(tmp_path: Path) -> None:
    run = priced(tmp_path / "run", two_models(), TWO_PRICES)
    # 1210, 1220 and 1230 tokens in at a cent each; 310, 320 and 340 at a tenth of that, of which one was wrong.
    [solved] = [row for row in rows_of(run, "models_together") if row[0] == "Dollars for a solved task"]
    # Repetitions 1 and 2, which both have: 12.10 and 12.20 dollars; 0.31 and 0.32, of which one was solved.
    assert solved == ["Dollars for a solved task", "12.15000", "0.63000", "–", "–"]


def test_a_model_that_took_over_replies_says_whose_seconds_they_are(tmp_path: Path) -> None:
    run = priced(tmp_path / "run", two_models(), {"dear": {"cache_from": [{"name": "before", "digest": "d"}]}, "cheap": {}})
    [table] = [table for table in all_tables(Results(run)) if table.name == "models_together"]
    [note] = [note for note in table.notes if "took over" in note]
    assert (
        note
        == "dear (SIMULATED): the seconds of replies that it took over are those of before, at the pace of its machine then"
    )


@pytest.mark.usefixtures("undrawn")
def test_where_there_is_one_model_there_is_no_table_of_models(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", experiment())
    assert "models_together" not in names_of(run)
    files = report_of(run).files
    assert b"The models side by side" not in files["report.html"]


@pytest.mark.usefixtures("undrawn")
def test_the_comparison_is_a_table_of_the_report(tmp_path: Path) -> None:
    files = report_of(run_of(tmp_path / "run", two_models())).files
    assert {f"tables/models_together.{form}" for form in ("md", "csv")} <= files.keys()
    assert "### The models side by side" in files["report.md"].decode()


def test_a_replay_of_a_simulated_model_is_marked_as_what_it_is(tmp_path: Path) -> None:
    simulated = {"kind": "simulated"}
    routed = {"kind": "routed", "default": "c", "subtasks": {"b": "c"}, "models": {"c": simulated}}
    kinds: dict[str, Any] = {"a": simulated, "b": routed, "d": {"kind": "openai"}}
    run = priced(tmp_path / "run", [trial(model=model, timing="recorded") for model in kinds], kinds)
    assert [model_label(run, model) for model in kinds] == ["a (SIMULATED)", "b (SIMULATED)", "d"]


def test_a_routed_models_own_models_are_told_once(tmp_path: Path) -> None:
    beside, behind = {"kind": "openai", "model": "beside"}, {"kind": "openai", "model": "behind"}
    routed = {"kind": "routed", "default": "a", "subtasks": {"x": "b"}, "models": {"a": beside, "b": behind}}
    run = priced(tmp_path / "run", [trial(model=model) for model in ("a", "m")], {"a": beside, "m": routed})
    models = dict(page_of(Results(run), [], []).facts)["Models"]
    assert models.count("behind") == models.count("beside") == 1
    assert models.endswith('kind routed, default a, subtasks {"x": "b"}, models {"b": {"model": "behind", "kind": "openai"}}')


# What a solved task costs

PRICED = {"m": {"kind": "simulated", "price_in": 1000.0, "price_out": 10_000.0}}
"""Dollars for a million tokens: 0.1 for 100 tokens in, 0.2 for 20 out; so a smooth trial, of two such calls, costs 0.6."""


def test_the_cost_of_a_solved_task_is_all_that_was_spent_by_what_was_solved(tmp_path: Path) -> None:
    outcomes: tuple[Outcome, ...] = ("solved", "wrong", "gave_up", "error", "solved")
    records = [trial(repetition=n, outcome=outcome, events=smooth()) for n, outcome in enumerate(outcomes, 1)]
    cost, tokens, seconds = spent(tmp_path / "run", records, PRICED)
    # exp(t(4) sd / sqrt(5) / mean): 0.6 in each trial less 1.5 in the two that were solved has an sd of 0.82158.
    assert cost == "3.00000/2 = 1.50000 [0.27397, 8.21271]†"
    assert tokens.startswith("1200/2 = 600 ")
    assert seconds.startswith("14.00/2 = 7.00 ")


def test_a_cost_has_an_interval_where_enough_was_solved(tmp_path: Path) -> None:
    records = [trial(repetition=n, outcome="wrong" if n == 1 else "solved", events=smooth()) for n in range(1, 11)]
    cost, tokens, _ = spent(tmp_path / "run", records, PRICED)
    # by and times exp(t(9) sd / sqrt(10) / mean) = 1.28575: what is left of 0.6 in each trial has an sd of 0.21082.
    assert cost == "6.00000/9 = 0.66667 [0.51850, 0.85717]†"
    assert tokens == "2400/9 = 267 [207, 343]†"


def test_a_model_without_a_price_has_an_unknown_cost_and_never_none(tmp_path: Path) -> None:
    for number, half in enumerate(({}, {"price_in": 1.0}, {"price_out": 1.0, "price_in": None})):
        cost, tokens, _ = spent(tmp_path / str(number), [trial(repetition=n) for n in (1, 2)], {"m": half})
        assert cost == "unknown"
        assert tokens.startswith("480/2 = 240 ")


def test_a_price_of_zero_is_a_price(tmp_path: Path) -> None:
    free = {"m": {"price_in": 0.0, "price_out": 0.0}}
    assert spent(tmp_path / "run", [trial(repetition=n) for n in (1, 2)], free)[0] == "0.00000/2 = 0.00000 (interval n/a)"


def test_where_nothing_was_solved_the_cost_so_far_is_told(tmp_path: Path) -> None:
    records = [trial(repetition=n, outcome="wrong") for n in (1, 2)]
    cost, tokens, _ = spent(tmp_path / "run", records, PRICED)
    assert (cost, tokens) == ("none solved (1.20000 in 2 trials)", "none solved (480 in 2 trials)")


def test_the_providers_own_counts_are_what_is_charged(tmp_path: Path) -> None:
    events: list[Event] = [called(1, "a", usage=(200, 0)), *smooth()[1:]]
    assert spent(tmp_path / "run", [trial(events=events)], PRICED)[0].startswith("0.50000/1 ")


def test_each_call_of_a_routed_model_is_charged_to_the_model_that_answers_it(tmp_path: Path) -> None:
    prices = {"price_in": 1000.0, "price_out": 0.0}
    ten = {"price_in": 10_000.0, "price_out": 0.0}
    routed = {"kind": "routed", "default": "small", "subtasks": {"b": "big"}, "models": {"small": prices, "big": ten}}
    run = priced(tmp_path / "run", [trial()], {"m": routed})
    assert run.trials["cost"].tolist() == pytest.approx([0.1 + 1.0])
    unpriced = {**routed, "models": {"small": prices, "big": {}}}
    assert priced(tmp_path / "other", [trial()], {"m": unpriced}).trials["cost"].isna().all()


def test_in_a_csv_what_is_unknown_or_unsolved_is_a_word_and_what_was_spent_a_column(tmp_path: Path) -> None:
    run = priced(tmp_path / "run", [trial(outcome="wrong")], {})
    [table] = [table for table in all_tables(Results(run)) if table.name == "per_solved"]
    header, row = comma_separated(table).splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert (cells["Cost $ per solved"], cells["Cost $ per solved spent"]) == ("unknown", "")
    assert (cells["Tokens per solved"], cells["Tokens per solved spent"]) == ("none solved", "240.0")
