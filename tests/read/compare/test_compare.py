"""A run is worse than another, no worse, or neither can be said; and runs whose trials are no pairs are not compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commands import bench as command
from commands import workplace
from records import (
    called,
    config_in,
    edit_manifest,
    experiment,
    fault,
    id_of,
    recovered,
    run_of,
    smooth,
    trial,
    with_manifest,
    write_run,
)

import bench
from bench.cli import main as cli
from bench.common.errors import ResultsError
from bench.read.analysis.aspects import aspects_between
from bench.read.analysis.frames import Run
from bench.read.analysis.pairing import part_of_run
from bench.read.compare.compare import DEFAULT_GATE, ArmDifference, Comparison, compare
from bench.read.compare.compare_table import as_json, compare_table, sentences
from bench.read.compare.verdict import EQUAL
from bench.record.events import Event
from bench.record.record import Outcome, TrialRecord

OUTCOMES: dict[str, Outcome] = {"s": "solved", "w": "wrong", "e": "error", "u": "ungraded"}


def spending(tokens: int) -> list[Event]:
    return [*smooth()[:-1], called(3, "b", tokens=(tokens - 240, 0), cause="retry"), smooth()[-1]]


def runs(tokens: Sequence[int], outcomes: str = "", **values: Any) -> list[TrialRecord]:
    """One arm's trials, spending these tokens and ending as these letters say."""
    ended = outcomes or "s" * len(tokens)
    return [
        trial("static", "none", place, OUTCOMES[end], spending(spent), **values)
        for place, (spent, end) in enumerate(zip(tokens, ended, strict=True), 1)
    ]


BEFORE = [1000, 1020, 980, 1010, 990, 1005, 995, 1000]
SAME = [1001, 1019, 981, 1009, 991, 1004, 996, 999]
DEARER = [1200, 1230, 1170, 1205, 1190, 1210, 1195, 1200]
A_LITTLE_DEARER = [first + more for first, more in zip(BEFORE, [20, 90, 30, 80, 40, 70, 50, 60], strict=True)]
"""Dearer for certain, by 35 to 75: whether by more than the margin of 50 cannot be told."""
ERRING = {"m": {"kind": "simulated", "failure_rate": 0.1}}
"""A model whose repetitions are no copies."""
WILD = [500, 1800, 700, 1600, 900, 1300, 400, 1500]


def compared(
    folder: Path, before: list[TrialRecord], after: list[TrialRecord], *measures: str, margin: float = 0.05, **options: Any
) -> Comparison:
    first, second = (
        with_manifest(run_of(folder / name, records), models=ERRING) for name, records in (("one", before), ("two", after))
    )
    return compare(first, second, dict.fromkeys(measures, margin) or DEFAULT_GATE, **options)


def rows_of(comparison: Comparison) -> list[ArmDifference]:
    return list(comparison.gated)


def findings(comparison: Comparison) -> dict[str, str]:
    return {row.criterion: row.finding for row in rows_of(comparison)}


# Verdicts


def many(tokens: Sequence[int], times: int = 4) -> list[int]:
    """Return these tokens so many times, with a token more each time."""
    return [each + place for place in range(times) for each in tokens]


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (SAME, "no worse"),
        (DEARER, "worse"),
        (WILD, "undecided"),
        (A_LITTLE_DEARER, "worse"),
        ([tokens + 40 for tokens in BEFORE], "undecided"),
        ([tokens - 200 for tokens in BEFORE], "better"),
    ],
)
def test_tokens_are_judged_by_their_paired_differences(tmp_path: Path, after: list[int], verdict: str) -> None:
    assert compared(tmp_path, runs(many(BEFORE, 9)), runs(many(after, 9)), "tokens").verdict == verdict


def test_a_loss_within_the_margin_is_no_worse_however_certain_it_is(tmp_path: Path) -> None:
    assert (
        compared(tmp_path, runs(many(BEFORE, 12)), runs(many(A_LITTLE_DEARER, 12)), "tokens", margin=0.1).verdict == "no worse"
    )


def test_few_pairs_do_not_show_what_is_rare_and_say_what_they_would_have_shown(tmp_path: Path) -> None:
    """In eight pairs a failure of one trial in ten, which costs an attempt more, is not seen four times in ten."""
    result = compared(tmp_path, runs(BEFORE), runs(SAME), "tokens", margin=0.1)
    assert result.verdict == "undecided"
    [_, why] = list(sentences(result))[:2]
    assert (
        why.startswith("tokens: ")
        and "they would show a loss of 10.0% four times in five, and a loss of 10% needs about 30 units" in why
    )


