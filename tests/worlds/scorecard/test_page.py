"""A scorecard as it is shown: every number with what it is of, and hostile names as texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostile import TEXTS
from records import run_of
from scorecards import ACK, lived, shop

from bench.errors import ResultsError
from bench.render.drawing import style
from bench.render.table import Table, markdown
from bench.worlds.scorecard import Scorecard, compare_scorecards, scorecard_of
from bench.worlds.scorecard.badge import badge
from bench.worlds.scorecard.compare_table import as_json, compare_table
from bench.worlds.scorecard.page import as_html, as_markdown
from bench.worlds.scorecard.pictures import pictures
from bench.worlds.scorecard.tables import UNMEASURED, glance, tables
from bench.worlds.scorecard.words import findings, own_logs


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Scorecard:
    records = [*shop(), *shop(0, "solved", system="careful"), lived("answers", "task_1", planned=(ACK,))]
    return scorecard_of([run_of(tmp_path_factory.mktemp("card"), records)])


def cells(table: Table, row: int) -> Mapping[str, str]:
    return dict(zip(table.columns, table.texts()[row], strict=True))


def test_a_row_says_how_often_it_was_killed_what_came_right_and_what_was_damaged(card: Scorecard) -> None:
    first, second = (cells(glance(card), row) for row in (0, 1))
    assert (first["System"], first["Crashes"], first["Model"]) == ("agent", "8", "m (SIMULATED)")
    assert first["Right after a crash"].startswith("0/8 = 0.0% [0.0%, ")
    assert first["Damaged per 100 crashes"] == "200 (interval n/a)"
    assert second["Damaged per 100 crashes"] == "0 [0, 37]"


def test_its_words_say_the_same(card: Scorecard) -> None:
    bad, good = findings(card)
    assert bad.startswith("agent: Killed 8 times: none of 8 right; for 100 crashes, effects beyond its control: 200 doubled.")
    assert "careful: Killed 8 times: all of 8 right; nothing damaged beyond its control (that leaves room for 37 of" in good
    assert own_logs(card).startswith("not given")


def test_systems_of_which_the_same_is_to_be_said_stand_in_one_line(card: Scorecard) -> None:
    bad, good = card.rows
    both, alone = findings(replace(card, rows=(bad, good, replace(bad, system="twin"))))
    assert both.startswith("agent, twin, each: Killed 8 times")
    assert alone.startswith("careful: Killed 8 times")


def test_the_page_begins_with_one_row_a_system(card: Scorecard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.worlds.scorecard.page.pictures", lambda _: [])
    for shown in (as_html(card), as_markdown(card)):
        places = [shown.index(text) for text in ("Recovery at a glance", "In words", "What a crash does to the world")]
        assert places == sorted(places)


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
    assert cells(glance(result), 0)["Right after a crash"] == UNMEASURED
    assert not list(pictures(result)) and UNMEASURED in as_html(result)
    assert json.loads(badge(result))["message"] == UNMEASURED


def test_markdown_and_page_mark_what_is_simulated_and_name_the_schedule_and_the_files(card: Scorecard) -> None:
    for shown in (as_markdown(card), as_html(card)):
        assert "SIMULATED" in shown and card.worlds[0].schedule in shown and card.sources[0].code in shown
    with style():
        [picture] = pictures(card)
    assert "SIMULATED" in picture.caption and "N = 8 crashes" in picture.caption


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def renamed(card: Scorecard, name: str) -> Scorecard:
    return replace(
        card,
        rows=tuple(replace(row, system=f"{name}{number}", model=name) for number, row in enumerate(card.rows)),
        sources=tuple(replace(source, run=name) for source in card.sources),
        notes=(name,),
    )


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_name_stays_a_text_wherever_it_is_shown(card: Scorecard, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.worlds.scorecard.page.pictures", lambda _: [])  # drawn in the tests of figures
    harmless, hostile = renamed(card, "x"), renamed(card, text)
    page, words = as_html(hostile), as_markdown(hostile)
    assert Tags(page).tags == Tags(as_html(harmless)).tags
    assert words.count("\n") == as_markdown(harmless).count("\n")
    steering = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
    shortened = replace(hostile, rows=hostile.rows[:1])
    for shown in (page, words, badge(shortened), json.loads(badge(shortened))["label"]):
        assert not steering.search(shown)


def test_a_badge_is_what_shields_reads_and_its_colour_is_that_of_the_damage(card: Scorecard) -> None:
    bad, good = (json.loads(badge(replace(card, rows=(row,)))) for row in card.rows)
    assert set(bad) == {"schemaVersion", "label", "message", "color"} and bad["schemaVersion"] == 1
    assert (bad["color"], bad["message"]) == ("red", "0/8 right after a crash, 200 effects damaged per 100 crashes")
    assert (good["color"], good["label"]) == ("brightgreen", "recovery of careful (simulated)")


def test_a_badge_of_several_worlds_is_of_the_worst_and_one_of_several_systems_is_refused(card: Scorecard) -> None:
    bad, good = card.rows
    both = replace(card, rows=(replace(good, system="agent", world="bank"), bad))
    assert json.loads(badge(both))["color"] == "red"
    with pytest.raises(ResultsError, match="here are 2: name one with --system agent"):
        badge(card)


def test_a_comparison_says_of_each_measure_what_it_is_of(card: Scorecard) -> None:
    comparison = compare_scorecards(card, card, 0.05)
    shown = markdown(compare_table(comparison))
    assert "killed unacknowledged" in shown and "8 and 8" in shown and "no worse" in shown
    rows = json.loads(as_json(comparison))["rows"]
    assert {row["finding"] for row in rows} == {"no worse", "not measured"}
    assert all(row["pairs"] == 8 for row in rows if row["finding"] == "no worse")
