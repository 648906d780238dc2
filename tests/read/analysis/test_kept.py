"""A large run's frames are kept: the same bytes give the same frames, and after a change of any byte they are made anew."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import edit_manifest, experiment, trial, write_run

import bench
from bench.common.errors import ResultsError
from bench.common.paths import cache_folder
from bench.read.analysis import kept
from bench.read.analysis.blocks import dtype_of
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import OURS
from bench.read.analysis.trial import TrialReading
from bench.record.reading import read_records
from bench.record.record import SessionRecord, TrialRecord

RESULTS = Path(__file__).parents[3] / "results"
FAILED = trial(repetition=4, outcome="error", events=[], reason="no connection")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(),
    "bool": st.booleans(),
    "boolean": st.none() | st.booleans(),
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200),
    "Int64": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200),
    "float64": st.none() | st.floats(),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that is worth keeping, with a trial that was run again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "MIN_CACHED_BYTES", 0)
    return write_run(tmp_path / "run", [FAILED, *experiment(), trial(repetition=4)])


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all trials that were parsed."""
    ids = list[str]()

    def reading(record: TrialRecord, *rest: Any) -> TrialReading:
        ids.append(record.id)
        return TrialReading(record, *rest)

    monkeypatch.setattr("bench.read.analysis.frames.TrialReading", reading)
    return ids


def files() -> list[Path]:
    return sorted(cache_folder("frames").iterdir())


def assert_equal(run: Run, other: Run) -> None:
    assert run.frames.keys() == other.frames.keys()
    for name, frame in run.frames.items():
        pd.testing.assert_frame_equal(frame, other.frames[name], check_exact=True, obj=name)
        assert type(frame) is type(other.frames[name])
    for name in ("manifest", "sessions", "errors_rerun", "rerun", "regrades", "folder", "sources", "notes"):
        assert getattr(run, name) == getattr(other, name)


def test_a_run_read_again_has_the_same_frames_and_no_record_is_parsed(folder: Path, parsed: list[str]) -> None:
    first = bench.load_run(folder)
    count = len(parsed)
    assert_equal(first, bench.load_run(folder))
    assert len(parsed) == count > 0
    assert first.errors_rerun == 1 and first.rerun == {FAILED.id} and len(first.sessions) == 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["scorecard_live", "chaos"])
def test_a_recording_of_a_world_or_of_a_task_is_kept_as_it_is_read(name: str) -> None:
    recorded = RESULTS / f"{name}-qwen2.5-coder-1.5b-instruct"
    assert_equal(bench.load_run(recorded), bench.load_run(recorded))


def another_manifest(folder: Path) -> None:
    edit_manifest(folder, started="2026-02-01T10:00:00+00:00")


def one_trial_less(folder: Path) -> None:
    path = folder / "trials.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))


def another_file(folder: Path) -> None:
    (folder / "texts.jsonl").write_bytes(b"{}\n")


def a_kept_file_without_its_end(_: Path) -> None:
    for path in files():
        path.write_bytes(path.read_bytes()[:-1])


def a_kept_file_without_columns(_: Path) -> None:
    for path in files():
        path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\n")


def a_kept_file_of_other_bytes(_: Path) -> None:
    for path in files():
        path.write_bytes(b"[]\n\x93NUMPY")


CHANGES = (
    another_manifest,
    one_trial_less,
    another_file,
    a_kept_file_without_its_end,
    a_kept_file_without_columns,
    a_kept_file_of_other_bytes,
)


@pytest.mark.parametrize("change", CHANGES)
def test_after_any_change_the_records_are_parsed_anew(folder: Path, parsed: list[str], change: Callable[[Path], None]) -> None:
    bench.load_run(folder)
    parsed.clear()
    change(folder)
    anew = bench.load_run(folder)
    assert parsed
    for path in files():
        path.unlink()
    assert_equal(anew, bench.load_run(folder))


def test_after_a_flip_of_any_bit_of_the_kept_file_the_records_are_parsed_anew(folder: Path, parsed: list[str]) -> None:
    first = bench.load_run(folder)
    [path] = files()
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 8 * len(whole) // 6):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        parsed.clear()
        assert_equal(first, bench.load_run(folder))
        assert parsed and path.read_bytes() == whole


