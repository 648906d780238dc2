"""A folder's runs in one page: all that can be read is listed, and what cannot be compared is not ranked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from records import edit_manifest, trial, write_run

from bench.read.overview.leaderboard import Board, boards_of
from bench.read.overview.runs import Index, index_of, index_page
from bench.record.record import Outcome, TrialRecord

PACK = {"asked": "5cede5cede5c", "variant": "small", "subtasks": ["a", "b"]}


def trials_of(solved: int, of: int = 20, architecture: str = "static", model: str = "m", **values: Any) -> list[TrialRecord]:
    """Trials of so many instances, of which so many are solved."""
    return [
        trial(architecture, "none", 1, outcome, id=f"{architecture}-{model}-{n}", model=model, instance=f"i{n}", **values)
        for n in range(of)
        for outcome in [_outcome(n < solved)]
    ]


def _outcome(solved: bool) -> Outcome:
    return "solved" if solved else "wrong"


def written(
    results: Path, name: str, records: Sequence[TrialRecord], started: str = "2026-01-01T10:00:00+00:00", **pack: Any
) -> None:
    """A run of one pack, with this in the pack's entry of its manifest."""
    instances = sorted({each.instance for each in records})
    asked = dict.fromkeys(instances, "same")
    model = {"kind": "openai"}
    edit_manifest(
        write_run(results / name, records),
        started=started,
        models={each.model: model for each in records},
        scenarios={"demo": {**PACK, "instances": instances, "asked_by_instance": asked, **pack}},
    )


def index(results: Path) -> Index:
    return index_of(results, results.parent / "reports")


def board(results: Path) -> Board:
    [result] = boards_of([each.arms for each in reversed(index(results).runs)])
    return result


def live(*args: Any, **values: Any) -> list[TrialRecord]:
    return trials_of(*args, timing="live", **values)


def test_runs_stand_newest_first_with_links_to_their_reports(tmp_path: Path) -> None:
    written(tmp_path / "results", "old", live(3))
    written(tmp_path / "results", "new", live(4), "2026-02-01T10:00:00+00:00")
    for page in ("old/report.md", "old/report.html", "merged/report.html"):
        (tmp_path / "reports" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "reports" / page).touch()
    result = index(tmp_path / "results")
    assert [(each.arms[0].name, each.report) for each in result.runs] == [("new", ""), ("old", "old/report.html")]
    assert result.others == ("merged/report.html",)
    page = index_page(result)
    assert '<a href="old/report.html">old</a>' in page and '<a href="merged/report.html">' in page


def test_what_cannot_be_read_is_one_line_each_and_the_rest_is_shown(tmp_path: Path) -> None:
    results = tmp_path / "results"
    written(results, "good", live(3))
    written(results, "cut", live(3))
    lines = (results / "cut" / "trials.jsonl").read_text().splitlines(keepends=True)
    (results / "cut" / "trials.jsonl").write_text("".join(lines[1:]))
    (results / "foreign").mkdir()
    (results / "foreign" / "photo.jpg").touch()
    (results / "junk.zip").write_bytes(b"no archive")
    (results / "notes.txt").touch()
    result = index(results)
    assert [each.arms[0].name for each in result.runs] == ["good"]
    cut, foreign, junk = result.unread
    assert "cut/trials.jsonl: line 1 is damaged" in cut
    assert "foreign: holds no run" in foreign
    assert "junk.zip: is not a whole archive" in junk
    assert index_page(result).count("Not read: ") == 3


def test_arms_of_two_runs_on_the_same_instances_are_ranked_and_close_ones_share_a_place(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    written(tmp_path, "b", [*live(17, architecture="monolithic"), *live(2, architecture="other")], "2026-01-02T10:00:00+00:00")
    [table] = board(tmp_path).tables
    assert [(row[0], row[1], row[3]) for row in table.rows] == [(1, "static", "a"), (1, "monolithic", "b"), (3, "other", "b")]
    assert board(tmp_path).refusals == ()


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"asked_by_instance": {f"i{n}": "changed" for n in range(20)}}, "They ask something else"),
        ({"graded_by": "another"}, "Other graders graded them"),
    ],
)
def test_what_cannot_be_compared_is_not_ranked_and_a_sentence_says_why(tmp_path: Path, other: dict[str, Any], why: str) -> None:
    written(tmp_path, "a", live(18))
    written(tmp_path, "b", live(17, model="n"), "2026-01-02T10:00:00+00:00", **other)
    result = board(tmp_path)
    assert [len(table.rows) for table in result.tables] == [1, 1]
    [refusal] = result.refusals
    assert refusal.startswith(f"Not ranked together: b, and a. {why}")


def test_other_instances_are_not_ranked(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    written(tmp_path, "b", live(8, of=10, model="n"), "2026-01-02T10:00:00+00:00")
    assert "They have 10 and 20 instances and share 10" in board(tmp_path).refusals[0]


def test_a_simulated_model_is_marked_and_not_ranked_with_a_real_one(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    written(tmp_path, "b", trials_of(20, model="made_up"), "2026-01-02T10:00:00+00:00")
    result = board(tmp_path)
    assert "A simulated model is not compared with a real one" in result.refusals[0]
    assert result.tables[1].title.endswith("SIMULATED") and result.tables[1].rows[0][2] == "made_up (SIMULATED)"
    assert "A model marked SIMULATED is no model" in index_page(index(tmp_path))


def test_faults_of_another_seed_are_other_faults(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        records = [trial("static", "paper", n, _outcome(n > seed), id=f"{name}{n}", timing="live") for n in (1, 2, 3)]
        folder = write_run(tmp_path / name, records)
        manifest = index(tmp_path).runs[0].run.config.model_dump(mode="json")
        edit_manifest(folder, models={"m": {"kind": "openai"}}, config={**manifest, "seed": seed})
    assert "draw them by another seed" in board(tmp_path).refusals[0]


def test_the_same_trials_and_replays_of_a_listed_run_are_ranked_once(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    written(tmp_path, "again", live(18), "2026-01-02T10:00:00+00:00")
    written(tmp_path, "b", live(17, model="n"), "2026-01-03T10:00:00+00:00")
    replayed = {"kind": "openai", "recording": {"name": "b", "digest": "d"}}
    written(tmp_path, "b-replay", trials_of(17, model="r", timing="recorded"), "2026-01-04T10:00:00+00:00")
    edit_manifest(tmp_path / "b-replay", models={"r": replayed})
    written(tmp_path, "taken_over", live(17, model="renamed"), "2026-01-05T10:00:00+00:00")
    [table] = board(tmp_path).tables
    assert [row[3] for row in table.rows] == ["a", "b"], "what went the same way in every trial is no further evidence"


def test_the_history_of_a_config_names_what_was_changed(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    written(tmp_path, "b", live(17, model="n"), "2026-01-02T10:00:00+00:00")
    page = index_page(index(tmp_path))
    assert "The config by-hand, run 2 times, without faults" in page
    assert 'data-value="">the model</td>' in page


def test_no_price_is_told_of_few_trials(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    assert "not measured" in index_page(index(tmp_path))


def test_a_name_from_outside_is_shown_and_not_run(tmp_path: Path) -> None:
    written(tmp_path, "a", live(2, of=3, model="<script>alert(1)</script>"))
    page = index_page(index(tmp_path))
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
