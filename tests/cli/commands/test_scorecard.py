"""`bench scorecard`, as a user runs it."""

from __future__ import annotations

from pathlib import Path

from commands import bench
from records import write_run
from scorecards import shop


def mistake(place: Path, *words: str) -> str:
    code, out, err = bench(place, *words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


def test_one_command_shows_two_runs_in_words_and_tables(tmp_path: Path) -> None:
    for name, records in (("bad", shop()), ("good", shop(0, "solved", system="careful"))):
        write_run(tmp_path / "results" / name, records)
    code, out, err = bench(tmp_path, "scorecard", "bad", "good")
    assert (code, err) == (0, "") and "Recovery at a glance" in out and "By what happened" in out
    words = " ".join(out.split())
    assert "agent was killed 8 times in 8 trials. None of these 8 trials finished right." in words
    assert "careful was killed 8 times in 8 trials. All of these 8 trials finished right." in words


def test_each_mistake_is_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "quiet", shop()[:8])
    assert "needs a fault plan and the plan 'none' beside it" in mistake(tmp_path, "scorecard", "quiet")
    assert "holds no run" in mistake(tmp_path, "scorecard", "nowhere")


def test_a_run_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results" / "run", shop())
    path = folder / "trials.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"outcome":"wrong"', b'"outcome":"solved"', 1))
    assert "bench verify" in mistake(tmp_path, "scorecard", "run")
