"""A run is worse than another, no worse, or neither can be said; and runs whose trials are no pairs are not compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from bench.read.analysis.arms import Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Mean
from bench.read.compare.compare import CRITERIA, ArmComparison, ArmDifference, Comparison, compare
from bench.read.compare.compare_table import arms_table, as_json, compare_table, dollars_line
from bench.read.compare.verdict import BY_CHANCE, EQUAL, Contrast
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


def compared(folder: Path, before: list[TrialRecord], after: list[TrialRecord], *measures: Any, **options: Any) -> Comparison:
    first, second = (
        with_manifest(run_of(folder / name, records), models=ERRING) for name, records in (("one", before), ("two", after))
    )
    return compare(first, second, options.pop("margin", 0.05), measures or CRITERIA, **options)


def rows_of(comparison: Comparison) -> list[ArmDifference]:
    return [row for arm in comparison.arms for row in arm.rows]


def findings(comparison: Comparison) -> dict[str, str]:
    return {row.criterion: row.finding for row in rows_of(comparison)}


# Verdicts


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (SAME, "equal"),
        (DEARER, "worse"),
        (WILD, "inconclusive"),
        (A_LITTLE_DEARER, "no better"),
        ([tokens - 200 for tokens in BEFORE], "better"),
    ],
)
def test_tokens_are_judged_by_the_interval_of_their_paired_difference(tmp_path: Path, after: list[int], verdict: str) -> None:
    assert compared(tmp_path, runs(BEFORE), runs(after), "tokens").verdict == verdict


def test_the_two_runs_swapped_swap_the_verdict(tmp_path: Path) -> None:
    assert compared(tmp_path / "a", runs(DEARER), runs(BEFORE), "tokens").verdict == "better"
    assert compared(tmp_path / "b", runs(BEFORE), runs(DEARER), "tokens").verdict == "worse"


def test_the_margin_is_a_share_of_the_smaller_mean(tmp_path: Path) -> None:
    for folder, sides in (("a", (BEFORE, DEARER)), ("c", (DEARER, BEFORE))):
        result = compared(tmp_path / folder, *map(runs, sides), "tokens", margin=0.25)
        assert result.verdict == "equal" and rows_of(result)[0].contrast.margin == pytest.approx(250)
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
def test_dollars_decide_and_not_tokens_where_both_models_have_prices(
    tmp_path: Path, before: float, after: float, verdict: str
) -> None:
    tokens = SAME if before == after else DEARER if after < before else [tokens - 200 for tokens in BEFORE]
    first, second = dearer(tmp_path / "one", before, runs(BEFORE)), dearer(tmp_path / "two", after, runs(tokens))
    result = compare(first, second, 0.05, ("cost", "tokens"))
    assert result.verdict == verdict
    assert findings(result)["cost"] == verdict


def test_equal_trials_at_other_prices_are_not_equal_in_dollars(tmp_path: Path) -> None:
    first, second = dearer(tmp_path / "one", 1.0, runs(BEFORE)), dearer(tmp_path / "two", 2.0, runs(BEFORE))
    assert findings(compare(first, second, 0.05, ("cost", "tokens"))) == {"cost": "worse", "tokens": "equal"}


def test_a_cheaper_model_that_solves_more_is_not_worse_though_its_repairs_take_more_tokens(tmp_path: Path) -> None:
    def bought(folder: str, price: float, solved: int, retry: int) -> Run:
        ended = "s" * solved + "w" * (16 - solved)
        records = [trial("static", "paper", n, OUTCOMES[end], recovered(retry + n)) for n, end in enumerate(ended, 1)]
        return dearer(tmp_path / folder, price, records)

    dear, cheap = bought("dear", 5.0, 8, 130), bought("cheap", 0.5, 16, 400)
    result = compare(dear, cheap, 0.05)
    assert findings(result)["price"] == "worse" and findings(result)["cost"] == "better"
    assert (result.verdict, compare(cheap, dear, 0.05).verdict) == ("better", "worse")
    assert result.summary == "better: better in solved, cost; worse in price"
    line = dollars_line(result)
    assert line.startswith("Dollars for a solved task: 0.000") and line.endswith(" (demo, static, paper)")
    header, row = arms_table(result).columns, arms_table(result).texts()[0]
    spent = dict(zip(header, row, strict=True))
    assert spent["A, $ for a solved task"].startswith("0.") and "/8 = " in spent["A, $ for a solved task"]
    assert "/16 = " in spent["B, $ for a solved task"]
    [arm] = json.loads(as_json(result))["arms"]
    assert arm["dollars_per_solved_after"] < arm["dollars_per_solved_before"]


def test_without_prices_no_dollars_are_shown(tmp_path: Path) -> None:
    result = compared(tmp_path, runs(BEFORE), runs(SAME), "tokens")
    assert dollars_line(result) == "" and "A, $ for a solved task" not in arms_table(result).columns


def test_where_a_price_is_unknown_tokens_decide_and_asked_alone_the_keys_are_named(tmp_path: Path) -> None:
    first, second = dearer(tmp_path / "one", 1.0, runs(BEFORE)), dearer(tmp_path / "two", None, runs(DEARER))
    assert findings(compare(first, second, 0.05, ("cost", "tokens"))) == {"tokens": "worse"}
    [row] = rows_of(compare(first, second, 0.05, ("cost",)))
    assert row.finding == "not measured" and row.reason.endswith("give the models of both runs price_in and price_out")


def test_solved_needs_many_pairs_to_be_equal_and_few_to_be_worse(tmp_path: Path) -> None:
    many, few = [300] * 60, [300] * 8
    changed = [*many[:-1], 301]
    assert compared(tmp_path / "a", runs(many), runs(changed), "solved").verdict == "equal"
    assert compared(tmp_path / "b", runs(few), runs([*few[:-1], 301]), "solved").verdict == "inconclusive"
    assert compared(tmp_path / "c", runs(few), runs(few, "w" * 8), "solved").verdict == "worse"


def test_errors_count_against_being_no_worse_and_against_being_worse(tmp_path: Path) -> None:
    many = [300] * 60
    assert compared(tmp_path / "a", runs(many), runs(many, "s" * 40 + "e" * 20), "solved").verdict == "no better"
    assert compared(tmp_path / "b", runs([300] * 8), runs([300] * 8, "e" * 8), "solved").verdict == "inconclusive"


def test_one_arm_that_is_worse_makes_the_run_worse(tmp_path: Path) -> None:
    mono = [replace(record, architecture="monolithic", id=f"m{record.id}") for record in runs(BEFORE)]
    result = compared(tmp_path, [*runs(BEFORE), *mono], [*runs(DEARER), *mono], "tokens")
    assert result.verdict == "worse"
    assert {arm.architectures[1]: arm.verdict for arm in result.arms} == {"static": "worse", "monolithic": "equal"}


def test_a_run_against_itself_is_equal_whatever_it_holds(tmp_path: Path) -> None:
    for number, records in enumerate((experiment(), runs(WILD, "swsswwss"), runs([300]), runs([300, 400], "se"))):
        assert compared(tmp_path / str(number), records, records).verdict == "equal", number


def test_one_pair_that_differs_and_errors_alone_decide_nothing(tmp_path: Path) -> None:
    assert set(findings(compared(tmp_path / "a", runs([300]), runs([900]), "tokens")).values()) == {"inconclusive"}
    failed = runs([300, 300], "ee")
    assert set(findings(compared(tmp_path / "b", failed, failed)).values()) == {"inconclusive"}
    counted = runs([300, 310], "uu")
    assert findings(compared(tmp_path / "c", counted, counted))["solved"] == "inconclusive"


def test_what_is_solved_decides_before_what_it_costs_and_the_cost_is_named(tmp_path: Path) -> None:
    wrong = runs(BEFORE, "w" * 8)
    more = compared(tmp_path / "a", wrong, runs(DEARER), "tokens", "solved")
    assert findings(more) == {"tokens": "worse", "solved": "better"}
    assert more.summary == "better: better in solved; worse in tokens"
    cheaper = compared(tmp_path / "b", runs(DEARER), wrong, "tokens", "solved")
    assert cheaper.summary == "worse: better in tokens; worse in solved"
    assert compared(tmp_path / "c", wrong, runs(DEARER), "tokens").verdict == "worse", "only tokens were asked for"


def of_monolithic(records: list[TrialRecord]) -> list[TrialRecord]:
    return [replace(record, architecture="monolithic", id=f"m{record.id}") for record in records]


def test_an_arm_that_solves_more_and_another_that_solves_fewer_are_a_trade_off(tmp_path: Path) -> None:
    wrong, right = runs(BEFORE, "w" * 8), runs(BEFORE)
    result = compared(tmp_path, [*wrong, *of_monolithic(right)], [*right, *of_monolithic(wrong)], "solved")
    assert findings(result)["solved"] == "worse", "the last arm's"
    assert result.overall[0].finding == "inconclusive"
    assert result.summary == "trade-off: better in solved (1 of 2 arms); worse in solved (1 of 2 arms); in doubt: solved"


def test_of_many_arms_one_that_differs_by_chance_is_not_worse(tmp_path: Path) -> None:
    """In five pairs the signs of all differences are alike in one of sixteen cases, which is no proof of two arms."""
    dearer = [*runs(BEFORE[:5]), *of_monolithic(runs([tokens + n for n, tokens in enumerate(DEARER[:5])]))]
    result = compared(tmp_path, [*runs(BEFORE[:5]), *of_monolithic(runs(BEFORE[:5]))], dearer, "tokens")
    [first, second] = [arm.rows[0] for arm in result.arms]
    assert {(first.finding), (second.finding)} == {"equal", "no better"} and BY_CHANCE in (first.reason, second.reason)


@pytest.mark.parametrize(("rejections", "verdict"), [(0, "inconclusive"), (1, "equal")])
def test_runs_that_could_not_differ_are_not_equal(rejections: int, verdict: str, tmp_path: Path) -> None:
    """What a prompt is told after a rejection shows nothing where nothing was rejected."""
    arms = []
    for repair in ("none", "reason"):
        write_run(tmp_path / repair, runs(BEFORE))
        edit_manifest(tmp_path / repair, config={**config_in(tmp_path / repair), "repair": repair}, models=ERRING)
        run = bench.load_run(tmp_path / repair)
        arms.append(replace(run, trials=run.trials.assign(rejections=rejections)))
    result = compare(arms[0], arms[1], 0.05, CRITERIA)
    assert result.verdict == verdict
    assert {row.reason for row in result.overall} == {"none of 8 pairs could have differed" if not rejections else EQUAL}


def test_arms_that_met_the_same_draws_count_for_one_pair(tmp_path: Path) -> None:
    """A single repetition of one task, by many architectures, is one pair of draws."""

    def once(tokens: int) -> list[TrialRecord]:
        [record] = runs([tokens])
        return [replace(record, architecture=f"a{n}", id=f"{n}{record.id}") for n in range(8)]

    result = compared(tmp_path, once(1000), once(2000), "tokens")
    assert (result.verdict, result.overall[0].contrast.why) == (
        "inconclusive",
        "the 8 pairs that could differ are copies of 1",
    )


@pytest.mark.parametrize("column", ["model", "architecture"])
def test_runs_with_one_model_or_one_architecture_each_are_compared_across_these(tmp_path: Path, column: str) -> None:
    """A model or an architecture exchanged for another, in CI: the names differ, and that is what is compared."""
    other = [replace(record, id=f"o{record.id}", **{column: "other"}) for record in runs(DEARER)]  # type: ignore[arg-type]
    result = compared(tmp_path, runs(BEFORE), other, "tokens")
    assert (result.verdict, rows_of(result)[0].contrast.pairs, rows_of(result)[0].unpaired) == ("worse", 8, 0)
    name = {"model": "m", "architecture": "static"}[column]
    assert f"two {column}s are compared: A {name}, B other" in result.runs.notes
    assert any(f"{name}" in cell and "→ other" in cell for cell in compare_table(result).texts()[0])


def test_of_two_models_against_one_none_is_guessed(tmp_path: Path) -> None:
    second = [replace(record, model="n", id=f"n{record.id}") for record in runs(BEFORE)]
    with pytest.raises(ResultsError, match=r"the model m \(only in by-hand\).*--models A B"):
        compared(tmp_path, [*runs(BEFORE), *second], runs(BEFORE, model="x"))


def test_trials_of_different_instances_are_no_pairs(tmp_path: Path) -> None:
    first, second = run_of(tmp_path / "one", runs(BEFORE)), run_of(tmp_path / "two", runs(SAME))
    first, second = (replace(run, trials=run.trials.assign(instance=name)) for run, name in ((first, "a"), (second, "b")))
    with pytest.raises(ResultsError, match="share no trial"):
        compare(first, second, 0.05)
    assert compare(first, first, 0.05).verdict == "equal"


def test_what_would_decide_is_said(tmp_path: Path) -> None:
    [row] = rows_of(compared(tmp_path, runs(BEFORE), runs(WILD), "tokens"))
    assert row.needed is not None and row.needed > (row.contrast.pairs or 0) == 8


# What decides

SOLVED, PRICE, TOKENS = "solved", "price", "tokens"


def arm(**findings: str) -> ArmComparison:
    """An arm with these findings; in capitals: that is the same in every pair."""
    condition = Condition("demo", "m", "paper")
    rows = [
        ArmDifference(
            criterion,  # type: ignore[arg-type]
            Contrast(None, None, None, None, 0.0, 8, None, False, False, alike=finding.isupper()),
            Mean(8, None, None, None, None),
            0,
            finding.lower(),  # type: ignore[arg-type]
            "",
        )
        for criterion, finding in findings.items()
    ]
    return ArmComparison(
        condition, condition, ("static", "static"), tuple(rows), (PerSolved(None, 0, 0), PerSolved(None, 0, 0))
    )


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ({"solved": "worse", "price": "better", "tokens": "better"}, "worse"),
        ({"solved": "better", "price": "worse", "tokens": "worse"}, "better"),
        ({"solved": "better", "damage": "worse"}, "trade-off"),
        ({"solved": "inconclusive", "damage": "worse", "tokens": "better"}, "worse"),
        ({"solved": "equal", "tokens": "worse"}, "worse"),
        ({"solved": "no better", "tokens": "worse"}, "worse"),
        ({"solved": "no worse", "tokens": "worse"}, "inconclusive"),
        ({"solved": "no worse", "tokens": "better"}, "better"),
        ({"solved": "equal", "tokens": "better", "seconds": "worse"}, "trade-off"),
        ({"solved": "equal", "price": "worse", "cost": "better"}, "trade-off"),
        ({"solved": "no worse", "price": "worse", "cost": "better"}, "inconclusive"),
        ({"solved": "equal", "price": "inconclusive", "tokens": "better"}, "better"),
        ({"solved": "inconclusive", "tokens": "worse"}, "inconclusive"),
        ({"solved": "INCONCLUSIVE", "tokens": "worse"}, "worse"),
        ({"solved": "INCONCLUSIVE", "tokens": "better"}, "better"),
        ({"solved": "INCONCLUSIVE", "tokens": "equal"}, "inconclusive"),
        ({"solved": "equal", "price": "no worse", "tokens": "equal"}, "no worse"),
        ({"solved": "equal", "price": "no worse", "tokens": "no better"}, "inconclusive"),
        ({"solved": "equal", "price": "equal", "tokens": "equal"}, "equal"),
        ({"solved": "equal", "price": "not measured", "first_round": "worse", "tokens": "no worse"}, "worse"),
        ({"solved": "equal", "price": "better", "first_round": "worse", "tokens": "equal"}, "better"),
        ({"solved": "equal", "cost": "equal", "tokens": "worse"}, "equal"),
        ({"price": "not measured", "first_round": "not measured"}, "inconclusive"),
    ],
)
def test_quality_decides_before_cost(findings: dict[str, str], verdict: str) -> None:
    assert arm(**findings).verdict == verdict


def repairing(tokens: Sequence[int]) -> list[TrialRecord]:
    """One arm's trials under a fault, each with one repair of so many tokens; the trials themselves cost the same."""
    return [trial("static", "paper", n, events=recovered(spent)) for n, spent in enumerate(tokens, 1)]