def test_the_two_runs_swapped_swap_the_verdict(tmp_path: Path) -> None:
    assert compared(tmp_path / "a", runs(DEARER), runs(BEFORE), "tokens").verdict == "better"
    assert compared(tmp_path / "b", runs(BEFORE), runs(DEARER), "tokens").verdict == "worse"


def test_the_margin_is_a_share_of_the_smaller_mean(tmp_path: Path) -> None:
    for folder, sides in (("a", (BEFORE, DEARER)), ("c", (DEARER, BEFORE))):
        before, after = (runs(many(side)) for side in sides)
        result = compared(tmp_path / folder, before, after, "tokens", margin=0.4)
        assert result.verdict == "no worse" and rows_of(result)[0].change.margin == pytest.approx(400.6)
    assert compared(tmp_path / "b", runs(BEFORE), runs(DEARER), "tokens", margin=0.0).verdict == "worse"


def test_seconds_are_those_on_the_clock_not_this_machines(tmp_path: Path) -> None:
    slower = [replace(record, framework_seconds=9.0) for record in runs(BEFORE)]
    assert compared(tmp_path / "a", runs(BEFORE), slower, "seconds").verdict == "equal"
    waiting = [replace(record, waiting_seconds=3.0 + 0.01 * record.repetition) for record in runs(BEFORE)]
    assert compared(tmp_path / "b", runs(BEFORE), waiting, "seconds").verdict == "worse"


def dearer(folder: Path, price: float | None, records: list[TrialRecord]) -> Run:
    """A run whose model costs `price` dollars a million tokens; None for a config without prices."""
    write_run(folder, records)
    edit_manifest(folder, models={"m": {"kind": "simulated", "price_in": price, "price_out": price}})
    return bench.load_run(folder)


@pytest.mark.parametrize(("before", "after", "verdict"), [(5.0, 0.5, "better"), (0.5, 5.0, "worse"), (5.0, 5.0, "equal")])
def test_dollars_decide_where_they_are_named(tmp_path: Path, before: float, after: float, verdict: str) -> None:
    tokens = BEFORE if before == after else DEARER if after < before else [tokens - 200 for tokens in BEFORE]
    first, second = dearer(tmp_path / "one", before, runs(BEFORE)), dearer(tmp_path / "two", after, runs(tokens))
    result = compare(first, second, {"cost": 0.05})
    assert result.verdict == verdict
    assert findings(result) == {"cost": verdict}, "tokens stand beside the gate"


def test_equal_trials_at_other_prices_are_not_equal_in_dollars(tmp_path: Path) -> None:
    first, second = dearer(tmp_path / "one", 1.0, runs(BEFORE)), dearer(tmp_path / "two", 2.0, runs(BEFORE))
    assert findings(compare(first, second, {"cost": 0.05, "tokens": 0.05})) == {"cost": "worse", "tokens": "undecided"}


def test_a_cheaper_model_that_solves_more_is_better_and_its_dollars_are_said(tmp_path: Path) -> None:
    def bought(folder: str, price: float, solved: int, retry: int) -> Run:
        ended = "s" * solved + "w" * (16 - solved)
        records = [trial("static", "paper", n, OUTCOMES[end], recovered(retry + n)) for n, end in enumerate(ended, 1)]
        return dearer(tmp_path / folder, price, records)

    dear, cheap = bought("dear", 5.0, 8, 130), bought("cheap", 0.5, 16, 400)
    result = compare(dear, cheap, {"solved": 0.05, "cost": 0.1})
    assert findings(result) == {"solved": "better", "cost": "better"}
    assert {row.criterion: row.finding for row in result.overall if not row.gates}["price"] == "worse", "beside the gate"
    assert (result.verdict, compare(cheap, dear, {"solved": 0.05, "cost": 0.1}).verdict) == ("better", "worse")
    told = list(sentences(result))
    assert told[0].startswith("better: solved better (50.0% [") and "cost better (" in told[0]
    assert told[-1].startswith("dollars for a solved task: 0.000") and "/16" not in told[-1]
    values = json.loads(as_json(result))
    assert values["dollars_per_solved_after"] < values["dollars_per_solved_before"]


