"""What a run came to is kept for the index: the same bytes give the same row, any other byte another one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from records import edit_manifest, experiment, write_run

from bench.cli.commands.runs import tracked_runs
from bench.common.errors import ResultsError
from bench.common.paths import RESULTS
from bench.read.analysis import kept
from bench.read.overview.kept import COMMITTED_ROWS, KeptRows, RunRow, committed_rows
from bench.read.overview.runs import index_of, index_page, row_of
from bench.record.archive import archive_path


class Reader:
    """Reads a run, and counts how often."""

    def __init__(self, folder: Path):
        self.folder, self.times = folder, 0

    def __call__(self) -> RunRow:
        self.times += 1
        return row_of(self.folder).model_copy(update={"verdicts": f"verdict {self.times}"})


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(write_run(tmp_path / "results" / "run", experiment()))


def test_a_run_that_is_kept_has_the_row_that_was_read(tmp_path: Path, reader: Reader) -> None:
    first, again = (KeptRows(tmp_path / "cache").of(reader.folder, reader) for _ in range(2))
    assert reader.times == 1 and first == again and first.verdicts == "verdict 1"


def test_without_a_folder_each_run_is_read(reader: Reader) -> None:
    assert [KeptRows().of(reader.folder, reader).verdicts for _ in range(2)] == ["verdict 1", "verdict 2"]


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


def a_row_without_a_field(_: Path, cache: Path) -> None:
    for path in cache.iterdir():
        with kept.open_cache(path) as file:
            content = json.load(file)
        del content["row"]["models"]
        with kept.create_cache(path) as file:
            file.write(json.dumps(content).encode())


@pytest.mark.parametrize(
    "change", [another_manifest, one_trial_less, a_damaged_file, a_flipped_bit, a_pipe, a_row_without_a_field]
)
def test_after_any_change_the_run_is_read_anew(tmp_path: Path, reader: Reader, change: Callable[[Path, Path], None]) -> None:
    KeptRows(tmp_path / "cache").of(reader.folder, reader)
    change(reader.folder, tmp_path / "cache")
    row = KeptRows(tmp_path / "cache").of(reader.folder, reader)
    assert reader.times == 2 and row == row_of(reader.folder).model_copy(update={"verdicts": "verdict 2"})


def test_after_an_edit_of_the_code_the_run_is_read_anew(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("a = 1", "a = 1", "a = 2"):
        (tmp_path / text).mkdir(exist_ok=True)
        (tmp_path / text / "code.py").write_text(text)
        monkeypatch.setattr(kept, "PACKAGE", tmp_path / text)
        KeptRows(tmp_path / "cache").of(reader.folder, reader)
    assert reader.times == 2


def test_a_folder_that_cannot_be_written_keeps_nothing_and_is_no_error(tmp_path: Path, reader: Reader) -> None:
    (tmp_path / "file").touch()
    assert KeptRows(tmp_path / "file").of(reader.folder, reader).verdicts == "verdict 1"


def test_the_page_of_kept_runs_is_that_of_runs_that_were_read(tmp_path: Path, reader: Reader) -> None:
    results, reports, cache = reader.folder.parent, tmp_path / "reports", tmp_path / "cache"
    pages = [index_page(index_of(results, reports, folder)) for folder in (None, cache, cache)]
    assert pages[0] == pages[1] == pages[2]


def test_a_run_that_is_refused_is_not_kept(tmp_path: Path) -> None:
    def refused() -> RunRow:
        raise ResultsError("no run")

    with pytest.raises(ResultsError, match="no run"):
        KeptRows(tmp_path / "cache").of(tmp_path / "none", refused)
    assert not (tmp_path / "cache").exists()


# Rows that stand beside archives


@pytest.fixture
def archived(tmp_path: Path) -> Reader:
    """A committed run, archived, whose row stands in the file beside it."""
    copy = tmp_path / "papers_event-simulated"
    archive_path(copy).write_bytes(archive_path(RESULTS / copy.name).read_bytes())
    (tmp_path / COMMITTED_ROWS).write_bytes(committed_rows([(copy, row_of(copy))]))
    return Reader(copy)


def test_an_archive_whose_row_stands_beside_it_is_not_read(tmp_path: Path, archived: Reader) -> None:
    assert KeptRows(tmp_path / "cache").of(archived.folder, archived) == row_of(archived.folder)
    assert archived.times == 0


def test_an_archive_of_other_bytes_is_read(tmp_path: Path, archived: Reader) -> None:
    with archive_path(archived.folder).open("ab") as file:
        file.write(b"\0")
    with pytest.raises(ResultsError):
        KeptRows(tmp_path / "cache").of(archived.folder, archived)
    assert archived.times == 1


@pytest.mark.parametrize("content", [b"", b"[]", b'{"rows": {"papers_event-simulated": {}}}', b"\xff"])
def test_rows_that_cannot_be_read_are_made_from_the_run(tmp_path: Path, archived: Reader, content: bytes) -> None:
    (tmp_path / COMMITTED_ROWS).write_bytes(content)
    assert KeptRows(tmp_path / "cache").of(archived.folder, archived).verdicts == "verdict 1"


def committed(names: list[str]) -> bytes:
    return committed_rows((RESULTS / name, row_of(RESULTS / name)) for name in names)


def test_each_committed_run_has_its_row() -> None:
    kept_rows = json.loads((RESULTS / COMMITTED_ROWS).read_bytes())["rows"]
    name = "papers_event-simulated"
    assert tracked_runs(RESULTS) == set(kept_rows)
    assert kept_rows[name] == json.loads(committed([name]))["rows"][name], "nox -s reports"


@pytest.mark.endurance
def test_the_rows_of_the_committed_runs_are_the_ones_that_reading_gives() -> None:
    names = [*json.loads((RESULTS / COMMITTED_ROWS).read_bytes())["rows"]]
    assert (RESULTS / COMMITTED_ROWS).read_bytes() == committed(names), "nox -s reports"