def test_a_failures_cost_is_judged_by_price_or_else_by_its_first_round(tmp_path: Path) -> None:
    few = compared(tmp_path / "few", repairing([100, 110, 120]), repairing([300, 310, 325]), "price", "first_round")
    assert findings(few) == {"price": "not measured", "first_round": "worse"} and few.verdict == "worse"
    assert (rows_of(few)[0].contrast.before, rows_of(few)[0].difference.low, rows_of(few)[0].needed) == (None, None, None)
    first, second = repairing([100, 110, 120, 105, 115]), repairing([300, 310, 325, 305, 315])
    many = compared(tmp_path / "many", first, second, "price", "first_round")
    assert findings(many) == {"price": "worse", "first_round": "worse"} and rows_of(many)[0].contrast.pairs == 5
    none = compared(tmp_path / "none", runs(BEFORE), runs(SAME))
    assert "price" not in findings(none) and "first_round" not in findings(none), "without a fault none is to be repaired"


def test_the_same_difference_in_each_pair_is_proof_from_six_pairs_on(tmp_path: Path) -> None:
    """The interval has no width, and that alone proves nothing."""
    for pairs, finding in ((2, "inconclusive"), (5, "inconclusive"), (6, "worse"), (8, "worse")):
        result = compared(
            tmp_path / str(pairs), runs(BEFORE[:pairs]), runs([tokens + 200 for tokens in BEFORE[:pairs]]), "tokens"
        )
        assert findings(result) == {"tokens": finding}, pairs
    assert findings(compared(tmp_path / "same", runs([300] * 2), runs([300] * 2, "sw"), "tokens")) == {"tokens": "equal"}


