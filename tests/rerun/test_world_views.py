"""What a trial did to its world: the journal beside what the agent was told, row by row, and where the damage comes from."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from little_worlds import ROOT
from world_runs import world_run

from bench.common.errors import ConfigError
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import records_of
from bench.read.report.trace import trace_of
from bench.read.report.trial_text import text_of_trial
from bench.record.record import TrialRecord
from bench.record.world_events import WorldEnded
from bench.rerun.world_views import SQL_BEGINNING, WorldViews
from bench.worlds.read.trace import IDLE_LINE, WorldTrace
from bench.worlds.run.environment import World
from bench.worlds.run.environment.changes import changes, rows_in
from bench.worlds.run.environment.database import connect


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return world_run(tmp_path_factory.mktemp("worlds"))


def record_of(run: Run, architecture: str, plan: str) -> TrialRecord:
    return next(record for record in records_of(run) or () if (record.architecture, record.plan) == (architecture, plan))


def traced(run: Run, architecture: str, plan: str, packs: list[Path] | None = None) -> WorldTrace:
    assert run.folder
    around = WorldViews(packs if packs is not None else [ROOT])
    views = around.views(run, around.texts_of(run, [run.folder]))
    return views.of(record_of(run, architecture, plan))["world"]


@pytest.mark.parametrize("plan", ["none", "crash", "lost"])
@pytest.mark.parametrize("architecture", ["state_machine", "kept"])
def test_each_entry_of_the_journal_and_each_call_stands_there_once(run: Run, architecture: str, plan: str) -> None:
    world = traced(run, architecture, plan)
    entries = [step.entry for step in world.steps if step.entry]
    assert world.lacking == "" and entries == sorted(set(entries)) == list(range(1, len(entries) + 1))
    tool_calls = run.tool_calls[(run.tool_calls["architecture"] == architecture) & (run.tool_calls["plan"] == plan)]
    assert sum(step.kind == "call" for step in world.steps) == len(tool_calls)


def test_a_call_whose_answer_was_lost_says_that_it_happened_and_what_it_changed(run: Run) -> None:
    unheard = [step for step in traced(run, "state_machine", "lost").steps if step.how == "unheard"]
    assert unheard and all(step.changes and step.entry for step in unheard)
    assert all(dict(step.details)["Told"] == "failed: no answer came" for step in unheard)


def test_a_crash_ends_a_life_at_its_point(run: Run) -> None:
    world = traced(run, "kept", "crash")
    crashes = [step for step in world.steps if step.kind == "crash"]
    assert {crash.how for crash in crashes} == {"unacknowledged"} and world.lives == len(crashes) + 1
    assert [crash.life for crash in crashes] == list(range(1, world.lives))
    assert [step.life for step in world.steps] == sorted(step.life for step in world.steps)
    assert "replayed" in [step.how for step in world.steps if step.life > 1]


def test_damage_adds_up_from_the_entries_that_it_names(run: Run) -> None:
    world = traced(run, "state_machine", "lost")
    assert world.damage["doubled"]
    for kind, count in world.damage.items():
        assert sum(int(str(harm["times"])) for harm in world.harms if harm["kind"] == kind) == count
    marked = {step.entry for step in world.steps if "doubled" in step.harms}
    named = {entry for harm in world.harms if harm["kind"] == "doubled" for entry in harm["entries"]}  # type: ignore[attr-defined]
    assert marked == named


def test_a_question_to_a_person_says_what_the_person_was_shown(run: Run) -> None:
    world = traced(run, "kept", "none")
    asked = [step for step in world.steps if step.kind == "asked"]
    assert asked and all(("Shown", "risk: it cannot be taken back") in step.details for step in asked)
    assert any(line.strip().startswith("shown: + payments: trip") for line in world.lines())


def test_without_its_pack_a_trial_is_shown_without_rows_and_says_so(run: Run, tmp_path: Path) -> None:
    world = traced(run, "state_machine", "lost", [tmp_path])
    assert world.lacking.startswith("its pack is not here") and world.damage["doubled"]
    assert not any(step.changes for step in world.steps) and any(step.entry for step in world.steps)


def test_a_world_that_is_kept_as_other_sql_is_not_run_and_the_trial_says_so(run: Run, tmp_path: Path) -> None:
    assert run.folder
    record = record_of(run, "kept", "none")
    kept = next(event.kept for event in record.events if isinstance(event, WorldEnded))
    around = WorldViews([ROOT])
    texts = around.texts_of(run, [run.folder])
    evil = f"{texts[kept]}\nATTACH '{tmp_path / 'made'}' AS x; CREATE TABLE x.t (a);"
    result = around.views(run, {**texts, kept: evil}).of(record)["world"]
    assert result.lacking == "what is kept of the world cannot be read: not authorized"
    assert list(tmp_path.iterdir()) == [] and not any(step.changes for step in result.steps)


def test_a_pack_that_makes_another_world_is_noticed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "digest", lambda _: "another")
    assert "its pack makes another world" in traced(run, "kept", "none").lacking


def test_a_row_that_came_went_or_changed_is_one_line() -> None:
    contents = []
    with closing(connect()) as connection:
        connection.execute("CREATE TABLE offer (product TEXT, discount INTEGER)")
        for sql in (*("INSERT INTO offer VALUES ('A', 5)", "UPDATE offer SET discount = 9", "DELETE FROM offer"),):
            contents.append(connection.serialize())
            connection.execute(sql)
        contents.append(connection.serialize())
    texts = [[change.text for change in changes(rows_in(a), rows_in(b))] for a, b in pairwise(contents)]
    assert texts == [
        ["+ offer: product A, discount 5"],
        ["~ offer: discount 5 → 9 (product A)"],
        ["- offer: product A, discount 9"],
    ]


def test_a_table_without_numbers_of_rows_is_told_apart_by_its_rows() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE seat (name TEXT PRIMARY KEY) WITHOUT ROWID")
        before = connection.serialize()
        connection.execute("INSERT INTO seat VALUES ('1A')")
        connection.commit()
        assert [change.text for change in changes(rows_in(before), rows_in(connection.serialize()))] == ["+ seat: name 1A"]


def test_a_terminal_shows_a_trial_by_the_names_it_goes_by(run: Run) -> None:
    text = text_of_trial(run, "state_machine/lost", WorldViews([ROOT]))
    assert "unheard" in text and "!! doubled" in text and "\n── life 1 of 1" in text
    with pytest.raises(ConfigError, match="2 trials go by 'lost'"):
        text_of_trial(run, "lost", WorldViews([ROOT]))
    with pytest.raises(ConfigError, match="no trial goes by"):
        text_of_trial(run, "nobody", WorldViews([ROOT]))


def test_a_trial_that_did_nothing_says_so_before_its_damage(run: Run) -> None:
    acted = traced(run, "state_machine", "none")
    reads = [step for step in acted.steps if step.kind == "call" and step.title.endswith("(read)")]
    idle = replace(acted, steps=reads, damage={"lost": 2}, harms=())
    assert list(idle.lines())[:2] == [IDLE_LINE, "damage: lost 2"] and idle.json["is_idle"]
    assert IDLE_LINE not in list(acted.lines()) and not acted.json["is_idle"]


def test_the_page_carries_steps_and_no_dumps(run: Run) -> None:
    around = WorldViews()
    trace = trace_of(run, around)
    assert trace and run.folder
    dumps = [text for text in around.texts_of(run, [run.folder]).values() if text.startswith(SQL_BEGINNING)]
    assert len(dumps) == len(run.trials)
    assert trace.characters < 40_000 and json.dumps(SQL_BEGINNING) not in trace.index