def test_without_prices_no_dollars_are_said(tmp_path: Path) -> None:
    assert "dollars" not in " ".join(sentences(compared(tmp_path, runs(BEFORE), runs(SAME), "tokens")))


def test_where_a_price_is_unknown_tokens_decide_and_asked_alone_the_keys_are_named(tmp_path: Path) -> None:
    first, second = dearer(tmp_path / "one", 1.0, runs(BEFORE)), dearer(tmp_path / "two", None, runs(DEARER))
    assert findings(compare(first, second, {"cost": 0.05, "tokens": 0.05})) == {"tokens": "worse"}
    [row] = rows_of(compare(first, second, {"cost": 0.05}))
    assert row.finding == "not measured" and row.reason.endswith("give the models of both runs price_in and price_out")


def test_solved_needs_many_pairs_to_be_no_worse_and_few_to_be_worse(tmp_path: Path) -> None:
    for pairs, verdict in ((58, "undecided"), (60, "no worse")):
        changed = [300] * (pairs - 1) + [301]
        assert compared(tmp_path / f"{pairs}", runs([300] * pairs), runs(changed), "solved").verdict == verdict
    assert compared(tmp_path / "c", runs([300] * 8), runs([300] * 8, "w" * 8), "solved").verdict == "worse"


def test_errors_count_against_being_no_worse_and_against_being_worse(tmp_path: Path) -> None:
    many = [300] * 60
    assert compared(tmp_path / "a", runs(many), runs(many, "s" * 40 + "e" * 20), "solved").verdict == "undecided"
    assert compared(tmp_path / "b", runs([300] * 8), runs([300] * 8, "e" * 8), "solved").verdict == "undecided"


def of_architecture(name: str, records: list[TrialRecord]) -> list[TrialRecord]:
    return [replace(record, architecture=name, id=f"{name}{record.id}") for record in records]


def test_all_arms_are_one_test_and_an_arm_by_itself_stands_beside_the_gate(tmp_path: Path) -> None:
    before = [*runs(many(BEFORE, 2)), *of_architecture("monolithic", runs(many(BEFORE, 2)))]
    result = compared(
        tmp_path / "a", before, [*runs(many(DEARER, 2)), *of_architecture("monolithic", runs(many(BEFORE, 2)))], "tokens"
    )
    assert result.verdict == "worse"
    shown = {arm.architectures[1]: {row.criterion: row.finding for row in arm.rows} for arm in result.arms}
    assert (shown["static"]["tokens"], shown["monolithic"]["tokens"]) == ("worse", "equal")
    cheaper = of_architecture("monolithic", runs([tokens - 200 for tokens in many(BEFORE, 2)]))
    paid = compared(tmp_path / "b", before, [*runs(many(DEARER, 2)), *cheaper], "tokens")
    assert (paid.verdict, findings(paid)) == ("undecided", {"tokens": "undecided"}), "one pays for the other"
    assert [[row.criterion for row in arm.rows if row.finding == "worse"] for arm in paid.arms] == [["tokens"], []]


@pytest.mark.parametrize("arms", [1, 24])
def test_a_run_in_which_every_arm_is_a_third_dearer_is_worse_however_many_arms_there_are(tmp_path: Path, arms: int) -> None:
    """Corrected over all arms and measures, no p of ten pairs is small enough."""
    before, after = (
        [record for n in range(arms) for record in of_architecture(f"a{n}", runs(tokens))] for tokens in (BEFORE, DEARER)
    )
    result = compared(tmp_path, before, after, "tokens")
    assert (result.verdict, result.overall[1].change.p) == ("worse", 2 / 2**8)
    if arms == 24:
        assert {row.finding for arm in result.arms for row in arm.rows if row.criterion == "tokens"} == {"undecided"}
        assert result.arms[0].rows[1].reason == "8 of the 12 units that must differ do (floor)"


def test_a_run_that_lost_arms_or_pairs_is_never_equal_and_can_still_be_worse(tmp_path: Path) -> None:
    both = [*runs(BEFORE), *of_architecture("monolithic", runs(BEFORE))]
    lost = compared(tmp_path / "a", both, runs(BEFORE), "tokens")
    assert (lost.verdict, findings(lost)) == ("undecided", {"tokens": "equal"})
    assert "missing: 1 of 2 arms of A: demo m none monolithic" in " ".join(sentences(lost))
    assert compared(tmp_path / "b", both, runs(DEARER), "tokens").verdict == "worse"
    assert compared(tmp_path / "c", runs(BEFORE), both, "tokens").verdict == "equal", "B may have more"
    for kept, verdict in ((17, "undecided"), (18, "no worse"), (20, "equal")):
        some = compared(tmp_path / f"{kept}", runs([300] * 20), runs([300] * 20)[:kept], "tokens")
        assert some.verdict == verdict and bool(some.missing) is (verdict == "undecided")
    ended = compared(tmp_path / "d", runs([300] * 20), runs([300] * 20, "s" * 15 + "e" * 5), "tokens")
    assert ended.missing == ("only 15 of 20 pairs can be used",)