# What is no pair


def test_runs_of_unlike_repetitions_are_refused_or_compared_on_what_they_share(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"repetitions \(8 \| 6\); leave --whole out"):
        compared(tmp_path / "a", runs(BEFORE), runs(SAME[:6]), whole=True)
    result = compared(tmp_path / "b", runs(BEFORE), runs(SAME[:6]), "tokens")
    assert (rows_of(result)[0].contrast.pairs, rows_of(result)[0].unpaired) == (6, 0)
    assert rows_of(result)[0].contrast.before == pytest.approx(sum(BEFORE[:6]) / 6)
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
        compare(bench.load_run(first), bench.load_run(second), 0.05, whole=True)
    result = compare(bench.load_run(first), bench.load_run(second), 0.05)
    assert {arm.first.plan for arm in result.arms} == {"none"}
    assert result.runs.left_out == ("the fault plan paper (its versions differ)",)
    edit_manifest(second, config=config, scenarios={"demo": {"asked": "another"}})
    with pytest.raises(ResultsError, match=r"share no trial: the pack demo \(its versions differ\)"):
        compare(bench.load_run(first), bench.load_run(second), 0.05)


@pytest.mark.parametrize(("changes", "message"), [({"seed": 8}, "the seed"), ({}, "the tokenizer")])
def test_another_seed_or_tokenizer_makes_no_pairs(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    first, second = (write_run(tmp_path / name, runs(BEFORE)) for name in ("one", "two"))
    config = config_in(second)
    edit_manifest(second, config={**config, **changes}, **({} if changes else {"tokenizer": "another"}))
    with pytest.raises(ResultsError, match=message):
        compare(bench.load_run(first), bench.load_run(second), 0.05)


def test_settings_and_code_may_be_what_is_compared_and_are_said(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, runs(BEFORE)) for name in ("one", "two"))
    config = config_in(second)
    edit_manifest(second, config={**config, "repair": "none"}, code={"digest": "newer"})
    notes = compare(bench.load_run(first), bench.load_run(second), 0.05).runs.notes
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
    for name, tokens in (("before", BEFORE), ("same", SAME), ("dearer", DEARER), ("wild", WILD), ("few", SAME[:3])):
        write_run(tmp_path / "results" / name, runs(tokens))
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
    assert run_command(monkeypatch, *command, "few") in (0, 3)


