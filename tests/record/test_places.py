"""An exception in somebody's code keeps its place: the reason names file, line and subtask, the traceback is kept, and the
terminal shows where to look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench, workplace

from bench.record.places import place_of
from bench.record.reading import read_texts, read_trials

OWN = """async def mine(task, workbench):
    for subtask in task.subtasks:
        workbench.commit_unverified(await workbench.propose(subtask))
        if subtask.name == "{at}":
            fail()


def fail():
    raise KeyError("boo")
"""
BOO = 'raise KeyError("boo")'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place to work in, without faults and failures of the model's own."""
    config = workplace(tmp_path, repetitions=1)
    config.write_text(config.read_text().replace(', "first_reply"]', "]").replace("failure_rate = 0.1", "failure_rate = 0"))
    return tmp_path


def only(folder: Path, architecture: str) -> None:
    config = folder / "configs" / "small.toml"
    config.write_text(config.read_text().replace('["static", "runtime_structured"]', f'["{architecture}"]'))


def insert(path: Path, before: str, line: str) -> int:
    """Put a line before the first one that begins so; its number."""
    lines = path.read_text().splitlines()
    at = next(number for number, text in enumerate(lines) if text.startswith(before))
    path.write_text("\n".join([*lines[:at], line, *lines[at:]]) + "\n")
    return at + 1


def assert_shown(folder: Path, place: str) -> None:
    """Each trial ended in an error that names this place; its traceback is kept, and the terminal shows the first."""
    code, out, err = bench(folder, "run", "configs/small.toml")
    run = folder / "results" / "small-simulated"
    trials, texts = list(read_trials(run)), read_texts(run)
    assert code == 1 and trials, out
    for trial in trials:
        assert (trial.outcome, trial.reason) == ("error", f"KeyError: 'boo' ({place})")
        assert trial.traceback
        kept = texts[trial.traceback]
        assert kept.startswith("Traceback (most recent call last)") and kept.endswith("KeyError: 'boo'\n")
        file, line = place.partition(",")[0].split("/")[1].split(":")
        assert f'{file}", line {line}, in ' in kept
    first, advice = err.splitlines()
    assert first == f"{len(trials)} trials ended in an error, the first: KeyError: 'boo' ({place})"
    assert advice == "the same command runs them again"


@pytest.mark.parametrize("at", ["measure", "decide"])
def test_an_architecture_that_raises_is_named_with_the_line_and_the_last_call(folder: Path, at: str) -> None:
    only(folder, "mine:mine")
    (folder / "mine.py").write_text(OWN.format(at=at))
    assert_shown(folder, f"{folder.name}/mine.py:9, after a call for {at}")


def test_an_architecture_that_raises_before_any_call_says_so(folder: Path) -> None:
    only(folder, "mine:mine")
    (folder / "mine.py").write_text(f"async def mine(task, workbench):\n    {BOO}\n")
    assert_shown(folder, f"{folder.name}/mine.py:2, before any call")


def test_a_grader_that_raises_is_named_with_its_line(folder: Path) -> None:
    pack = folder / "scenarios" / "demo"
    right = json.loads((pack / "reference" / "answer.json").read_text())["decide"]["days_left"]
    # The keyword rules are graded before the run, and may pass.
    line = insert(pack / "grader.py", "    parts = ", f"    if decision.days_left == {right}: {BOO}")
    assert_shown(folder, f"demo/grader.py:{line}, after a call for decide")


def test_a_check_that_raises_is_named_with_its_line(folder: Path) -> None:
    only(folder, "runtime_structured")
    line = insert(folder / "scenarios" / "demo" / "scenario.py", "    unknown = ", f"    {BOO}")
    assert_shown(folder, f"demo/scenario.py:{line}, after a call for measure")


def test_a_place_is_the_authors_and_never_a_librarys() -> None:
    with pytest.raises(ValueError) as caught:
        json.loads("{")
    assert place_of(caught.value).startswith("record/test_places.py:")
    assert place_of(ValueError("never raised")) == ""
