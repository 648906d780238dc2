"""Whatever ends a run, and wherever in a write: one clear line where there is time for one, no file that hinders going on, and
the records of a run that nothing happened to."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from commands import Started, bench, sabotaged, start, workplace
from experiment_runs import timeless
from sabotage import Sabotage, clock_set_back, killed_at, refused_at, without_privilege

from bench.record.reading import read_texts
from bench.record.verify import verify

RUN = ("run", "configs/small.toml", "--name")
KINDS = [("write", 5, 0.0), ("write", 6, 0.99), ("replace", 1, 0.0)]
REFUSALS = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workplace whose run `whole` was left in peace."""
    workplace(tmp_path, repetitions=1)
    assert bench(tmp_path, *RUN, "whole")[0] == 0
    return tmp_path


def assert_goes_on(place: Path, name: str, before: Sabotage | None = None) -> None:
    """The same command ends the run, and it is as if nothing had happened."""
    code, _, err = sabotaged(place, before, *RUN, name) if before else bench(place, *RUN, name)
    assert code == 0, err
    run, whole = (place / "results" / folder for folder in (name, "whole"))
    assert timeless(run) == timeless(whole)
    assert read_texts(run) == read_texts(whole)
    assert not verify(run).defects
    assert not list(run.glob(".*")), "a half-written file was left"


def assert_dies_and_goes_on(place: Path, name: str, before: Sabotage) -> bool:
    """Whether it was killed at all."""
    code, _, err = sabotaged(place, before, *RUN, name)
    assert code in (0, -signal.SIGKILL), err
    assert_goes_on(place, name)
    return code != 0


def test_killed_in_a_write_a_run_goes_on_as_if_nothing_had_happened(place: Path) -> None:
    for number, kind in enumerate(KINDS):
        assert assert_dies_and_goes_on(place, f"killed{number}", killed_at(*kind))


@pytest.mark.endurance
@pytest.mark.parametrize("call", ["write", "replace"])
def test_killed_at_each_boundary_and_at_random_bytes_of_each_write(
    place: Path, call: str, record_property: Callable[[str, object], None]
) -> None:
    draw, number = random.Random(3), 1
    while assert_dies_and_goes_on(place, f"killed{number}", killed_at(call, number, draw.choice((0.0, 1.0, draw.random())))):
        number += 1
    assert number > (10 if call == "write" else 1)
    record_property("tries", number - 1)


@pytest.mark.endurance
def test_killed_while_it_cuts_off_what_a_kill_left_it_goes_on_all_the_same(place: Path) -> None:
    for number in range(3, 9):
        assert sabotaged(place, killed_at("write", number, 0.5), *RUN, f"twice{number}")[0] == -signal.SIGKILL
        assert assert_dies_and_goes_on(place, f"twice{number}", killed_at("ftruncate", 1))


@pytest.mark.parametrize("number", [6, *(pytest.param(number, marks=pytest.mark.endurance) for number in (1, 2, 3, 9, 12))])
@pytest.mark.parametrize("error", [REFUSALS[0], *(pytest.param(error, marks=pytest.mark.endurance) for error in REFUSALS[1:])])
def test_a_disk_that_refuses_a_write_is_one_line_and_the_run_goes_on_once_it_takes_more(
    place: Path, error: int, number: int
) -> None:
    code, _, err = sabotaged(place, refused_at(number, error), *RUN, "refused")
    line = " ".join(err.split())
    assert code not in (0, -signal.SIGKILL) and "Traceback" not in err
    assert "cannot be written" in line and os.strerror(error) in line
    assert_goes_on(place, "refused")


@pytest.mark.endurance
@pytest.mark.parametrize("most", [0, 1, 700, 3000, 9000])
def test_a_real_bound_on_the_size_of_files_is_one_line_and_lifted_the_run_goes_on(place: Path, most: int) -> None:
    code, _, err = sabotaged(place, partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most)), *RUN, "bounded")
    assert code != 0 and "Traceback" not in err
    assert_goes_on(place, "bounded")


@pytest.mark.skipif(sys.platform != "linux", reason="root's rights are given up as Linux has them")
def test_a_folder_turned_read_only_is_one_line_and_the_run_goes_on_once_it_is_not(place: Path) -> None:
    assert sabotaged(place, killed_at("write", 6), *RUN, "closed")[0] == -signal.SIGKILL
    run = place / "results" / "closed"
    for path in (run, *run.iterdir()):
        path.chmod(0o555)
    code, _, err = sabotaged(place, without_privilege, *RUN, "closed")
    assert code != 0 and "cannot be written: Permission denied" in " ".join(err.split())
    for path in (run, *run.iterdir()):
        path.chmod(0o755)
    assert_goes_on(place, "closed", without_privilege)


def test_a_wall_clock_that_was_set_back_changes_no_record(place: Path) -> None:
    assert sabotaged(place, killed_at("write", 6), *RUN, "early")[0] == -signal.SIGKILL
    assert_goes_on(place, "early", clock_set_back)
    assert '"at":"1971' in (place / "results" / "early" / "trials.jsonl").read_text()


def test_a_second_runner_and_one_that_would_set_the_folder_aside_leave_a_running_run_alone(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=15)
    trials = tmp_path / "results" / "busy" / "trials.jsonl"
    with start(tmp_path, *RUN, "busy") as first:
        first.send_signal(_once_written(first, trials))
        for words in ((), ("--set-aside",)):
            code, _, err = bench(tmp_path, *RUN, "busy", *words)
            assert code != 0 and "another bench run is writing here" in " ".join(err.split())
        first.send_signal(signal.SIGCONT)
        assert first.ended()[0] == 0
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["busy"]
    assert len(timeless(tmp_path / "results" / "busy")) == 15 * 4


def _once_written(command: Started, trials: Path) -> signal.Signals:
    """The signal that stops it in mid-run, once it is there."""
    while not (trials.exists() and trials.stat().st_size):
        assert command.exit_code is None
    return signal.SIGSTOP
