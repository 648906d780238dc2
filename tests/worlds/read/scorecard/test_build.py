"""The recovery scorecard, from records whose answers are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import called, config_in, edit_manifest, experiment, run_of, write_run
from scorecards import ACK, CRASH, crashed, lived, shop

import bench
from bench.common.digests import digest_of
from bench.common.errors import ResultsError
from bench.read.analysis.statistics import exact_share
from bench.read.render.table import markdown
from bench.record.damage import DAMAGES
from bench.record.events import Called, of_kind
from bench.record.record import TrialRecord
from bench.record.tool_calls import ToolCall, text_of
from bench.worlds.read.scorecard.build import scorecard_of
from bench.worlds.read.scorecard.card import ALL_CRASHES, Scorecard, ScorecardRow, Struck
from bench.worlds.read.scorecard.tables import tables
from bench.worlds.read.scorecard.words import findings


def card_of(folder: Path, records: list[TrialRecord]) -> Scorecard:
    return scorecard_of([run_of(folder, records)])


def only(card: Scorecard) -> ScorecardRow:
    [row] = card.rows
    return row


def struck(card: Scorecard, by: str = ALL_CRASHES) -> Struck:
    result = only(card).struck_by(by)
    assert result is not None
    return result


# What is counted


def test_damage_is_counted_beyond_the_control_and_put_by_100_crashes(tmp_path: Path) -> None:
    """Five effects doubled in two trials, of which the controls did one: four beyond, in three crashes."""
    twice = lived("crash", "two", by=(CRASH, CRASH), damage={"doubled": 3}, outcome="wrong")
    card = card_of(tmp_path, [lived(instance="one", damage={"doubled": 1}), lived(instance="two"), crashed("one", 2), twice])
    result = struck(card)
    assert (result.failures, result.trials, result.instances, result.paired) == (3, 2, 2, 2)
    assert result.harm["doubled"].effects == 4 and result.harm["doubled"].per_100.value == pytest.approx(400 / 3)
    assert (result.right.k, result.right.n) == (1, 2)
    assert (only(card).control.k, only(card).control.n) == (2, 2)
    assert result.any_harm.k == 2 and result.harm["any"].effects == 4


def test_what_a_control_damaged_and_the_struck_trial_did_not_is_taken_off_and_told(tmp_path: Path) -> None:
    records = [lived(instance="one", damage={"stale": 3}), lived(instance="two"), crashed("one", 0), crashed("two", 1)]
    result = struck(card_of(tmp_path, records))
    stale = result.harm["stale"]
    assert (stale.effects, stale.more, stale.fewer) == (-3, 0, 3) and stale.per_100.value == pytest.approx(-150)
    assert (result.harm["any"].effects, result.any_harm.k) == (-2, 1)


def test_trials_of_one_task_that_went_the_same_course_are_told_as_copies(tmp_path: Path) -> None:
    other = lived("later", "one", by=(("process", "recorded"),), damage={"doubled": 1}, outcome="wrong")
    same = replace(other, id="the same", plan="sooner")
    further = lived("crash", "two", by=(CRASH,), damage={"doubled": 2}, outcome="wrong")
    card = card_of(tmp_path, [lived(instance="one"), lived(instance="two"), other, same, further])
    result = struck(card)
    assert (result.trials, result.distinct, result.has_copies) == (3, 2, True)
    shown = "".join(map(markdown, tables(card)))
    assert "| 3, 2 distinct |" in shown and "are copies" in shown


def test_damage_that_never_came_up_is_0_with_the_exact_upper_end_of_a_share(tmp_path: Path) -> None:
    result = struck(card_of(tmp_path, shop(doubled=0, outcome="solved", instances=10)))
    assert result.harm["doubled"].per_100.value == result.harm["doubled"].per_100.low == 0
    assert result.harm["doubled"].per_100.high == pytest.approx(100 * (1 - 0.025 ** (1 / 10)))
    assert result.right == exact_share(10, 10)


def test_where_all_crashes_do_the_same_there_is_a_number_and_no_interval(tmp_path: Path) -> None:
    rate = struck(card_of(tmp_path, shop(doubled=2))).harm["doubled"].per_100
    assert (rate.value, rate.low, rate.high, rate.n) == (200, None, None, 8)


def test_an_interval_of_what_is_nowhere_below_0_is_not_below_0(tmp_path: Path) -> None:
    doubled = {"a": 0, "b": 0, "c": 1, "d": 5}
    records = [*(lived(instance=name) for name in doubled), *(crashed(name, count) for name, count in doubled.items())]
    rate = struck(card_of(tmp_path, records)).harm["doubled"].per_100
    assert rate.low is not None and rate.high is not None and 0 < rate.low < 150 < rate.high


def test_a_kind_of_failure_that_was_planned_and_never_came_is_not_measured_and_never_0(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [*shop(), lived("answers", "task_1", planned=(ACK,))])
    config = config_in(folder)
    early = {"faults": [{"point": "process", "effect": "before"}]}
    edit_manifest(folder, config={**config, "plan": {**config["plan"], "early": early}, "plans": [*config["plans"], "early"]})
    card = scorecard_of([bench.load_run(folder)])
    lost = struck(card, "tool:lost_ack")
    assert (lost.failures, lost.trials, lost.right.rate, lost.harm["lost"].per_100.value) == (0, 0, None, None)
    assert lost.work["tokens"].value is None and all(each.value is None for each in lost.pass_hat)
    assert {receipt.by: receipt.not_applicable for receipt in only(card).receipts}["tool:lost_ack"] == 1
    assert only(card).not_struck == 1


def test_work_is_a_ratio_to_the_own_control_and_recovery_what_each_crash_took_beyond_it(tmp_path: Path) -> None:
    records = [
        *(lived(instance="a", tokens=100), lived(instance="b", tokens=200)),
        crashed("a", 0, tokens=300, tool_calls=8),
        lived("crash", "b", by=(CRASH, CRASH), tokens=250),
    ]
    result = struck(card_of(tmp_path, records))
    assert result.work["tokens"].value == pytest.approx(550 / 300)
    assert result.work["tool_calls"].value == pytest.approx(12 / 8)
    assert result.recovery["tokens"].value == pytest.approx(250 / 3)
    assert result.recovery["tool_calls"].value == pytest.approx(4 / 3)


def test_a_trial_that_gave_up_is_not_right_and_saves_no_work(tmp_path: Path) -> None:
    records = [*(lived(instance=name) for name in "ab"), crashed("a", 0), crashed("b", 0, "gave_up", tokens=30)]
    result = struck(card_of(tmp_path, records))
    assert (result.right.k, result.right.n, result.paired, result.compared) == (1, 2, 2, 1)
    assert result.work["tokens"].value == 1


def test_only_trials_that_a_failure_struck_speak_of_recovery(tmp_path: Path) -> None:
    records = [
        *(lived(instance=name) for name in "abcde"),
        crashed("a", 1, "wrong"),
        lived("crash", "b"),
        lived("crash", "c", by=(CRASH, ACK), damage={"lost": 7}),
        lived("crash", "d", by=(("process", "recorded"), CRASH), damage={"late": 1}),
        lived("crash", "e", outcome="error", by=(CRASH,)),
    ]
    row = only(card_of(tmp_path, records))
    assert (row.not_struck, row.mixed, row.errors, row.trials) == (1, 1, 1, 10)
    trials = {each.by: each.trials for each in row.struck}
    assert trials == {ALL_CRASHES: 2, "process:unacknowledged": 1, "process:recorded": 0, "tool:lost_ack": 0}
    crashes = row.struck_by(ALL_CRASHES)
    assert crashes is not None and (crashes.failures, crashes.harm["lost"].effects) == (3, 0)


def test_the_chance_of_k_right_ones_is_of_tries_of_one_task_where_each_task_has_several(tmp_path: Path) -> None:
    tries = [(name, n) for name in "ab" for n in range(1, 5)]
    records = [lived(instance=name, repetition=n) for name, n in tries]
    records += [crashed(name, 0, "solved" if (name, n) != ("b", 1) else "wrong", repetition=n) for name, n in tries]
    hats = {each.k: each for each in struck(card_of(tmp_path, records)).pass_hat}
    assert {k: hat.value for k, hat in hats.items()} == {1: 7 / 8, 2: (1 + 3 / 6) / 2, 4: 0.5, 8: None}
    assert [(hats[k].n, hats[k].left_out) for k in (1, 4, 8)] == [(2, 0), (2, 0), (0, 2)]


def test_a_count_of_damage_that_the_worlds_tables_deny_is_told(tmp_path: Path) -> None:
    row = only(card_of(tmp_path, [lived(), lived("crash", by=(CRASH,), agrees=False)]))
    assert (row.two_counts_agree.k, row.two_counts_agree.n) == (1, 2)


def test_a_system_that_is_never_right_undisturbed_has_the_most_frequent_reason(tmp_path: Path) -> None:
    endings = {"a": "no end within 60 s", "b": "a reply that breaks off", "c": "no end within 60 s"}
    records = [
        *(lived(instance=name, outcome="gave_up", reason=reason) for name, reason in endings.items()),
        *(crashed(name, 0, "wrong") for name in endings),
    ]
    card = card_of(tmp_path, records)
    assert only(card).reason == "no end within 60 s (2 of 3)"
    assert "The trials failed most often for this reason: no end within 60 s (2 of 3)." in " ".join(findings(card))


def test_a_system_that_was_right_undisturbed_needs_no_reason(tmp_path: Path) -> None:
    records = [lived(instance="a"), lived(instance="b", outcome="gave_up", reason="late"), crashed("a", 0), crashed("b", 0)]
    assert only(card_of(tmp_path, records)).reason == ""


def test_an_agent_that_went_round_in_a_circle_has_that_as_its_reason(tmp_path: Path) -> None:
    texts = {digest_of(text): text for text in (text_of([ToolCall(f"id{n}", "wait", "{}")]) for n in range(30))}
    stuck = lived(instance="a", outcome="wrong")
    asked = [replace(called(n, "a", cause="step"), messages=(), reply=None, tool_calls=d) for n, d in enumerate(texts, 2)]
    events = (*stuck.events, *asked)
    tokens = sum(call.tokens_in + call.tokens_out for call in of_kind(events, Called))
    circle = replace(stuck, tokens=tokens, events=events)
    folder = write_run(tmp_path / "run", [circle, crashed("a", 0, "wrong")])
    (folder / "texts.jsonl").write_text(
        "".join(json.dumps({"digest": digest, "text": text}) + "\n" for digest, text in texts.items())
    )
    row = only(scorecard_of([bench.load_run(folder)]))
    assert row.reason.startswith("the model made the same tool call 30 times in one trial")
    assert row.reason.endswith("(1 of 1)")


# Which runs


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (experiment(), "no trial of it has a world"),
        ([lived(), lived(instance="two")], "needs a fault plan and the plan 'none' beside it"),
        ([crashed("one", 1)], "needs a fault plan and the plan 'none' beside it"),
    ],
)
def test_a_run_that_says_nothing_of_recovery_is_refused_in_one_line(tmp_path: Path, records: list[Any], words: str) -> None:
    with pytest.raises(ResultsError, match=words) as refused:
        card_of(tmp_path, records)
    assert "\n" not in str(refused.value)


def test_two_systems_of_two_runs_under_the_same_faults_stand_in_one_scorecard(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, shop(system=name)) for name in ("first", "second")]
    together, alone = scorecard_of(runs), scorecard_of(runs[:1])
    assert [row.system for row in together.rows] == ["first", "second"] and together.rows[0] == alone.rows[0]
    assert [world.schedule for world in together.worlds] == [world.schedule for world in alone.worlds]


def test_two_worlds_of_two_runs_have_a_row_each(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, shop(scenario=name)) for name in ("bank", "shop")]
    card = scorecard_of(runs)
    assert [row.world for row in card.rows] == [world.name for world in card.worlds] == ["bank", "shop"]


def test_runs_of_other_faults_are_refused(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, shop(system=name)) for name in ("one", "two")]
    config = config_in(folders[1])
    edit_manifest(folders[1], config={**config, "seed": 99})
    with pytest.raises(ResultsError, match="they differ in the seed"):
        scorecard_of([bench.load_run(folder) for folder in folders])


def test_another_seed_is_another_fault_schedule(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", shop())
    before = scorecard_of([bench.load_run(folder)])
    config = config_in(folder)
    edit_manifest(folder, config={**config, "seed": 99})
    assert scorecard_of([bench.load_run(folder)]).worlds[0].schedule != before.worlds[0].schedule


# Whatever the records


PLANNED = st.lists(st.sampled_from([CRASH, ("process", "before"), ACK]), max_size=3).map(tuple)
HURT = st.dictionaries(st.sampled_from(DAMAGES), st.integers(0, 3), max_size=3)
OUTCOMES = st.sampled_from(["solved", "wrong", "gave_up", "error"])
TRIALS = st.lists(st.tuples(PLANNED, HURT, OUTCOMES, OUTCOMES, HURT), min_size=1, max_size=5)


@settings(max_examples=5, deadline=None)
@given(TRIALS)
def test_the_counts_of_a_row_add_up_whatever_happened(tmp_path_factory: pytest.TempPathFactory, trials: list[Any]) -> None:
    records = []
    for number, (by, hurt, outcome, undisturbed, before) in enumerate(trials):
        records.append(lived(instance=str(number), outcome=undisturbed, damage=before))
        records.append(lived("crash", str(number), outcome=outcome, by=by, damage=hurt, planned=(CRASH,)))
    row = only(card_of(tmp_path_factory.mktemp("any"), records))
    kinds = [each for each in row.struck if each.by != ALL_CRASHES]
    crashes = row.struck_by(ALL_CRASHES)
    several = (crashes.trials if crashes else 0) - sum(kind.trials for kind in kinds if kind.by.startswith("process:"))
    assert several >= 0
    assert row.control.n + sum(kind.trials for kind in kinds) + several + row.not_struck + row.mixed + row.errors == row.trials
    for cell in row.struck:
        assert cell.right.k <= cell.right.n == cell.trials >= cell.paired >= cell.compared
        assert cell.harm["any"].effects == sum(cell.harm[kind].effects for kind in DAMAGES)
        assert all(harm.effects == harm.more - harm.fewer for harm in cell.harm.values())
        assert (cell.harm["any"].per_100.value is None) == (cell.paired == 0)
    for receipt in row.receipts:
        assert receipt.planned == receipt.delivered + receipt.not_applicable