@pytest.mark.parametrize("measure", ["tokens", "solved"])
def test_an_error_beside_an_error_is_a_missing_pair_and_no_run_with_it_is_equal(tmp_path: Path, measure: str) -> None:
    verdicts = {}
    for errors in (0, 1, 5, 20):
        both = runs([300] * 20, "s" * (20 - errors) + "e" * errors)
        result = compared(tmp_path / str(errors), both, both, measure)
        verdicts[errors] = result.verdict
        assert result.missing == ((f"only {20 - errors} of 20 pairs can be used",) if errors > 2 else ())
        if errors == 1:
            assert [row.reason for row in result.gated] == ["equal in the 19 of 20 pairs that can be used"]
    assert verdicts == {0: "equal", 1: "no worse", 5: "undecided", 20: "undecided"}


def test_earlier_runs_show_what_is_chance_and_name_what_is_flaky(tmp_path: Path) -> None:
    """By itself, a run of equal spread decides; where earlier runs of the same differ by a third, it does not."""
    first, second, wild = (
        with_manifest(run_of(tmp_path / name, records), models=ERRING)
        for name, records in (
            ("first", runs(many(BEFORE))),
            ("second", runs(many(SAME))),
            ("wild", runs(many(WILD), "w" + "s" * 31)),
        )
    )
    gate = {"tokens": 0.1}
    assert compare(first, second, gate).verdict == "no worse"
    shown = compare(first, second, gate, earlier=[wild])
    assert shown.verdict == "undecided" and shown.flaky == ("demo static m none 1",)
    assert compare(first, second, gate, earlier=[second]).verdict == "no worse"


def test_a_run_against_itself_is_equal_whatever_it_holds(tmp_path: Path) -> None:
    for number, records in enumerate((experiment(), runs(WILD, "swsswwss"), runs([300]))):
        errors = sum(record.outcome == "error" for record in records)
        assert compared(tmp_path / str(number), records, records).verdict == ("no worse" if errors else "equal"), number


def test_one_pair_that_differs_and_errors_alone_decide_nothing(tmp_path: Path) -> None:
    assert set(findings(compared(tmp_path / "a", runs([300]), runs([900]), "tokens")).values()) == {"undecided"}
    failed = runs([300, 300], "ee")
    assert set(findings(compared(tmp_path / "b", failed, failed)).values()) == {"undecided"}
    counted = runs([300, 310], "uu")
    assert findings(compared(tmp_path / "c", counted, counted))["solved"] == "undecided"


def test_what_is_better_and_dearer_is_a_trade_off_and_what_is_cheaper_and_worse_is_worse(tmp_path: Path) -> None:
    wrong = runs(BEFORE, "w" * 8)
    more = compared(tmp_path / "a", wrong, runs(DEARER), "tokens", "solved")
    assert findings(more) == {"tokens": "worse", "solved": "better"} and more.verdict == "trade-off"
    assert compared(tmp_path / "b", runs(DEARER), wrong, "tokens", "solved").verdict == "worse"
    assert compared(tmp_path / "c", wrong, runs(DEARER), "tokens").verdict == "worse", "only tokens were asked for"


@pytest.mark.parametrize(("rejections", "verdict"), [(0, "undecided"), (1, "equal")])
def test_runs_that_could_not_differ_are_not_equal(rejections: int, verdict: str, tmp_path: Path) -> None:
    """What a prompt is told after a rejection shows nothing where nothing was rejected."""
    arms = []
    for repair in ("none", "reason"):
        write_run(tmp_path / repair, runs(BEFORE))
        edit_manifest(tmp_path / repair, config={**config_in(tmp_path / repair), "repair": repair}, models=ERRING)
        run = bench.load_run(tmp_path / repair)
        arms.append(replace(run, trials=run.trials.assign(rejections=rejections)))
    result = compare(arms[0], arms[1])
    assert result.verdict == verdict
    assert {row.reason for row in result.overall} == {"none of 8 pairs could have differed" if not rejections else EQUAL}