def test_who_solves_five_of_five_in_the_place_of_none_for_more_tokens_is_not_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a newcomer was told was worse: 29% more tokens, and every task solved."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "results" / "before", runs(BEFORE[:5], "w" * 5))
    write_run(tmp_path / "results" / "after", runs([round(1.29 * record) for record in BEFORE[:5]]))
    for name in ("before", "after"):
        edit_manifest(tmp_path / "results" / name, models=ERRING)
    assert run_command(monkeypatch, "compare", "before", "after") == 0
    assert capsys.readouterr().out.endswith("after against before: better: better in solved; worse in tokens\n")
    assert run_command(monkeypatch, "compare", "after", "before") == 1
    assert run_command(monkeypatch, "compare", "before", "after", "--measure", "tokens") == 1, "only tokens were asked for"


def test_two_models_are_compared_in_one_command_by_the_exit_code(tmp_path: Path) -> None:
    """Of one run, of two runs, and of a run with several and one with another; by real runs of simulated models."""
    config = str(workplace(tmp_path, repetitions=8, tables='[model.weak]\nkind = "simulated"\nfailure_rate = 0.95\n'))
    command(tmp_path, "run", config, "--model", "simulated", "--model", "weak", "--name", "both")
    command(tmp_path, "run", config, "--model", "simulated", "--name", "before")
    command(tmp_path, "run", config, "--model", "weak", "--name", "after")
    assert command(tmp_path, "compare", "both", "--models", "simulated", "weak")[0] == 1
    code, out, _ = command(tmp_path, "compare", "both", "--models", "weak", "simulated")
    assert code == 0 and "weak (SIMULATED) → simulated (SIMULATED)" in out and "both, simulated against both, weak: " in out
    assert command(tmp_path, "compare", "before", "after")[0] == 1
    assert command(tmp_path, "compare", "both", "before", "--models", "simulated", "simulated")[0] == 0
    code, out, err = command(tmp_path, "compare", "both", "--models", "simulated", "week")
    assert (code, out, err) == (2, "", "bench: both holds no trial of the model 'week'; did you mean 'weak'?\n")
    code, out, _ = command(tmp_path, "compare", "before", "both", "--architectures", "static", "runtime_structured")
    text = " ".join(out.split())
    assert "static → runtime_structured" in text and "left out: the model weak (only in both, runtime_structured)" in text


