"""The calls of tools as a frame, and what a report says of worlds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from records import run_of, trial
from world_runs import world_run

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.record.damage import DAMAGES
from bench.worlds.read.tables import refusals, world_tables


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return world_run(tmp_path_factory.mktemp("worlds"))


def rows(run: Run, name: str) -> list[dict[str, Any]]:
    [table] = [each for each in (*world_tables(run, arms_of(run)), *refusals(run, arms_of(run))) if each.name == name]
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_frame_has_a_row_for_each_call_of_a_tool(run: Run) -> None:
    calls = run.tool_calls
    by_trial = calls.groupby("trial").size()
    assert run.trials.set_index("trial")["tool_calls"].to_dict() == by_trial.to_dict()
    assert list(calls.columns[:7]) == list(run.calls.columns[:7])
    assert set(calls["kind"]) <= {"read", "compensable", "final"}
    assert set(calls.loc[calls["kind"] == "read", "changed"]) == {False}


def test_a_lost_answer_and_a_crash_are_calls_without_an_answer_that_changed_the_world(run: Run) -> None:
    unanswered = run.tool_calls[run.tool_calls["code"] == "unanswered"]
    assert set(unanswered["plan"]) == {"crash", "lost"}
    assert (set(unanswered["outcome"]), set(unanswered["entry"])) == ({"failed"}, {0})
    assert unanswered["changed"].all()


def test_an_agent_that_gives_keys_has_its_call_replayed(run: Run) -> None:
    replayed = run.tool_calls[run.tool_calls["outcome"] == "replayed"]
    assert set(replayed["architecture"]) == {"kept"}
    assert (replayed["key"] != "").all() and (replayed["try"] > 1).all() and not replayed["changed"].any()


def test_the_tables_add_up_to_the_frames(run: Run) -> None:
    damage, calls = rows(run, "world_damage"), rows(run, "world_calls")
    for kind in DAMAGES:
        assert sum(row[kind.capitalize()] for row in damage) == run.trials[f"damage_{kind}"].sum()
    assert sum(row["Doubled"] for row in damage) > 0
    assert sum(row["Recounts that differ"] for row in damage) == 0
    assert sum(row["Crashes"] for row in calls) == (run.trials["lives"] - 1).sum() > 0
    total = sum(row[each] for row in calls for each in ("Done", "Replayed", "Refused", "Failed"))
    assert total == len(run.tool_calls)
    turned = run.tool_calls["outcome"].isin(("refused", "failed")).sum()
    assert sum(row["Calls"] for row in rows(run, "world_refusals")) == turned


def test_a_run_without_worlds_has_none_of_these_tables(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial("static")])
    assert world_tables(run, arms_of(run)) == []
    assert run.tool_calls.empty
