"""A run as it stands: what is counted is what the records hold, however often and wherever it is read in between."""

from __future__ import annotations

import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from experiment_runs import config, run

from bench.common.errors import ResultsError
from bench.read.overview.live import LiveRun, page
from bench.record.archive import archive
from bench.record.chain import seal
from bench.record.files import TRIALS
from bench.record.reading import read_manifest, read_trials
from bench.record.store import RunWriter

SIMULATED = {"kind": "simulated", "failure_rate": 0.3, "price_in": 1.0, "price_out": 2.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(config(SIMULATED), folder)
    return folder


def counted(live: LiveRun) -> tuple[object, ...]:
    """All that it has counted."""
    arms = [(arm.key, arm.outcomes, arm.calls, arm.tokens, arm.cost) for arm in live.arms.values()]
    return arms, live.rejections, live.trials, live.in_session


def test_outcomes_and_tokens_are_those_of_the_records(folder: Path) -> None:
    live, records = LiveRun(folder), list(read_trials(folder))
    live.read()
    assert live.trials == live.planned == live.in_session == len(records)
    assert sum(arm.tokens for arm in live.arms.values()) == sum(record.tokens for record in records)
    assert sum((arm.outcomes for arm in live.arms.values()), Counter()) == Counter(record.outcome for record in records)
    assert live.rejections and all(arm.cost for arm in live.arms.values())


def test_a_plan_for_some_packs_is_planned_on_no_other(tmp_path: Path) -> None:
    with zipfile.ZipFile(Path(__file__).parents[3] / "results" / "papers_event-simulated.zip") as archive:
        archive.extractall(tmp_path)
    live = LiveRun(tmp_path)
    live.read()
    assert live.trials == live.planned == 120


def test_a_run_that_is_read_at_any_byte_of_it_is_counted_as_one_read_at_its_end(folder: Path, tmp_path: Path) -> None:
    whole = LiveRun(folder)
    whole.read()
    content, growing = (folder / TRIALS).read_bytes(), tmp_path / "growing"
    growing.mkdir()
    (growing / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    live = LiveRun(growing)
    for end in (0, 1, len(content) // 3, len(content) // 2, len(content) - 1, len(content)):
        (growing / TRIALS).write_bytes(content[:end])
        live.read()
    assert counted(live) == counted(whole)


def test_a_trial_that_is_run_again_after_an_error_counts_once(folder: Path, tmp_path: Path) -> None:
    record = next(read_trials(folder))
    writer, live = RunWriter(tmp_path / "run", read_manifest(folder)), LiveRun(tmp_path / "run")
    writer.add(replace(record, outcome="error"), {})
    live.read()
    assert [+arm.outcomes for arm in live.arms.values()] == [Counter(error=1)]
    writer.add(record, {})
    writer.close()
    live.read()
    assert [+arm.outcomes for arm in live.arms.values()] == [Counter([record.outcome])]
    assert live.trials == 1


def test_a_trial_that_other_code_runs_again_after_an_error_counts_once(folder: Path, tmp_path: Path) -> None:
    record = next(read_trials(folder))
    writer, live = RunWriter(tmp_path / "run", read_manifest(folder)), LiveRun(tmp_path / "run")
    writer.add(replace(record, id="0" * 20, outcome="error"), {})
    writer.add(record, {})
    writer.close()
    live.read()
    assert [+arm.outcomes for arm in live.arms.values()] == [Counter([record.outcome])] and live.trials == 1


def test_the_time_left_is_that_of_the_trials_that_are_missing(folder: Path, tmp_path: Path) -> None:
    lines = (folder / TRIALS).read_bytes().splitlines(keepends=True)
    (tmp_path / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    (tmp_path / TRIALS).write_bytes(b"".join(lines[:7]))  # one line is of the session's begin
    live = LiveRun(tmp_path)
    live.read()
    assert live.session
    began = datetime.fromisoformat(live.session.at)
    assert "6 of 24 trials are recorded" in live.state(began + timedelta(minutes=1))
    assert "About 0:03:00 are left" in live.state(began + timedelta(minutes=1))


def test_the_page_says_that_a_simulated_model_is_none_and_when_the_run_has_ended(folder: Path) -> None:
    live = LiveRun(folder)
    live.read()
    shown = page(live, datetime.now(UTC), 5)
    assert "SIMULATED" in shown and "the last one ended (complete). 24 of 24 trials" in shown
    assert re.search(r'<meta http-equiv="refresh" content="5">', shown) and "<script" not in shown


def test_what_is_no_file_of_a_run_is_not_waited_for_and_not_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(config(SIMULATED, plans=["none"], repetitions=1), tmp_path / "run")
    live, path = LiveRun(tmp_path / "run"), tmp_path / "run" / TRIALS
    live.read()
    before = counted(live)
    path.unlink()
    puts: tuple[Callable[[], None], ...] = (partial(os.mkfifo, path), partial(path.symlink_to, "/dev/zero"), path.mkdir)
    for put in puts:
        put()
        with pytest.raises(ResultsError, match="cannot be read: it is not a file"):
            live.read()
        path.rmdir() if path.is_dir() else path.unlink()
    monkeypatch.setattr("bench.read.overview.live.LONGEST_LINE", 2**18)
    with path.open("wb") as endless:
        endless.truncate(2**18 + 1)
    with pytest.raises(ResultsError, match="is longer than any that a run writes"):
        LiveRun(tmp_path / "run").read()
    for text in (b'{"kind":"trial"}', b"5" * 5000, b"[" * 5000, b'{"a":[' + b"1," * 120_000 + b"1]}"):
        path.write_bytes(seal(text if text.endswith(b"}") else b'{"a":' + text + b"}", "")[0])
        with pytest.raises(ResultsError, match=r"at byte 0 (is no record|holds more values)"):
            LiveRun(tmp_path / "run").read()
    (tmp_path / "run").rename(tmp_path / "set aside")
    with pytest.raises(ResultsError, match="cannot be read: No such file or directory"):
        live.read()
    assert counted(live) == before


def test_what_cannot_be_watched_is_told_in_a_line(folder: Path, tmp_path: Path) -> None:
    run(config(SIMULATED, plans=["none"], repetitions=1), tmp_path / "run")
    live = LiveRun(tmp_path / "run")
    live.read()
    path = tmp_path / "run" / TRIALS
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ResultsError, match="another run has taken its place"):
        live.read()
    content = (folder / TRIALS).read_bytes()
    path.write_bytes(content[:50] + b"x" + content[51:])
    with pytest.raises(ResultsError, match="at byte 0 does not follow"):
        LiveRun(tmp_path / "run").read()
    archive(folder)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(ResultsError, match="is an archive, which no run writes to"):
        LiveRun(folder)
