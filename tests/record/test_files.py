"""What is written into a folder stays in it, whole; what a stranger's file names decides no path."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import bench
from experiment_runs import chained_anew
from records import experiment, write_run

from bench.common.errors import ResultsError
from bench.common.files import write_whole
from bench.record.files import TRIALS, write_files
from bench.record.reading import read_trials
from bench.record.verify import verify

IDS = ("../../../../outside", "/tmp/outside", "", "a", "0" * 19, "0" * 21, "A" * 20, "0" * 20 + "\\n", "../" + "0" * 17)


@pytest.mark.parametrize("id_", IDS)
def test_a_trial_whose_id_is_no_digest_is_no_record(tmp_path: Path, id_: str) -> None:
    folder = write_run(tmp_path / "results" / "run", experiment(repetitions=1))
    first = next(read_trials(folder)).id
    chained_anew(folder / TRIALS, lambda lines: [line.replace(first.encode(), id_.encode()) for line in lines])
    assert "line 2 holds what no run writes: trial.id: does not fit" in verify(folder).defects[0].text
    code, _, err = bench(tmp_path, "export", "run", "--form", "csv")
    assert code == 2 and "line 2 holds what no run writes: trial.id: does not fit" in err and err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/out", "..", ".", "", "a\0b", "a/../b"])
def test_a_name_that_leads_out_of_its_folder_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ResultsError, match=r"would be written outside of it; nothing was written$"):
        write_files(tmp_path / "to", {"fine": b"", name: b"out"})
    assert list(tmp_path.iterdir()) == []


def test_no_link_on_the_way_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "link").symlink_to(tmp_path / "other")
    with pytest.raises(ResultsError, match=r"to/link: is a link"):
        write_files(tmp_path / "to", {"link/deep/file": b"out"})
    assert list((tmp_path / "other" / "deep").iterdir()) == []


def test_a_file_that_many_write_at_once_is_whole(tmp_path: Path) -> None:
    contents = [bytes([number]) * 100_000 for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write_whole(tmp_path / "file", content), contents * 5))
    assert (tmp_path / "file").read_bytes() in contents and list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_that_finds_no_room_leaves_the_earlier_one_and_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "file", b"before")
    full: Callable[..., None] = lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))  # noqa: E731
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ResultsError, match=r"file: cannot be written: No space left on device$"):
        write_files(tmp_path, {"file": b"after"})
    assert list(tmp_path.iterdir()) == [tmp_path / "file"] and (tmp_path / "file").read_bytes() == b"before"
