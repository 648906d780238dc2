"""A scorecard as it is shown: every number with what it is of, and hostile names as texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hostile import TEXTS
from records import run_of
from scorecards import ACK, lived, shop

from bench.read.analysis.results import Results
from bench.read.render.table import Table, markdown
from bench.read.report.tables import all_tables
from bench.worlds.read.scorecard.build import scorecard_of
from bench.worlds.read.scorecard.card import HarmRates, Scorecard, ScorecardRow
from bench.worlds.read.scorecard.cells import ANY_KIND
from bench.worlds.read.scorecard.tables import UNMEASURED, overview, short_table, tables
from bench.worlds.read.scorecard.words import findings, schedules, warnings


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Scorecard:
    records = [*shop(), *shop(0, "solved", system="careful"), lived("answers", "task_1", planned=(ACK,))]
    return scorecard_of([run_of(tmp_path_factory.mktemp("card"), records)])


def cells(table: Table, row: int) -> Mapping[str, str]:
    return dict(zip(table.columns, table.texts()[row], strict=True))


def test_a_row_says_how_often_it_was_killed_what_came_right_and_what_was_damaged(card: Scorecard) -> None:
    first, second = (cells(overview(card), row) for row in (0, 1))
    assert (first["System"], first["Crashes"], first["Model"]) == ("agent", "8", "m (SIMULATED)")
    assert first["Right after a crash"].startswith("0/8 = 0.0% [0.0%, ")
    assert first["Damaged per 100 crashes"] == "200 (interval n/a)"
    assert second["Damaged per 100 crashes"] == "0 [0, 37]"


def test_its_words_say_the_same(card: Scorecard) -> None:
    assert list(findings(card)) == [
        "On shop, agent and careful each finished all of 8 undisturbed trials right. These trials are their control.",
        "On shop, agent was killed 8 times in 8 trials. None of these 8 trials finished right. Beyond the damage in the "
        "control, every 100 crashes left 200 effects done twice.",
        "On shop, careful was killed 8 times in 8 trials. All of these 8 trials finished right. No trial did more damage "
        "than its control, and the upper end of the 95% interval is 37 in 100 trials.",
    ]


def test_lost_answers_have_sentences_and_a_number_is_in_the_singular_where_it_is_one(tmp_path: Path) -> None:
    lost = lived("answers", by=(ACK,), damage={"orphaned": 1}, tokens=300)
    alone = scorecard_of([run_of(tmp_path, [lived(), lost])])
    assert list(findings(alone)) == [
        "On shop, agent finished 1 of 1 undisturbed trial right. These trials are its control.",
        "On shop, 1 answer was kept from agent in 1 trial. The trial finished right. It took 3.0 times the tokens of the "
        "control. Beyond the damage in the control, every 100 lost answers left 100 effects without a record.",
    ]
    twins = replace(alone, rows=(*alone.rows, replace(alone.rows[0], system="twin")))
    assert "On shop, 1 answer was kept from each of agent and twin in 1 trial." in " ".join(findings(twins))


def test_systems_with_the_same_sentences_are_named_together_but_those_of_two_models_are_not(card: Scorecard) -> None:
    bad, good = card.rows
    twins = replace(card, rows=(bad, good, replace(bad, system="twin")))
    assert "On shop, agent and twin were each killed 8 times" in " ".join(findings(twins))
    lines = list(findings(replace(card, rows=(bad, replace(bad, model="other", whose="live")))))
    assert [line.partition(" was killed")[0] for line in lines if "killed" in line] == [
        "On shop with m (SIMULATED), agent",
        "On shop with other, agent",
    ]


def test_the_sentences_on_one_world_stand_together_and_name_no_system_of_another(card: Scorecard) -> None:
    bad, good = card.rows
    lines = list(findings(replace(card, rows=(bad, replace(good, world="bank")))))
    assert [line.partition(" finished")[0].partition(" was killed")[0] for line in lines] == [
        "On shop, agent",
        "On shop, agent",
        "On bank, careful",
        "On bank, careful",
    ]


def test_the_sentences_keep_copies_rare_damage_less_damage_and_what_was_not_measured(card: Scorecard) -> None:
    bad, good = card.rows
    [crashed, *_] = bad.struck

    def told(row: ScorecardRow, **changes: Any) -> str:
        struck = (replace(row.struck[0], **changes),)
        return " ".join(findings(replace(card, rows=(replace(row, struck=struck),))))

    def harm(kind: str, effects: int, per_100: float) -> HarmRates:
        rates = crashed.harm[kind]
        return replace(rates, effects=effects, per_100=replace(rates.per_100, value=per_100))

    assert "was killed once in 8 trials, of which 2 are distinct." in told(bad, failures=1, distinct=2)
    rare = told(bad, harm={**crashed.harm, "stale": harm("stale", 1, 0.4), "late": harm("late", 3, 37.0)})
    assert "left 200 effects done twice, 37 done too late and fewer than 1 based on what had changed." in rare
    assert rare.count("less than in the control") == 0
    assert "every 100 crashes left 1 effect missing." in told(bad, harm={**good.struck[0].harm, "lost": harm("lost", 1, 1.2)})
    less = told(bad, harm={**crashed.harm, "lost": harm("lost", -2, -25.0)})
    assert "left 200 effects done twice, while other damage was less than in the control." in less
    some = told(good, any_harm=replace(good.struck[0].any_harm, k=3))
    assert "Damage was greater than in the control in 3 of 8 trials, and less than in the control in others." in some
    assert "Damage beyond the control was not measured." in told(bad, paired=0)
    unmeasured = replace(bad, control=replace(bad.control, k=0, n=0))
    assert next(findings(replace(card, rows=(unmeasured,)))) == "On shop, no undisturbed trial of agent was measured."
    failing = replace(bad, control=replace(bad.control, k=0), reason="no end after 40 calls (5 of 8)")
    first = next(findings(replace(card, rows=(failing,))))
    assert "agent finished none of 8 undisturbed trials right." in first
    assert first.endswith("The trials failed most often for this reason: no end after 40 calls (5 of 8).")


TERM = re.compile(r"[a-z×][\w^, ]{0,30}: ")
"""The beginning of a note that defines a term."""


def test_each_note_below_a_table_is_of_sentences_or_defines_a_term(card: Scorecard) -> None:
    more = replace(card.rows[0].struck[0].harm[ANY_KIND], fewer=1)
    struck = replace(card.rows[0].struck[0], distinct=2)
    alone = replace(card.rows[0].struck[1], distinct=2)
    row = replace(card.rows[0], struck=(replace(struck, harm={**struck.harm, ANY_KIND: more}), alone, *card.rows[0].struck[2:]))
    rich = replace(card, rows=(row, *card.rows[1:]))
    notes = [note for table in (*tables(rich), short_table(rich)) for note in table.notes]
    assert any("copies" in note for note in notes) and any("taken off" in note for note in notes)
    for note in notes:
        is_sentence = note[0].isupper() and note.endswith(".")
        assert is_sentence or (TERM.match(note) and not note.endswith(".")), note


def test_the_short_table_says_what_its_kinds_of_damage_mean(card: Scorecard) -> None:
    notes = short_table(card).notes
    assert "doubled: an effect that happened once too often" in notes
    assert not any(note.startswith("stale: ") for note in notes), "no effect was stale"


def test_what_was_not_measured_is_a_word_and_never_a_number(card: Scorecard) -> None:
    rows = [cells(table, row) for table in tables(card) for row in range(len(table.rows)) if "What happens" in table.columns]
    lost = [row for row in rows if row["What happens"] == "answer lost"]
    assert len(lost) == 2 * 4
    shown = {
        value for row in lost for name, value in row.items() if re.match(r"Right|Lost|Doubled|Tokens|k = |Trials with", name)
    }
    assert shown == {UNMEASURED}


def test_without_any_plan_that_kills_the_page_stands_and_says_so(tmp_path: Path) -> None:
    records = [lived(), lived("answers", by=(ACK,), damage={"doubled": 1})]
    result = scorecard_of([run_of(tmp_path, records)])
    assert cells(overview(result), 0)["Right after a crash"] == UNMEASURED
    assert all(markdown(table) for table in tables(result))


def renamed(card: Scorecard, name: str) -> Scorecard:
    return replace(
        card,
        rows=tuple(replace(row, system=f"{name}{number}", model=name) for number, row in enumerate(card.rows)),
        notes=(name,),
    )


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_name_stays_a_text_in_every_table(card: Scorecard, text: str) -> None:
    harmless, hostile = ("".join(map(markdown, tables(renamed(card, name)))) for name in ("x", text))
    assert hostile.count("\n") == harmless.count("\n")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", hostile)


def test_what_is_simulated_and_which_faults_were_met_is_told(card: Scorecard) -> None:
    assert warnings(card) and "m (SIMULATED)" in markdown(overview(card))
    [schedule] = schedules(card)
    assert card.worlds[0].schedule in schedule and schedule in overview(card).notes


def test_a_report_of_killed_systems_has_the_tables_in_a_section_of_their_own(tmp_path: Path) -> None:
    killed, undisturbed = (run_of(tmp_path / name, records) for name, records in (("a", shop()), ("b", [lived()])))
    tables_of = [all_tables(Results(run)) for run in (killed, undisturbed)]
    names = [[table.name for table in of_run if table.section == "scorecard"] for of_run in tables_of]
    assert names == [["scorecard", *(f"scorecard-{name}" for name in ("failures", "cost", "pass", "receipts"))], []]
