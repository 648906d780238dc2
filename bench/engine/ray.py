"""`bench run --engine ray`: trials of simulated and recorded models on Ray's workers, and one writer, which is this process.

A task of Ray runs a few trials and sends them back whole. Ray is not asked to try a task again, and its statistics of use are
off. What a worker that dies had not sent back is not recorded, and the same command runs it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engine.worker import Experiment, Finished, run_trials
from bench.errors import ConfigError, ResultsError
from bench.experiment.matrix import Matrix, TrialSpec
from bench.experiment.provenance import now
from bench.experiment.record import SessionRecord, TrialRecord
from bench.experiment.recording import response_of
from bench.experiment.runner import missing
from bench.experiment.session import Session
from bench.experiment.store import RunWriter

LOCAL = "ray"
MOST_TRIALS = 16
"""Of one task: they come back together."""
WAITING = 2
"""Tasks for each worker, so that none of them waits for the writer."""


def refuse_live(matrix: Matrix) -> None:
    """Raise ConfigError where a model is live: its gates, its budget and its cache are held by one process."""
    for name, model in matrix.models.items():
        if model.timing == "live":
            problem = f"--engine ray runs simulated and recorded models, and '{name}' is live"
            raise ConfigError(f"{problem}; leave --engine out, or part the run by --shard")


@contextmanager
def cluster(engine: str, workers: int | None) -> Iterator[tuple[Any, int]]:
    """Connect to Ray, and disconnect at the end. Yields the module and the number of workers.

    Args:
        engine: `ray`, for workers on this machine, or the address of a cluster, `ray://HOST:PORT`.
        workers: How many trials run at a time; by default as many as there are processors.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise ConfigError("--engine ray needs: pip install '.[ray]'") from error
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    try:
        if engine == LOCAL:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
        else:
            ray.init(engine)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(f"--engine {engine}: no cluster answers: {' '.join(str(error).split())[:200]}") from error
    try:
        yield ray, workers or int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()


async def run_on_ray(
    matrix: Matrix,
    writer: RunWriter,
    watch: Callable[[TrialRecord], None],
    session: Session,
    packs: Sequence[Path],
    engine: str,
    workers: int | None,
) -> None:
    """Run what is missing of a matrix, as `bench.experiment.runner.run_matrix` does, on workers.

    Raises:
        ConfigError: A model is live, Ray is not installed, or no cluster answers.
        ResultsError: A record cannot be written, a worker died, or its packs, code or packages are others.
    """
    refuse_live(matrix)
    unguarded = session.permitted is not None and session.permitted.unguarded is not None
    travelled = pickle.dumps(Experiment.of(matrix, packs, unguarded=unguarded))
    todo = deque(missing(matrix.specs, writer.recorded))
    writer.note(SessionRecord(now(), "began", f"{len(todo)} of {len(matrix.specs)} trials to run"))
    how, mark = "stopped", None
    try:
        with cluster(engine, workers) as (ray, at_a_time):
            session.begin(())
            task, given = ray.remote(run_trials).options(max_retries=0), ray.put(travelled)
            size = max(1, min(MOST_TRIALS, len(todo) // (2 * WAITING * at_a_time)))

            async def work() -> None:
                while todo and not session.why:
                    batch = [todo.popleft() for _ in range(min(size, len(todo)))]
                    _write(await _finished(ray, task, given, batch), writer, watch, session)

            async with asyncio.TaskGroup() as group:
                for _ in range(WAITING * at_a_time):
                    group.create_task(work())
        how, mark = ("complete", writer.mark) if not todo else (f"stopped: {session.ending}", None)
        session.raise_error()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        writer.note(SessionRecord(now(), "ended", how, mark=mark))


async def _finished(ray: Any, task: Any, given: Any, batch: Sequence[TrialSpec]) -> list[Finished]:
    try:
        finished: list[Finished] = await asyncio.wrap_future(task.remote(given, [spec.id for spec in batch]).future())
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ResultsError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        problem = f"a worker ended with {len(batch)} trials: {' '.join(str(error).split())[:100]}"
        raise ResultsError(f"{problem}; what came back is kept, and the same command goes on") from error
    return finished


def _write(finished: Sequence[Finished], writer: RunWriter, watch: Callable[[TrialRecord], None], session: Session) -> None:
    """Keep a batch: of each trial its texts and responses before its record."""
    for trial in finished:
        writer.add_texts(trial.texts)
        for response in trial.responses:
            writer.respond(response, {})
            session.saw(response_of(response, trial.texts, writer.folder))
        writer.add(trial.record, {})
        watch(trial.record)
