"""A run on disk survives kills, full disks and damage, and refuses to mix what was measured differently."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import sessions_of
from hypothesis import given
from hypothesis import strategies as st
from records import manifest_from

from bench.common.digests import digest_of
from bench.common.errors import ResultsError
from bench.record.agreement import RecordedByOtherCode
from bench.record.events import Judged
from bench.record.files import FORMAT, MANIFEST, RESPONSES, TEXTS, TRIALS
from bench.record.manifest import Manifest
from bench.record.origin import CodeVersion
from bench.record.reading import read_manifest, read_texts, read_trials
from bench.record.record import SessionRecord, TrialRecord, latest
from bench.record.store import RunWriter, set_aside
from bench.record.verify import verify

PACK = {"asked": "5ce", "graded_by": "6ade", "reference": "5ef"}
WRITTEN: dict[str, Any] = {
    "format": FORMAT,
    "name": "run",
    "config": {
        **{"name": "run", "repetitions": 3, "seed": 1},
        **{"scenarios": ["tiny"], "architectures": ["static"], "models": ["simulated"]},
    },
    "code": {"digest": "c0de"},
    "architectures": {"static": "a5c"},
    "packages": {"python": "3.11"},
    "scenarios": {"tiny": PACK},
    "models": {"simulated": {"kind": "simulated"}},
}
MANIFEST_OF_TEST = manifest_from(WRITTEN)


def record(number: int, outcome: Any = "solved") -> TrialRecord:
    events = (Judged((1,), "measure", accepted=True),)
    return TrialRecord(
        f"{number:020x}", "tiny", "static", "simulated", "none", number, outcome, "", None, 12, 1.0, 0.0, 0.001, "live", events
    )


def texts(*contents: str) -> dict[str, str]:
    return {digest_of(content): content for content in contents}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "run"
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    for number in range(3):
        writer.add(record(number), texts(f"text {number}", "once"))
    writer.close()
    yield folder


def reopened(folder: Path, manifest: Manifest = MANIFEST_OF_TEST) -> RunWriter:
    writer = RunWriter(folder, manifest)
    writer.close()
    return writer


def test_what_was_added_is_read_back_as_it_was(folder: Path) -> None:
    assert list(read_trials(folder)) == [record(0), record(1), record(2)]
    assert read_manifest(folder) == MANIFEST_OF_TEST


def test_half_a_surrogate_pair_in_any_text_costs_no_record(folder: Path) -> None:
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    broken = replace(record(3), reason="fix raised \ud800", events=(Judged((1,), "measure", False, "check", "\udfff"),))
    writer.add(broken, texts("prompt \ud800"))
    writer.close()
    stored = list(read_trials(folder))[-1]
    assert (stored.reason, stored.events[0]) == ("fix raised \ufffd", Judged((1,), "measure", False, "check", "\ufffd"))
    assert "prompt \ud800" in read_texts(folder).values() and record(3).place in reopened(folder).ended


def test_each_text_is_stored_once(folder: Path) -> None:
    assert (folder / TEXTS).read_text().count("once") == 1
    assert read_texts(folder) == texts("text 0", "text 1", "text 2", "once")


def test_a_resumed_writer_knows_which_trials_and_texts_are_there(folder: Path) -> None:
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    assert set(writer.ended) == {record(number).place for number in range(3)} and "id" not in writer.ended
    writer.add(record(3), texts("once"))
    writer.close()
    assert writer.trials == 4
    assert (folder / TEXTS).read_text().count("once") == 1


def test_a_trial_that_ended_in_an_error_counts_once_and_has_not_ended(folder: Path) -> None:
    for outcome in ("error", "error", "solved"):
        writer = RunWriter(folder, MANIFEST_OF_TEST)
        assert record(3).place not in writer.ended
        writer.add(record(3, outcome), {})
        assert writer.trials == 4
        writer.close()
    assert record(3).place in (again := reopened(folder)).ended and again.trials == 4


def test_sessions_are_kept_beside_the_trials(folder: Path) -> None:
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    writer.note(SessionRecord("2026-01-01T00:00:00+00:00", "began", "1 of 3 trials to run"))
    writer.close()
    assert [session.what for session in sessions_of(folder)] == ["began"]
    assert len(list(read_trials(folder))) == 3


@given(st.data())
def test_a_trials_file_cut_at_any_byte_loses_only_the_trial_that_was_cut(tmp_path_factory: Any, data: Any) -> None:
    folder = tmp_path_factory.mktemp("cut") / "run"
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    for number in range(3):
        writer.add(record(number), {})
    writer.close()
    content = (folder / TRIALS).read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    (folder / TRIALS).write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    assert list(read_trials(folder)) == [record(number) for number in range(whole)]
    writer = reopened(folder)
    assert writer.trials == len(writer.ended) == whole
    assert writer.repaired == ([] if content[:cut].endswith(b"\n") or not cut else [TRIALS])
    assert (folder / TRIALS).read_bytes() == b"".join(content.splitlines(keepends=True)[:whole])


@pytest.mark.parametrize("name", [TRIALS, TEXTS])
def test_a_damaged_line_in_the_middle_is_refused_by_its_number(folder: Path, name: str) -> None:
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:10] + b"\n"
    (folder / name).write_bytes(b"".join(lines))
    with pytest.raises(ResultsError, match="line 2 is damaged") as error:
        reopened(folder)
    assert "\n" not in str(error.value)


def test_a_folder_of_another_format_version_is_refused(folder: Path) -> None:
    (folder / MANIFEST).write_text(json.dumps({**WRITTEN, "format": 99}))
    with pytest.raises(ResultsError, match="is of format 99, this version reads format 4"):
        reopened(folder)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no run"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"code": {"digest": "other"}}, "version of the code of bench"),
        ({"architectures": {"static": "other"}}, "version of the architecture 'static'"),
        ({"packages": {"python": "3.12"}}, "version of the package 'python'"),
        ({"scenarios": {"tiny": {**PACK, "asked": "other"}}}, "version of what is asked by the scenario 'tiny'"),
        ({"scenarios": {"tiny": {**PACK, "reference": "other"}}}, "version of the reference of the scenario 'tiny'"),
        ({"models": {"simulated": {"failure_rate": 0.5}}}, "version of the settings of the model 'simulated'"),
        ({"config": {**WRITTEN["config"], "seed": 2}}, "config"),
    ],
)
def test_trials_of_another_experiment_are_never_mixed_in(folder: Path, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ResultsError, match=f"another {named}"):
        reopened(folder, manifest_from({**WRITTEN, **change}))


def test_a_run_of_other_code_says_under_which_version_it_began_and_what_to_do(folder: Path) -> None:
    code = CodeVersion(version="0.1.0", commit="c961b63fa4ad8d15", digest="old")
    began = folder.with_name("began")
    RunWriter(began, MANIFEST_OF_TEST.model_copy(update={"code": code})).close()
    with pytest.raises(ResultsError) as refused:
        RunWriter(began, MANIFEST_OF_TEST)
    problem = str(refused.value)
    assert "\n" not in problem
    assert (
        "it was recorded under version 0.1.0, commit c961b63fa4ad (clean), digest old of its bytes, and this is version"
        in problem
    )
    assert "go on under the version that recorded it, or give --name" in problem


def test_a_check_counts_a_trial_that_was_run_again_once_and_its_records(folder: Path) -> None:
    for outcome in ("error", "error", "solved"):
        writer = RunWriter(folder, MANIFEST_OF_TEST)
        writer.add(record(3, outcome), {})
        writer.close()
    check = verify(folder)
    assert (check.trials, check.records) == (4, 6)


def test_more_repetitions_go_on_in_the_same_folder(folder: Path) -> None:
    assert reopened(folder, manifest_from({**WRITTEN, "config": {**WRITTEN["config"], "repetitions": 10}})).trials == 3


def test_trials_without_their_manifest_are_refused(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    with pytest.raises(ResultsError, match="is missing beside recorded trials"):
        reopened(folder)


def test_two_runs_never_write_to_one_folder_at_once(folder: Path) -> None:
    first = RunWriter(folder, MANIFEST_OF_TEST)
    with pytest.raises(ResultsError, match="another bench run is writing here"):
        RunWriter(folder, MANIFEST_OF_TEST)
    first.close()


def test_a_full_disk_leaves_whole_lines_only_and_is_one_clear_line(folder: Path) -> None:
    before = (folder / TRIALS).read_bytes()
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))
    try:
        with pytest.raises(ResultsError, match="cannot be written: File too large; what was recorded before is kept"):
            writer.add(record(3), {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
        writer.close()
    assert (folder / TRIALS).read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ResultsError, match="cannot be written: Not a directory"):
        RunWriter(blocked / "run", MANIFEST_OF_TEST)


def test_a_refused_folder_is_left_closed_and_unlocked(folder: Path) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(ResultsError, match="another version of the code of bench"):
            RunWriter(folder, manifest_from({**WRITTEN, "code": {"digest": "other"}}))
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    reopened(folder)


OTHER = manifest_from({**WRITTEN, "code": {"digest": "other"}})


def test_other_code_runs_a_failed_trial_again_in_its_place_and_the_last_record_counts(folder: Path) -> None:
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    writer.add(record(3, "error"), {})
    writer.close()
    with pytest.raises(RecordedByOtherCode, match="another version of the code of bench"):
        RunWriter(folder, OTHER)
    writer = RunWriter(folder, OTHER, goes_on=True)
    again = replace(record(3), id="f" * 20)
    assert (len(writer.ended), writer.trials, again.place in writer.ended, record(2).place in writer.ended) == (
        3,
        4,
        False,
        True,
    )
    writer.add(again, {})
    writer.note(SessionRecord("now", "ended", "complete", mark=writer.mark))
    writer.close()
    assert [trial.id for trial in latest(read_trials(folder))] == [*(record(number).id for number in range(3)), again.id]
    assert [(mark.records, mark.code.digest) for mark in read_manifest(folder).other_code] == [(4, "other")]
    assert not [defect for defect in verify(folder).defects if "second trial" in defect.what or "complete" in defect.what]
    reopened(folder, OTHER)
    with pytest.raises(RecordedByOtherCode):
        RunWriter(folder, MANIFEST_OF_TEST)


def test_a_second_trial_in_one_place_is_a_defect_where_no_other_code_went_on(folder: Path) -> None:
    writer = RunWriter(folder, MANIFEST_OF_TEST)
    writer.add(replace(record(2), id="f" * 20), {})
    writer.close()
    assert [defect.line for defect in verify(folder).defects if "second trial" in defect.what] == [4]


def test_setting_aside_frees_the_name_and_loses_nothing(folder: Path) -> None:
    first = set_aside(folder)
    folder.mkdir()
    second = set_aside(folder)
    assert (first.name, second.name) == ("run.1", "run.2")
    assert len(list(read_trials(first))) == 3


def test_the_folder_of_a_run_that_is_running_is_never_set_aside(folder: Path) -> None:
    running = RunWriter(folder, MANIFEST_OF_TEST)
    with pytest.raises(ResultsError, match="another bench run is writing here; wait for it, or give --name"):
        set_aside(folder)
    running.add(record(3), {})
    running.close()
    assert len(list(read_trials(folder))) == 4 and len(list(read_trials(set_aside(folder)))) == 4


def test_who_opened_a_folder_before_it_was_set_aside_does_not_go_on_in_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renamed_meanwhile(*_: Any) -> None:
        if folder.exists():
            folder.rename(folder.with_name("run.1"))

    monkeypatch.setattr("bench.record.store.fcntl.flock", renamed_meanwhile)
    with pytest.raises(ResultsError, match="was renamed by another bench run just now; run the same command again"):
        RunWriter(folder, MANIFEST_OF_TEST)


def test_a_lock_ends_with_the_process_that_held_it(folder: Path) -> None:
    holder = os.fork()
    if not holder:
        RunWriter(folder, MANIFEST_OF_TEST)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(holder, 0)
    reopened(folder)


@pytest.mark.parametrize("name", [TRIALS, TEXTS, RESPONSES])
def test_a_link_in_the_place_of_a_file_is_not_written_through(folder: Path, name: str) -> None:
    other = folder.parent / "other"
    other.write_text("not yours, without an end of line")
    (folder / name).unlink()
    (folder / name).symlink_to(other)
    with pytest.raises(ResultsError, match=f"{name}: is a link, and nothing is written through a link"):
        reopened(folder)
    assert other.read_text() == "not yours, without an end of line"


def test_a_folder_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResultsError, match="run: is a link"):
        RunWriter(tmp_path / "run", MANIFEST_OF_TEST)


@pytest.mark.parametrize("name", [MANIFEST, TRIALS, TEXTS, RESPONSES])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_one_line(folder: Path, name: str, make: Any) -> None:
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(
        ResultsError, match=f"{name}: (cannot be read: it )?is not a file|cannot be written: Is a directory"
    ) as caught:
        reopened(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(ResultsError, match=f"{name}: cannot be read: it is not a file"):
        verify(folder)


def test_of_a_trial_that_was_run_again_the_last_record_counts() -> None:
    assert latest([record(1, "error"), record(2), record(1)]) == [record(1), record(2)]


def test_a_closed_writer_leaves_no_lock_and_no_half_file_behind(folder: Path) -> None:
    reopened(folder)
    reopened(folder)
    assert {path.name for path in folder.iterdir()} == {MANIFEST, TRIALS, TEXTS, RESPONSES}