def test_arms_that_met_the_same_draws_count_for_one_pair(tmp_path: Path) -> None:
    """A single repetition of one task, by many architectures, is one pair of draws."""

    def once(tokens: int) -> list[TrialRecord]:
        [record] = runs([tokens])
        return [replace(record, architecture=f"a{n}", id=f"{n}{record.id}") for n in range(8)]

    result = compared(tmp_path, once(1000), once(2000), "tokens")
    assert (result.verdict, rows_of(result)[0].change.why) == (
        "undecided",
        "the 8 pairs that could differ are copies of 1",
    )


@pytest.mark.parametrize("column", ["model", "architecture"])
def test_runs_with_one_model_or_one_architecture_each_are_compared_across_these(tmp_path: Path, column: str) -> None:
    """A model or an architecture exchanged for another, in CI: the names differ, and that is what is compared."""
    other = [replace(record, id=f"o{record.id}", **{column: "other"}) for record in runs(DEARER)]  # type: ignore[arg-type]
    result = compared(tmp_path, runs(BEFORE), other, "tokens")
    assert (result.verdict, rows_of(result)[0].change.pairs, rows_of(result)[0].unpaired) == ("worse", 8, 0)
    name = {"model": "m", "architecture": "static"}[column]
    assert f"two {column}s are compared: A {name}, B other" in result.runs.notes
    assert any(f"{name}" in cell and "→ other" in cell for cell in compare_table(result, by_arm=True).texts()[-1])


def test_of_two_models_against_one_none_is_guessed(tmp_path: Path) -> None:
    second = [replace(record, model="n", id=f"n{record.id}") for record in runs(BEFORE)]
    with pytest.raises(ResultsError, match=r"the model m \(only in by-hand\).*--models A B"):
        compared(tmp_path, [*runs(BEFORE), *second], runs(BEFORE, model="x"))


def test_trials_of_different_instances_are_no_pairs(tmp_path: Path) -> None:
    first, second = run_of(tmp_path / "one", runs(BEFORE)), run_of(tmp_path / "two", runs(SAME))
    first, second = (replace(run, trials=run.trials.assign(instance=name)) for run, name in ((first, "a"), (second, "b")))
    with pytest.raises(ResultsError, match="share no trial"):
        compare(first, second)
    assert compare(first, first).verdict == "equal"


def test_what_would_decide_is_said(tmp_path: Path) -> None:
    [row] = rows_of(compared(tmp_path, runs(BEFORE), runs(WILD), "tokens"))
    assert row.change.needed is not None and row.change.needed > (row.change.pairs or 0) == 8
    assert row.change.shows is not None and row.change.shows > row.change.margin


def test_the_settings_in_which_two_architectures_differ_are_said(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [*runs(BEFORE), *of_architecture("runtime_structured", runs(DEARER))])
    edit_manifest(
        tmp_path / "run",
        models=ERRING,
        config={**config_in(tmp_path / "run"), "architecture": {"static": {"base": "static", "max_attempts": 2}}},
    )
    run = bench.load_run(tmp_path / "run")
    result = compare(part_of_run(run, "architecture", "static"), part_of_run(run, "architecture", "runtime_structured"))
    told = " ".join(sentences(result))
    aspects = aspects_between(run, "static", "runtime_structured")
    assert "what is asked again" in aspects, "as claims say it"
    assert f"the arms differ in {', '.join(aspects)} and max_attempts: the verdict is on all of these together" in told


def repairing(tokens: Sequence[int]) -> list[TrialRecord]:
    """One arm's trials under a fault, each with one repair of so many tokens; the trials themselves cost the same."""
    return [trial("static", "paper", n, events=recovered(spent)) for n, spent in enumerate(tokens, 1)]


def test_a_failures_cost_is_judged_by_price_from_five_pairs_on(tmp_path: Path) -> None:
    few = compared(tmp_path / "few", repairing([100, 110, 120]), repairing([300, 310, 325]), "price")
    assert findings(few) == {"price": "not measured"} and few.verdict == "undecided"
    assert (rows_of(few)[0].change.before, rows_of(few)[0].difference.low) == (None, None)
    first, second = repairing([100, 110, 120, 105, 115, 117]), repairing([300, 310, 325, 305, 315, 330])
    assert findings(compared(tmp_path / "many", first, second, "price")) == {"price": "worse"}
    none = compared(tmp_path / "none", runs(BEFORE), runs(SAME))
    assert not {"price", "first_round"} & {row.criterion for row in none.overall}, "without a fault none is to be repaired"


