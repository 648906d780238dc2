"""Each format of trials is one entry, and another package's format needs nothing of ours but an entry point."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from plugged import install, plugged

from bench.common.errors import ResultsError
from bench.elsewhere.formats.part import FORMATS
from bench.elsewhere.reading import read_recorded

DIARY = """
from pydantic import BaseModel, TypeAdapter
from bench.common.errors import ResultsError
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import RecordedRun, RecordedTurn, trial_of

class Diary(BaseModel):
    diary: list[str]
    keeper: str

def run(where, value):
    if value.keeper == "nobody":
        raise ResultsError(f"{where}: nobody kept it")
    turns = [RecordedTurn("assistant", text) for text in value.diary]
    return RecordedRun("diary", (trial_of(where, turns, value.keeper, {"zero": 1 // len(value.diary)} and "1"),))

FORMAT = RecordedFormat("diary", frozenset({"diary", "keeper"}), TypeAdapter(Diary), run)
"""


@pytest.fixture
def diaries(tmp_path: Path) -> Iterator[None]:
    """A package that brings a format, as if it was installed."""
    install(tmp_path / "site", "diaries", {"recovery_bench.formats": {"diary": "diary:FORMAT"}}, {"diary.py": DIARY})
    with plugged(tmp_path / "site"):
        yield


def kept(folder: Path, value: object) -> Path:
    (folder / "it.json").write_text(json.dumps(value))
    return folder / "it.json"


def test_no_file_can_be_of_two_formats_of_ours() -> None:
    assert len(FORMATS.names) >= 5
    for first, second in combinations(FORMATS, 2):
        assert not (first.each == second.each and (first.members <= second.members or second.members <= first.members))


@pytest.mark.usefixtures("diaries")
def test_a_strangers_format_is_read_by_its_members(tmp_path: Path) -> None:
    run = read_recorded(kept(tmp_path, {"diary": ["I paid."], "keeper": "ada"}))
    assert run and (run.form, run.trials[0].task, len(run.sha256)) == ("diary", "ada", 64)
    assert read_recorded(kept(tmp_path, {"log": [], "keeper": "ada"})) is None


@pytest.mark.usefixtures("diaries")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"diary": [7], "keeper": "ada"}, "it.json: is not read: .*diary"),
        (
            {"diary": [], "keeper": "ada"},
            "is not read by the format 'diary' of diaries 1.0: diary.py:15: ZeroDivisionError",
        ),
        ({"diary": [], "keeper": "nobody"}, "it.json: nobody kept it"),
    ],
)
def test_what_a_strangers_format_cannot_read_is_one_line(tmp_path: Path, value: object, why: str) -> None:
    with pytest.raises(ResultsError, match=why) as refused:
        read_recorded(kept(tmp_path, value))
    assert "\n" not in str(refused.value)


def test_without_its_package_a_file_is_in_no_known_format(tmp_path: Path) -> None:
    assert read_recorded(kept(tmp_path, {"diary": ["I paid."], "keeper": "ada"})) is None