def test_the_json_says_what_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (str(write_run(tmp_path / name, runs(tokens))) for name, tokens in (("a", BEFORE), ("b", DEARER)))
    assert run_command(monkeypatch, "compare", first, second, "--json", "--margin", "0.1") == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["verdict"], result["margin"], result["arms"][0]["verdict"]) == ("worse", 0.1, "worse")
    [tokens] = [row for row in result["rows"] if row["measure"] == "tokens"]
    assert tokens["difference"] == pytest.approx(200) and tokens["low"] > 100 and tokens["verdict"] == "worse"
    assert run_command(monkeypatch, "compare", first, second, "--markdown") == 1
    shown = capsys.readouterr().out
    assert (
        "| tokens | 1000 | 1200 | 200 [" in shown
        and "m (SIMULATED)" in shown
        and shown.endswith("b against a: worse: worse in tokens; in doubt: solved\n")
    )


def test_a_terminal_is_shown_tables_that_fit_it(tmp_path: Path) -> None:
    for name, tokens in (("a", BEFORE), ("b", DEARER)):
        write_run(tmp_path / "results" / name, runs(tokens))
    code, out, _ = command(tmp_path, "compare", "a", "b", TTY_COMPATIBLE="1", COLUMNS="100", TERM="dumb")
    tables, _, lines = out.partition("- ")
    assert code == 1 and "Verdict" in tables and "To decide" not in out.partition("measure by measure")[2].partition("- ")[0]
    assert max(map(len, tables.splitlines())) <= 100
    columns = "Margin, Pairs, Unpaired, Reason and To decide"
    assert f"With --markdown the tables also have the columns {columns}." in " ".join(lines.split())