def test_the_same_difference_in_each_pair_is_proof_from_six_pairs_on(tmp_path: Path) -> None:
    """The interval has no width, and that alone proves nothing."""
    for pairs, finding in ((2, "undecided"), (5, "undecided"), (6, "worse"), (8, "worse")):
        result = compared(
            tmp_path / str(pairs), runs(BEFORE[:pairs]), runs([tokens + 200 for tokens in BEFORE[:pairs]]), "tokens"
        )
        assert findings(result) == {"tokens": finding}, pairs
        floor = f"{pairs} of the 6 units that must differ do (floor)"
        assert (rows_of(result)[0].reason == floor) is (finding == "undecided")


# What is no pair


def test_runs_of_unlike_repetitions_are_refused_or_compared_on_what_they_share(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"repetitions \(8 \| 6\); leave --whole out"):
        compared(tmp_path / "a", runs(BEFORE), runs(SAME[:6]), whole=True)
    result = compared(tmp_path / "b", runs(BEFORE), runs(SAME[:6]), "tokens")
    assert (rows_of(result)[0].change.pairs, rows_of(result)[0].unpaired) == (6, 0)
    assert rows_of(result)[0].change.before == pytest.approx(sum(BEFORE[:6]) / 6)
    assert result.runs.left_out == ("repetitions (8 | 6)",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scenario": "other"}, r"the pack demo \(only in by-hand\); the pack other \(only in by-hand 2\)"),
        ({"plan": "paper"}, r"the fault plan none \(only in by-hand\); the fault plan paper \(only in by-hand 2\)"),
    ],
)
def test_runs_that_share_nothing_are_refused_in_any_case(tmp_path: Path, values: dict[str, str], message: str) -> None:
    other = [replace(record, **values) for record in runs(BEFORE)]  # type: ignore[arg-type]
    for whole in (False, True):
        with pytest.raises(ResultsError, match=message):
            compared(tmp_path / str(whole), runs(BEFORE), other, whole=whole)


def test_another_version_of_a_pack_or_plan_is_named_and_left_out(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, experiment(plans=("none", "paper"))) for name in ("one", "two"))
    config = config_in(second)
    edit_manifest(
        second, config={**config, "plan": {**config["plan"], "paper": {"faults": [{"point": "output", "effect": "another"}]}}}
    )
    with pytest.raises(ResultsError, match=r"the fault plan paper \(its versions differ\); leave --whole out"):
        compare(bench.load_run(first), bench.load_run(second), whole=True)
    result = compare(bench.load_run(first), bench.load_run(second))
    assert {arm.first.plan for arm in result.arms} == {"none"}
    assert result.runs.left_out == ("the fault plan paper (its versions differ)",)
    edit_manifest(second, config=config, scenarios={"demo": {"asked": "another"}})
    with pytest.raises(ResultsError, match=r"share no trial: the pack demo \(its versions differ\)"):
        compare(bench.load_run(first), bench.load_run(second))


@pytest.mark.parametrize(("changes", "message"), [({"seed": 8}, "the seed"), ({}, "the tokenizer")])
def test_another_seed_or_tokenizer_makes_no_pairs(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    first, second = (write_run(tmp_path / name, runs(BEFORE)) for name in ("one", "two"))
    config = config_in(second)
    edit_manifest(second, config={**config, **changes}, **({} if changes else {"tokenizer": "another"}))
    with pytest.raises(ResultsError, match=message):
        compare(bench.load_run(first), bench.load_run(second))


def test_settings_and_code_may_be_what_is_compared_and_are_said(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, runs(BEFORE)) for name in ("one", "two"))
    config = config_in(second)
    edit_manifest(second, config={**config, "repair": "none"}, code={"digest": "newer"})
    notes = compare(bench.load_run(first), bench.load_run(second)).runs.notes
    assert notes == ("A and B also differ in the config's repair", "A and B also differ in the code")


def test_a_run_without_receipts_is_not_compared(tmp_path: Path) -> None:
    broken = [trial(plan="paper", events=[*fault("planned"), *smooth()])]
    with pytest.raises(ResultsError, match="reports no numbers"):
        compared(tmp_path, broken, broken)


