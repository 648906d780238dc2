"""`bench run --engine ray`: trials on Ray's workers, and one writer, which is this process.

Where models are simulated or recorded, a task of Ray runs as many trials as take `SECONDS`, and sends back the lines that are
appended here. Where they are live, a task runs one trial, and each of its calls is made here (`bench.run.engine.live`). Ray is
not asked to try a task again, and its statistics of use are off. A trial that a worker had not sent back when it died is run
by the same command again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from bench.common.errors import ConfigError, ResultsError
from bench.common.signals import STOPPING, set_anew
from bench.record.record import SessionRecord
from bench.record.store import RunWriter
from bench.run.engine.live import Conducted
from bench.run.engine.relay import GOES_ON, Relay
from bench.run.engine.worker import Experiment, FinishedTrials, run_live, run_trials
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, TrialSpec
from bench.run.experiment.provenance import now
from bench.run.experiment.runner import Conduct, missing, run_matrix
from bench.run.experiment.session import Session
from bench.run.experiment.so_far import SoFar
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Response
from bench.run.trial.slots import Slots

Result = TypeVar("Result")

RunsMatrix = Callable[..., Coroutine[Any, Any, None]]

LOCAL = "ray"
PRIVATE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
"""Variables by which Ray's processes listen on loopback, whatever the system, and ask each other for a token."""
SECONDS = 0.5
"""How long the trials of one task take, about. They come back together."""
FIRST_TRIALS, MOST_TRIALS = 4, 2000
"""Trials of a task while the time of a trial is unknown, and the most trials of any task."""
WAITING = 2
"""Tasks given out for each worker at a time, so that no worker waits for the writer."""
MOST_MESSAGES = 10_000
"""The most messages of live trials that wait for an answer at a time."""
SECONDS_TO_END = 10.0
"""How long a trial on a worker can take to end after the run gives it up."""


def refuse_mixture(matrix: Matrix) -> None:
    """Raise ConfigError if some models are live and others are not: live models are asked here, and the others on a worker."""
    live = {name: model.timing == "live" for name, model in matrix.models.items()}
    if any(live.values()) and not all(live.values()):
        [first, *_], [other, *_] = ([name for name, is_live in live.items() if is_live is wanted] for wanted in (True, False))
        problem = f"--engine ray: '{first}' is live and '{other}' is not, and the engine does not run both at once"
        raise ConfigError(f"{problem}; run each by itself, with --model")


def engine_of(matrix: Matrix, packs: Sequence[Path], engine: str, workers: int | None) -> RunsMatrix:
    """Return the function that runs a matrix on Ray. Raises ConfigError as `refuse_mixture` does."""
    refuse_mixture(matrix)
    return partial(run_on_ray, packs=packs, engine=engine, workers=workers)


