"""A folder's runs in one page: all that can be read is listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from records import edit_manifest, trial, write_run

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


def live(*args: Any, **values: Any) -> list[TrialRecord]:
    return trials_of(*args, timing="live", **values)


def test_runs_stand_newest_first_with_links_to_their_reports(tmp_path: Path) -> None:
    written(tmp_path / "results", "old", live(3))
    written(tmp_path / "results", "new", live(4), "2026-02-01T10:00:00+00:00")
    for page in ("old/report.md", "old/report.html", "merged/report.html"):
        (tmp_path / "reports" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "reports" / page).touch()
    result = index(tmp_path / "results")
    assert [(each.row.name, each.report) for each in result.runs] == [("new", ""), ("old", "old/report.html")]
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
    assert [each.row.name for each in result.runs] == ["good"]
    cut, foreign, junk = result.unread
    assert "cut/trials.jsonl: line 1 is damaged" in cut
    assert "foreign: holds no run" in foreign
    assert "junk.zip: is not a whole archive" in junk
    assert index_page(result).count("Not read: ") == 3


def test_a_simulated_model_is_marked(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    assert "SIMULATED" not in index_page(index(tmp_path))
    written(tmp_path, "b", trials_of(20, model="made_up"), "2026-01-02T10:00:00+00:00")
    page = index_page(index(tmp_path))
    assert "A model marked SIMULATED is no model" in page and "made_up (SIMULATED)" in page


def test_no_price_is_told_of_few_trials(tmp_path: Path) -> None:
    written(tmp_path, "a", live(18))
    assert "not measured" in index_page(index(tmp_path))


def test_a_name_from_outside_is_shown_and_not_run(tmp_path: Path) -> None:
    written(tmp_path, "a", live(2, of=3, model="<script>alert(1)</script>"))
    page = index_page(index(tmp_path))
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