def test_the_kept_file_is_its_owners_alone_and_stands_alone(folder: Path) -> None:
    bench.load_run(folder)
    assert [path.stat().st_mode & 0o777 for path in (cache_folder("frames"), *files())] == [0o700, 0o600]


@pytest.mark.parametrize("error", [RecursionError, MemoryError, IndexError])
def test_a_kept_file_that_cannot_be_read_is_made_anew_whatever_it_raises(
    folder: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    first = bench.load_run(folder)
    parsed.clear()
    monkeypatch.setattr(kept, "_read_frames", lambda _: (_ for _ in ()).throw(error()))
    assert_equal(first, bench.load_run(folder))
    assert parsed


def test_after_an_edit_of_the_code_the_records_are_parsed_anew(
    tmp_path: Path, folder: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("a = 1", "a = 2"):
        (tmp_path / text).mkdir()
        (tmp_path / text / "code.py").write_text(text)
        monkeypatch.setattr(kept, "PACKAGE", tmp_path / text)
        parsed.clear()
        bench.load_run(folder)
        assert parsed


def test_frames_kept_without_a_check_of_all_files_do_not_pass_for_checked(folder: Path, parsed: list[str]) -> None:
    lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "responses.jsonl").write_bytes(lines[0])
    bench.load_run(folder)
    with pytest.raises(ResultsError, match="bench verify"):
        bench.load_run(folder, check=True)
    parsed.clear()
    bench.load_run(folder)
    assert not parsed


@pytest.mark.usefixtures("folder")
def test_a_run_that_was_checked_is_not_checked_again_while_it_is_the_same(parsed: list[str]) -> None:
    recorded = RESULTS / "paper-qwen2.5-coder-1.5b-instruct"
    first = bench.load_run(recorded, check=True)
    parsed.clear()
    assert_equal(first, bench.load_run(recorded, check=True))
    assert_equal(first, bench.load_run(recorded))
    assert not parsed


def test_a_small_run_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MIN_CACHED_BYTES", 2**22)
    bench.load_run(folder)
    assert not cache_folder("frames").exists()


def test_nothing_is_kept_if_a_metric_of_another_package_computes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = OURS[0].__class__("foreign", "int64", lambda _: 1, package="others 1.0")
    monkeypatch.setattr(kept, "METRICS", (*OURS, foreign))
    bench.load_run(folder)
    assert not cache_folder("frames").exists()


def test_a_run_that_grows_while_it_is_read_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def growing(path: Path) -> Iterator[TrialRecord | SessionRecord]:
        yield from read_records(path)
        another_manifest(path)

    monkeypatch.setattr("bench.read.analysis.frames.read_records", growing)
    bench.load_run(folder)
    assert not cache_folder("frames").exists()


def test_a_folder_that_cannot_be_written_keeps_nothing_and_is_no_error(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert_equal(bench.load_run(folder), bench.load_run(folder))


def test_the_runs_kept_first_are_removed_first(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [folder, *(write_run(tmp_path / name, experiment()) for name in ("second", "third"))]
    for number, run in enumerate(folders[:2]):
        bench.load_run(run)
        path = cache_folder("frames") / kept.cache_name(run)
        os.utime(path, (number, number))
    size = sum(path.stat().st_size for path in files())
    monkeypatch.setattr(kept, "MAX_CACHE_BYTES", size)
    bench.load_run(folders[2])
    assert [path.name for path in files()] == sorted(map(kept.cache_name, folders[1:]))


def test_the_docs_say_from_what_size_on_runs_are_kept_and_how_much() -> None:
    text = " ".join((RESULTS.parent / "docs" / "running.md").read_text(encoding="utf-8").split())
    assert (
        f"For a run of {kept.MIN_CACHED_BYTES >> 20} MiB or more the frames are cached" in text
        and f"in at most {kept.MAX_CACHE_BYTES >> 30} GiB" in text
    )


@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_any_column_is_read_as_it_was_written(data: st.DataObject, dtype: str) -> None:
    values = data.draw(st.lists(VALUES[dtype], max_size=20))
    column = pd.Series(pd.array(values, dtype=dtype_of(dtype)))
    file = io.BytesIO()
    for array in kept._arrays_of(column, dtype):
        np.save(file, array, allow_pickle=False)
    file.seek(0)
    again = pd.Series(kept._read_column(file, dtype))
    pd.testing.assert_series_equal(column, again, check_exact=True)
    assert file.read() == b""