@asynccontextmanager
async def cluster(engine: str, workers: int | None) -> AsyncIterator[tuple[Any, int]]:
    """Connect to Ray, and disconnect at the end. Yields the module and the number of workers.

    Workers on this machine are reached over loopback alone, with a token that is written nowhere, and what Ray writes meanwhile
    stands in a folder that only this user can read. Variables of Ray that are set already hold.

    Args:
        engine: `ray`, for workers on this machine, or the address of a cluster, `ray://HOST:PORT`.
        workers: How many trials run at a time; by default as many as there are processors.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if engine == LOCAL:
        for name, value in {**PRIVATE, "RAY_AUTH_TOKEN": secrets.token_hex(32)}.items():
            os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise ConfigError("--engine ray needs: pip install '.[ray]'") from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    with TemporaryDirectory(prefix="ray-", dir=os.environ.get("RAY_TMPDIR", "/tmp"), ignore_cleanup_errors=True) as folder:
        # a thread, since in the main thread Ray would take SIGTERM from us
        beginning = asyncio.ensure_future(asyncio.to_thread(_begin, ray, engine, workers, folder))
        try:
            await asyncio.shield(beginning)
            set_anew()
            yield ray, workers or int(ray.cluster_resources().get("CPU", 1))
        finally:
            await asyncio.wait([beginning])  # Ray cannot be ended while it begins
            ray.shutdown()
            set_anew()


def _begin(ray: Any, engine: str, workers: int | None, folder: str) -> None:
    """Ray opens its own folder to everybody, so it is given one below a private `folder`.

    Its processes here do not hear the signals that stop a run: systemd, Slurm and a terminal send them to all processes, and
    this one ends the others, once the calls in flight are kept.
    """
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        if engine != LOCAL:
            ray.init(engine)
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "include_dashboard": False}
        ray.init(address="local", num_cpus=workers, _temp_dir=f"{folder}/r", **quiet)  # no cluster that runs here
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"--engine {engine}: no cluster answers: {' '.join(str(error).split())[:200]}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


async def run_on_ray(
    matrix: Matrix,
    writer: RunWriter,
    watch: Callable[[TrialResult | SoFar], None],
    session: Session,
    packs: Sequence[Path],
    engine: str,
    workers: int | None,
) -> None:
    """Run what is missing of a matrix, as `bench.run.experiment.runner.run_matrix` does, on workers.

    Raises:
        ConfigError: Some models are live and others are not, Ray is not installed, or no cluster answers.
        ResultsError: A record cannot be written, a worker died, or its packs, code or packages are others.
        EndpointError: A live model cannot be used.
    """
    refuse_mixture(matrix)
    unguarded = session.permitted is not None and session.permitted.unguarded is not None
    travelled = pickle.dumps(Experiment.of(matrix, packs, unguarded=unguarded))
    if any(model.timing == "live" for model in matrix.models.values()):
        async with cluster(engine, workers) as (ray, _):
            await run_matrix(matrix, writer, watch, session, _conductor(ray, travelled, session))
        return
    todo = missing(matrix.specs, writer.ended)
    writer.note(SessionRecord(now(), "began", f"{len(todo)} of {len(matrix.specs)} trials to run"))
    how, mark = "stopped", None
    try:
        async with cluster(engine, workers) as (ray, at_a_time):
            session.begin(())
            task, given = ray.remote(run_trials).options(max_retries=0), ray.put(travelled)
            spending, budget = session.spending, session.spending and session.spending.budget
            batches, told = Batches(todo, WAITING * at_a_time), set[str]()

            async def work() -> None:
                while not session.why and (batch := batches.next()):
                    running = asyncio.wrap_future(task.remote(given, batch, budget).future())
                    finished: FinishedTrials = await _ended(ray, running, len(batch))
                    batches.took(finished.seconds / len(batch))
                    writer.append(finished.lines)
                    watch(finished.so_far)
                    if spending:
                        spending.tokens += finished.tokens
                        spending.cost += finished.cost
                        session.check_budget()
                    for line in (line for line in finished.notices if line not in told):
                        told.add(line)
                        session.say(line)

            async with asyncio.TaskGroup() as group:
                for _ in range(WAITING * at_a_time):
                    group.create_task(work())
        how, mark = (f"stopped: {session.ending}", None) if batches.left else ("complete", writer.mark)
        session.raise_error()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        writer.note(SessionRecord(now(), "ended", how, mark=mark))


class Batches:
    """The trials of a run, dealt out to a number of tasks. Batches shrink at the end, so that all workers end together."""

    def __init__(self, todo: Sequence[TrialSpec], at_a_time: int):
        self._queue, self.left, self._at_a_time = iter(todo), len(todo), at_a_time
        self._size = FIRST_TRIALS

    def next(self) -> list[TrialSpec]:
        """Return the trials of the next task; an empty batch if none are left."""
        share = self.left // (2 * self._at_a_time)
        batch = list(islice(self._queue, max(1, min(self._size, share))))
        self.left -= len(batch)
        return batch

    def took(self, seconds: float) -> None:
        """Record how long a trial took on a worker."""
        self._size = min(MOST_TRIALS, int(SECONDS / seconds))


def _conductor(ray: Any, travelled: bytes, session: Session) -> Conduct:
    """Return the function that runs a trial of a live model on a worker."""
    task, given = ray.remote(run_live).options(max_retries=0), ray.put(travelled)
    relay = ray.remote(Relay).options(num_cpus=0, max_concurrency=MOST_MESSAGES).remote()

    async def conduct(
        spec: TrialSpec,
        matrix: Matrix,
        slots: Slots,
        _: Graders,
        keep: Callable[[Response], object],
        saw: Callable[[Response], object],
    ) -> TrialResult | None:
        running = task.remote(given, spec, relay)
        ended: asyncio.Future[TrialResult] = asyncio.wrap_future(running.future())
        try:
            await Conducted(relay, spec.id, matrix.models[spec.model], slots, keep, saw).until(ended)
            return await _ended(ray, ended, 1)
        except ResultsError as error:  # the calls of other trials come back and are kept
            session.end("a worker cannot go on", error)
            return None
        except asyncio.CancelledError:
            ray.cancel(running)
            await asyncio.wait([asyncio.gather(ended, return_exceptions=True)], timeout=SECONDS_TO_END)
            raise

    return conduct


async def _ended(ray: Any, running: asyncio.Future[Result], trials: int) -> Result:
    """Return what a task returned. Raises ResultsError if the task did not end normally."""
    try:
        return await asyncio.shield(running)  # Ray stumbles over a cancelled future
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ResultsError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        what = f"{trials} trials" if trials > 1 else "a trial"
        problem = f"a worker ended with {what}: {' '.join(str(error).split())[:100]}"
        raise ResultsError(f"{problem}; {GOES_ON}") from error