def test_a_pipe_is_given_the_tables_of_a_terminal(tmp_path: Path) -> None:
    for name, tokens in (("a", BEFORE), ("b", DEARER)):
        write_run(tmp_path / "results" / name, runs(tokens))
    code, out, _ = command(tmp_path, "compare", "a", "b", COLUMNS="")
    [row] = [line for line in out.splitlines() if line.startswith("│") and "1000" in line and "1200" in line]
    assert code == 1 and "worse" in row
    assert "Reason" not in next(line for line in out.splitlines() if "Finding" in line)


def test_trace_lists_trials_and_calls_and_refuses_what_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(
        write_run(tmp_path / "run", [trial("static", "none", i, scenario="k8s_oomkill", timing="live") for i in (1, 2)])
    )
    assert run_command(monkeypatch, "trace", folder, "table2.calls.static") == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        f"  {id_of('static-none-1-k8s_oomkill-m')}  k8s_oomkill static none repetition 1: solved  first_pass_calls = 2" in lines
    )
    assert lines.count("    call 2  b  attempt 1 try 1  first  in_answer  100 in, 20 out  accepted") == 2
    assert run_command(monkeypatch, "trace", folder, "table1.calls.static") == 0
    assert "not measured" in capsys.readouterr().out
    assert run_command(monkeypatch, "trace", folder, "table2.call.static") == 2
    assert "did you mean 'table2.calls.static'" in capsys.readouterr().err