# The command


def run_command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """What the shell would see."""
    monkeypatch.setattr("sys.argv", ["bench", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_each_verdict_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, tokens in (("before", BEFORE), ("same", SAME), ("dearer", DEARER), ("wild", WILD)):
        write_run(tmp_path / "results" / name, runs(many(tokens)))
        edit_manifest(tmp_path / "results" / name, models=ERRING)
    write_run(tmp_path / "results" / "few", runs(BEFORE[:3]))
    command = ("compare", "--measure", "tokens", "before")
    assert run_command(monkeypatch, *command, "same") == 0
    assert run_command(monkeypatch, "compare", "before", "before") == 0
    assert run_command(monkeypatch, *command, "dearer") == 1
    assert run_command(monkeypatch, *command, "wild") == 3
    capsys.readouterr()
    assert run_command(monkeypatch, *command, "few", "--whole") == 2
    assert run_command(monkeypatch, *command, "nowhere") == 2
    assert run_command(monkeypatch, *command) == 2
    assert run_command(monkeypatch, "compare", "--measure", "tokns", "before", "same") == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 4 and "give a second run" in err.lower() and "did you mean 'tokens'" in err
    assert run_command(monkeypatch, *command, "few") == 3


def test_who_solves_all_in_the_place_of_none_for_more_tokens_is_not_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a newcomer was told was worse: 29% more tokens, and every task solved."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "results" / "before", runs(BEFORE, "w" * 8))
    write_run(tmp_path / "results" / "after", runs([round(1.29 * record) for record in BEFORE]))
    for name in ("before", "after"):
        edit_manifest(tmp_path / "results" / name, models=ERRING)
    assert run_command(monkeypatch, "compare", "before", "after") == 3
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("after against before: trade-off: solved better (") and "tokens worse (290 [" in first
    assert run_command(monkeypatch, "compare", "after", "before") == 1
    assert run_command(monkeypatch, "compare", "before", "after", "--measure", "tokens") == 1, "only tokens were asked for"
    assert run_command(monkeypatch, "compare", "before", "after", "--measure", "solved") == 0
    capsys.readouterr()
    assert run_command(monkeypatch, "compare", "before", "after", "--measure", "tokens=ten") == 2
    assert "--measure tokens=ten: the margin is a number from 0 to 1, as in --measure tokens=0.1" in capsys.readouterr().err


def cases_in(path: Path) -> list[tuple[str, str]]:
    suite = ElementTree.parse(path).getroot()[0]
    counts = {name: sum(child.tag == tag for case in suite for child in case) for name, tag in ENDS.items()}
    assert {name: suite.get(name) for name in ENDS} == {name: str(count) for name, count in counts.items()}
    return [(str(case.get("name")), case[0].tag if len(case) else "passed") for case in suite]


ENDS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def test_a_junit_file_has_a_case_for_each_measure_and_arm_and_says_what_could_not_be_asked(tmp_path: Path) -> None:
    for name, tokens in (("before", BEFORE), ("dearer", DEARER), ("wild", WILD)):
        write_run(tmp_path / "results" / name, [*runs(tokens), *of_architecture("monolithic", runs(BEFORE))])
        edit_manifest(tmp_path / "results" / name, models=ERRING)
    gate, arm = "tokens is no worse", "is no worse by itself (beside the gate)"
    for name, code, ends in (
        ("before", 0, ["passed", "passed", "passed"]),
        ("dearer", 1, ["failure", "failure", "passed"]),
        ("wild", 3, ["skipped", "passed", "passed"]),
    ):
        words = ("compare", "before", name, "--measure", "tokens=0.05", "--junit", "gate.xml")
        assert command(tmp_path, *words)[0] == code
        assert cases_in(tmp_path / "gate.xml") == list(zip([gate, arm, arm], ends, strict=True)), name
    assert command(tmp_path, "compare", "before", "nowhere", "--junit", "gate.xml")[0] == 2
    assert cases_in(tmp_path / "gate.xml") == [("is no worse", "error")]


def test_two_models_are_compared_in_one_command_by_the_exit_code(tmp_path: Path) -> None:
    """Of one run, of two runs, and of a run with several and one with another; by real runs of simulated models."""
    config = str(workplace(tmp_path, repetitions=8, tables='[model.weak]\nkind = "simulated"\nfailure_rate = 0.95\n'))
    command(tmp_path, "run", config, "--model", "simulated", "--model", "weak", "--name", "both")
    command(tmp_path, "run", config, "--model", "simulated", "--name", "before")
    command(tmp_path, "run", config, "--model", "weak", "--name", "after")
    assert command(tmp_path, "compare", "both", "--models", "simulated", "weak")[0] == 1
    code, out, _ = command(tmp_path, "compare", "both", "--models", "weak", "simulated", "--measure", "solved")
    assert code == 0 and out.startswith("both, simulated against both, weak: better: ")
    assert command(tmp_path, "compare", "before", "after")[0] == 1
    assert command(tmp_path, "compare", "both", "before", "--models", "simulated", "simulated")[0] == 0
    code, out, err = command(tmp_path, "compare", "both", "--models", "simulated", "week")
    assert (code, out, err) == (2, "", "bench: both holds no trial of the model 'week'; did you mean 'weak'?\n")
    code, out, _ = command(tmp_path, "compare", "before", "both", "--architectures", "static", "runtime_structured")
    text = " ".join(out.split())
    assert (
        out.startswith("both, runtime_structured against before, static: ")
        and "left out: the model weak (only in both, runtime_structured)" in text
    )


def test_the_json_says_what_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (str(write_run(tmp_path / name, runs(tokens))) for name, tokens in (("a", BEFORE), ("b", DEARER)))
    assert run_command(monkeypatch, "compare", first, second, "--json", "--measure", "tokens=0.1") == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["verdict"], result["gate"]) == ("worse", {"tokens": 0.1})
    assert result["sentences"][0].startswith("worse: tokens worse (200 [")
    [tokens] = [row for row in result["overall"] if row["measure"] == "tokens"]
    assert tokens["difference"] == pytest.approx(200) and tokens["low"] > 100 and tokens["verdict"] == "worse"
    assert run_command(monkeypatch, "compare", first, second, "--markdown", "--by", "arm") == 1
    shown = capsys.readouterr().out
    assert "| tokens | 1000 | 1200 | 200 [" in shown and "m (SIMULATED)" in shown
    assert shown.startswith("b against a: worse: ") and "| solved |" not in shown, "only what is worse"


def test_a_terminal_and_a_pipe_are_given_the_verdict_first_and_one_table_that_fits(tmp_path: Path) -> None:
    for name, tokens in (("a", BEFORE), ("b", WILD)):
        write_run(tmp_path / "results" / name, [*runs(tokens), *of_architecture("monolithic", runs(tokens))])
    terminal = {"TTY_COMPATIBLE": "1", "COLUMNS": "100", "TERM": "dumb"}
    for words in (terminal, {"COLUMNS": ""}):
        code, out, _ = command(tmp_path, "compare", "a", "b", **words)
        assert code == 3 and out.startswith("b against a: cannot be decided with these pairs: ")
        assert out.count("┏") == 1 and "monolithic" not in out.partition("┏")[2] and "Unpaired" not in out.partition("- ")[0]
        assert "monolithic" in command(tmp_path, "compare", "a", "b", "--by", "arm", **words)[1]
        tables = [line for line in out.splitlines() if line[:1] in "┏┃│└"]
        assert tables and max(map(len, tables)) <= 160 - 60 * (words is terminal)


def test_trace_lists_trials_and_calls_and_refuses_what_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(
        write_run(
            tmp_path / "run", [trial("runtime_structured", "none", i, scenario="k8s_oomkill", timing="live") for i in (1, 2)]
        )
    )
    assert run_command(monkeypatch, "trace", folder, "assumption.rca.accepted-answers-are-right") == 0
    lines = capsys.readouterr().out.splitlines()
    first = f"  {id_of('runtime_structured-none-1-k8s_oomkill-m')}  k8s_oomkill runtime_structured none repetition 1: solved"
    assert f"{first}  wrong_answers = 0" in lines
    second = [line for line in lines if line.startswith("    call 2  ")]
    assert [line.endswith("attempt 1 try 1  first  in_answer  100 in, 20 out  accepted") for line in second] == [True, True]
    assert run_command(monkeypatch, "trace", folder, "retry.debugging.static-to-monolithic") == 0
    assert "not measured" in capsys.readouterr().out
    assert run_command(monkeypatch, "trace", folder, "retry.rca.static-to-monolitic") == 2
    assert "did you mean 'retry.rca.static-to-monolithic'" in capsys.readouterr().err
