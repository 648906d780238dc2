"""Trials on Ray's workers: the records of one process, whatever the number of workers; a worker's death is one line."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from commands import Ended, bench, bench_anew, start_anew, workplace
from equal_runs import assert_equal
from experiment_runs import sessions_of
from reliability.listening import LOOPBACK, listening_at
from trials import matrix_of

from bench.run.engine.ray import FIRST_TRIALS, SECONDS, Batches

DYING = """
import os, signal
from pathlib import Path
from bench.run.architectures.static import static

async def dying(task, workbench):
    if Path("deadly").exists():
        Path("deadly").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    await static(task, workbench)
"""


def on_ray(folder: Path, *words: str) -> Ended:
    return bench_anew(folder, "run", "configs/small.toml", "--engine", "ray", *words, PYTHONWARNINGS="default")


def test_a_mixture_of_models_is_refused_before_anything_is_begun(tmp_path: Path) -> None:
    live = '[model.live]\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    workplace(tmp_path, model='live", "simulated', tables=live)
    for words, message in (
        (("--engine", "ray"), "--engine ray: 'live' is live and 'simulated' is not"),
        (("--engine", "dask"), "--engine dask: is not an engine; give ray, or a cluster's address, ray://HOST:PORT"),
        (("--workers", "2"), "--workers: no agent of this config is a command, and only --engine ray has workers for others"),
    ):
        code, _, err = bench(tmp_path, "run", "configs/small.toml", *words)
        assert code == 2 and message in err
    assert not (tmp_path / "results").exists()


def test_each_trial_is_in_one_task_and_a_task_is_as_long_as_its_trials_take_but_shorter_at_the_end() -> None:
    matrix = matrix_of(repetitions=500)
    batches = Batches(matrix.specs, at_a_time=4)
    sizes, ids = [], []
    while batch := batches.next():
        sizes.append(len(batch))
        ids += [spec.id for spec in batch]
        batches.took(SECONDS / 100)
    assert ids == [spec.id for spec in matrix.specs] and batches.left == 0
    assert sizes[:3] == [FIRST_TRIALS, 100, 100] and sizes == [FIRST_TRIALS, *sorted(sizes[1:], reverse=True)]
    assert sizes[-4:] == [1, 1, 1, 1]
    batches.took(10 * SECONDS)
    assert Batches(matrix.specs, at_a_time=4).next() and batches.next() == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workplace whose run `here` is what one process records."""
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("place")
    workplace(folder, repetitions=3)
    assert bench_anew(folder, "run", "configs/small.toml", "--name", "here")[0] == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2", "4"])
def test_workers_write_the_records_of_one_process(place: Path, workers: str) -> None:
    code, out, err = on_ray(place, "--workers", workers, "--name", f"on-{workers}")
    assert code == 0 and "done: " in out, err
    assert_equal(place / "results" / "here", place / "results" / f"on-{workers}")
    code, out, _ = bench_anew(place, "verify", f"on-{workers}")
    assert code == 0 and "sound: 12 trials" in out


@pytest.mark.slow
def test_workers_listen_on_loopback_leave_no_token_or_folder_and_sigterm_ends_them_quietly(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    workplace(tmp_path, repetitions=5000)
    with TemporaryDirectory(dir="/tmp") as short:  # Ray's sockets have paths of 107 characters at most
        variables = {"HOME": str(tmp_path), "RAY_TMPDIR": short, "PYTHONWARNINGS": "default"}
        with start_anew(tmp_path, "run", "configs/small.toml", "--name", "ended", "--engine", "ray", **variables) as running:
            records = tmp_path / "results" / "ended" / "trials.jsonl"
            while running.poll() is None and not (records.exists() and records.stat().st_size > 10_000):
                time.sleep(0.05)
            addresses = listening_at(running.pid)
            modes = [folder.stat().st_mode & 0o777 for folder in Path(short).iterdir()]
            running.send_signal(signal.SIGTERM)
            _, err = running.communicate(timeout=100)
        assert running.returncode == 143 and re.fullmatch(r"stopped; what is recorded is kept in .*\n", err), err
        assert not list(Path(short).iterdir()) and not list(tmp_path.rglob("auth_token"))
    assert sessions_of(tmp_path / "results" / "ended")[-1].detail.startswith("stopped: a signal asked for it")
    assert addresses and addresses <= LOOPBACK
    assert modes == [0o700]


@pytest.mark.slow
def test_a_signal_while_ray_begins_ends_the_run_before_its_first_trial(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    workplace(tmp_path)
    with start_anew(tmp_path, "run", "configs/small.toml", "--name", "ended", "--engine", "ray") as running:
        while running.poll() is None and not list(tmp_path.glob("results/ended/trials.jsonl")):
            time.sleep(0.05)
        time.sleep(1.0)
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=100)
    assert running.returncode == 143 and re.fullmatch(r"stopped; what is recorded is kept in .*\n", err), err


@pytest.mark.slow
def test_shards_of_workers_and_of_one_process_merge_to_its_records_in_any_order(place: Path) -> None:
    assert on_ray(place, "--shard", "1/2", "--workers", "2", "--name", "first")[0] == 0
    assert bench_anew(place, "run", "configs/small.toml", "--shard", "2/2", "--name", "second")[0] == 0
    for parts in (("first", "second"), ("second", "first")):
        merged = "-".join(parts)
        assert bench_anew(place, "more", "merge", *parts, "--name", merged)[0] == 0
        assert_equal(place / "results" / "here", place / "results" / merged)


@pytest.mark.slow
def test_a_budget_ends_a_run_on_workers_and_one_process_goes_on(place: Path) -> None:
    code, _, err = on_ray(place, "--workers", "1", "--name", "bounded", "--max-tokens", "1")
    assert code == 1 and re.search(r"stopped: --max-tokens 1 is reached \([\d,]{3,} tokens in this invocation\)", err), err
    assert bench_anew(place, "run", "configs/small.toml", "--name", "bounded")[0] == 0
    assert_equal(place / "results" / "here", place / "results" / "bounded")


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_no_record_and_the_run_goes_on_in_one_process(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    config = workplace(tmp_path, repetitions=3)
    config.write_text(config.read_text(encoding="utf-8").replace('"runtime_structured"', '"dying:dying"'), encoding="utf-8")
    (tmp_path / "dying.py").write_text(DYING, encoding="utf-8")
    assert bench_anew(tmp_path, "run", "configs/small.toml", "--name", "here")[0] == 0
    (tmp_path / "deadly").touch()
    code, _, err = on_ray(tmp_path, "--workers", "1", "--name", "killed")
    assert code == 2 and re.search(
        r"bench: a worker ended with (a trial|\d+ trials): .*; what came back is kept, and the same command", err
    )
    assert not (tmp_path / "deadly").exists()
    assert bench_anew(tmp_path, "run", "configs/small.toml", "--name", "killed")[0] == 0
    assert_equal(tmp_path / "results" / "here", tmp_path / "results" / "killed")
