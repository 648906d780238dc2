"""What a run came to is kept for the index: the same bytes give the same row, any other byte another one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal
from records import edit_manifest, experiment, write_run

from bench.common.errors import ResultsError
from bench.read.analysis import kept
from bench.read.analysis.frames import Run, load_run
from bench.read.overview.kept import KeptRuns
from bench.read.overview.runs import index_of, index_page


class Reader:
    """Reads a run, and counts how often."""

    def __init__(self, folder: Path):
        self.folder, self.times = folder, 0

    def __call__(self) -> tuple[Run, str]:
        self.times += 1
        return load_run(self.folder), f"verdict {self.times}"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(write_run(tmp_path / "results" / "run", experiment()))


def test_a_run_that_is_kept_has_the_trials_and_verdicts_that_were_read(tmp_path: Path, reader: Reader) -> None:
    first, again = (KeptRuns(tmp_path / "cache").of(reader.folder, reader) for _ in range(2))
    assert reader.times == 1 and first[1] == again[1] == "verdict 1"
    assert_frame_equal(first[0].trials, again[0].trials)
    assert again[0].manifest == first[0].manifest and again[0].folder == reader.folder


def test_without_a_folder_each_run_is_read(reader: Reader) -> None:
    assert [KeptRuns().of(reader.folder, reader)[1] for _ in range(2)] == ["verdict 1", "verdict 2"]


def another_manifest(folder: Path, _: Path) -> None:
    edit_manifest(folder, started="2026-02-01T10:00:00+00:00")


def one_trial_less(folder: Path, _: Path) -> None:
    path = folder / "trials.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def a_damaged_file(_: Path, cache: Path) -> None:
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:-2])


def a_flipped_bit(_: Path, cache: Path) -> None:
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes().replace(b"verdict 1", b"verdict 9"))


def a_pipe(_: Path, cache: Path) -> None:
    for path in cache.iterdir():
        path.unlink()
        os.mkfifo(path)


def a_file_that_lacks_a_column(_: Path, cache: Path) -> None:
    for path in cache.iterdir():
        with kept.kept_file(path) as file:
            content = json.load(file)
        with kept.new_kept_file(path) as file:
            file.write(json.dumps({**content, "trials": {}}).encode())


@pytest.mark.parametrize(
    "change", [another_manifest, one_trial_less, a_damaged_file, a_flipped_bit, a_pipe, a_file_that_lacks_a_column]
)
def test_after_any_change_the_run_is_read_anew(tmp_path: Path, reader: Reader, change: Callable[[Path, Path], None]) -> None:
    KeptRuns(tmp_path / "cache").of(reader.folder, reader)
    change(reader.folder, tmp_path / "cache")
    run, verdict = KeptRuns(tmp_path / "cache").of(reader.folder, reader)
    assert reader.times == 2 and verdict == "verdict 2"
    assert_frame_equal(run.trials, load_run(reader.folder).trials)


def test_after_an_edit_of_the_code_the_run_is_read_anew(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("a = 1", "a = 1", "a = 2"):
        (tmp_path / text).mkdir(exist_ok=True)
        (tmp_path / text / "code.py").write_text(text)
        monkeypatch.setattr(kept, "PACKAGE", tmp_path / text)
        KeptRuns(tmp_path / "cache").of(reader.folder, reader)
    assert reader.times == 2


def test_a_folder_that_cannot_be_written_keeps_nothing_and_is_no_error(tmp_path: Path, reader: Reader) -> None:
    (tmp_path / "file").touch()
    assert KeptRuns(tmp_path / "file").of(reader.folder, reader)[1] == "verdict 1"


def test_the_page_of_kept_runs_is_that_of_runs_that_were_read(tmp_path: Path, reader: Reader) -> None:
    results, reports, cache = reader.folder.parent, tmp_path / "reports", tmp_path / "cache"
    pages = [index_page(index_of(results, reports, folder)) for folder in (None, cache, cache)]
    assert pages[0] == pages[1] == pages[2]


def test_a_run_that_is_refused_is_not_kept(tmp_path: Path) -> None:
    def refused() -> tuple[Run, str]:
        raise ResultsError("no run")

    with pytest.raises(ResultsError, match="no run"):
        KeptRuns(tmp_path / "cache").of(tmp_path / "none", refused)
    assert not (tmp_path / "cache").exists()
