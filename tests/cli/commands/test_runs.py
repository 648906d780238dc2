"""`bench runs`, as a user types it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from commands import bench
from records import edit_manifest, experiment, trial, write_run


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_all_runs_are_listed_and_a_page_is_written(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "mine", experiment())
    (tmp_path / "results" / "photos").mkdir()
    code, out, err = bench(tmp_path, "runs")
    assert code == 0
    header, row, total, line, _, last = out.splitlines()
    assert header.split() == ["started", "run", "trials", "solved", "by", "an", "arm", "tokens", "dollars"]
    assert row.split()[:3] == ["mine", "12", "3/3"]
    assert total.split()[:2] == ["all", "12"] and line.startswith("yours: 1 run, 12 trials, ")
    assert last == "1 run; for prices and verdicts open reports/index.html"
    assert err == "not read: results/photos: holds no run (no manifest.json); name a folder that `bench run` wrote\n"
    page = (tmp_path / "reports" / "index.html").read_bytes()
    assert page.startswith(b"<!doctype html>")
    assert len(list((tmp_path / "cache" / "recovery-bench" / "runs").iterdir())) == 1
    assert bench(tmp_path, "runs") == (code, out, err)
    assert (tmp_path / "reports" / "index.html").read_bytes() == page


def test_runs_that_git_tracks_came_along_and_are_added_up_apart(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        write_run(tmp_path / "results" / name, experiment())
    for words in (["init", "--quiet"], ["add", "results/theirs"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    out = bench(tmp_path, "runs")[1]
    assert [line.split(",")[0] for line in out.splitlines() if " run, " in line] == ["yours: 1 run", "came along: 1 run"]
    assert out.index("mine") < out.index("theirs")
    page = (tmp_path / "reports" / "index.html").read_text()
    assert "yours: 1 run, 12 trials" in page and "came along: 1 run, 12 trials" in page


def test_runs_are_found_by_their_tags(tmp_path: Path) -> None:
    for name, tags in (("a", ["kept", "new"]), ("b", ["kept"]), ("c", [])):
        edit_manifest(write_run(tmp_path / "results" / name, experiment()), tags=tags, note=f"note {name}")
    assert [bench(tmp_path, "runs", *words)[1].count("note") for words in ((), ("--tag", "kept"))] == [4, 3]
    out = bench(tmp_path, "runs", "--tag", "kept", "--tag", "new")[1]
    assert "kept, new; note a" in out and "note b" not in out
    assert "note b" not in (tmp_path / "reports" / "index.html").read_text()


def test_of_an_instrument_it_is_said_that_it_only_asked(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "bank", [trial("every_judgment", "none", 1, "wrong")])
    code, out, _ = bench(tmp_path, "runs")
    assert code == 0 and "only asked" in out and "0/1" not in out
    page = (tmp_path / "reports" / "index.html").read_text()
    assert 'data-value="">only asked</td>' in page and "0/1" not in page


def test_a_folder_that_is_not_there_and_one_without_runs_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = bench(tmp_path, "runs")
    assert (code, out) == (2, "") and err.startswith(
        "bench: results: is not a folder of runs; name another, or run: bench run "
    )
    assert bench(tmp_path, "runs", "empty")[:2] == (
        0,
        "0 runs; for prices and verdicts open reports/index.html\n",
    )
    assert "There are 0 runs" in (tmp_path / "reports" / "index.html").read_text()


def test_as_long_as_nothing_has_changed_no_run_is_read_and_no_page_written(tmp_path: Path) -> None:
    mine, page = write_run(tmp_path / "results" / "mine", experiment()), tmp_path / "reports" / "index.html"

    def printed(is_read: bool) -> str:
        before = page.stat().st_mtime_ns if page.exists() else 0
        code, out, _ = bench(tmp_path, "runs")
        assert code == 0 and (page.stat().st_mtime_ns != before) == is_read
        return out

    first = printed(is_read=True)
    assert printed(is_read=False) == first
    page.write_text("another's")
    assert printed(is_read=True) == first and "another's" not in page.read_text()
    trials, size = mine / "trials.jsonl", (mine / "trials.jsonl").stat()
    trials.write_bytes(trials.read_bytes().replace(b"solved", b"folved"))
    os.utime(trials, ns=(size.st_atime_ns, size.st_mtime_ns))
    assert printed(is_read=True) != first
    [kept] = (tmp_path / "cache" / "recovery-bench" / "shown").iterdir()
    kept.write_text("{")
    printed(is_read=True)
    printed(is_read=False)
