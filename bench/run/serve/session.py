"""`bench serve`: run the trials of an outside system at a fixed port and record them like any other trials."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.common.errors import ConfigError
from bench.common.registry import is_path
from bench.common.signals import Stop
from bench.record.reading import read_trials
from bench.record.store import RunWriter
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.endpoint.server import application, serve_application
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.runner import missing_trials, run_matrix
from bench.run.experiment.session import Session
from bench.run.experiment.trial import TrialResult
from bench.run.experiment.untrusted import Permission
from bench.run.serve import free
from bench.run.serve.trial_server import TrialServer, no_architecture
from bench.wire.access_guard import AccessGuard

SHUTDOWN_TIMEOUT_S = 1.0
"""Seconds to send the answer to the last request."""
END_NOTICE_S = 3.0
"""Seconds after the last trial in which a client that asks for the next trial is told that there is none."""
POINTS = ("output", "call")
"""The points at which a fault can strike an outside system. It has its inputs and its state in its own process."""


@dataclass(frozen=True)
class ServingResult:
    """The result of serving.

    requests   the number of requests that the endpoint accepted
    refusals   the reason of each refused request
    strangers  the number of requests without the right to use the endpoint, and the reason of the last refusal
    stopped    the signal that stopped the server; None if no signal did
    deserted   whether no client asked for the next trial any more
    """

    requests: int
    refusals: tuple[str, ...]
    strangers: tuple[int, str]
    stopped: signal.Signals | None
    deserted: bool


def external_config(
    path: Path, architecture: str, overrides: Mapping[str, Any], recorded: Mapping[str, Mapping[str, Any]] | None = None
) -> Config:
    """Return the config for an outside system with the name `architecture`. Without `scenarios` in the overrides its calls are
    only counted. `recorded` holds the tables of models that a recording replaces.

    Raises ConfigError, also if the name is one of ours.
    """
    if architecture in ARCHITECTURES or is_path(architecture):
        raise ConfigError(f"--architecture: '{architecture}' is one of ours; name your own system otherwise")
    scenarios = overrides.get("scenarios") or [free.NAME]
    return load_config(path, {**overrides, "scenarios": scenarios, "architectures": [architecture]}, recorded)


def with_one_more_repetition(config: Config, folder: Path) -> Config:
    """Return the config for one more repetition than this folder has recorded. If calls are only counted, each serving makes a
    new trial.

    A recording answers the n-th trial with its own n-th trial. Raises ConfigError if it has no such trial.
    """
    recorded = _count_unscored(folder)
    for run in filter(None, (config.model[name].replays for name in config.models)):
        available = _count_unscored(run)
        if not available:
            raise ConfigError(f"recording {run}: holds no calls without a task; give --scenario, one that it was recorded with")
        if recorded >= available:
            problem = f"recording {run}: all it holds without a task, {available} trials, has been replayed into {folder}"
            raise ConfigError(f"{problem}; give another --name to begin anew, or record more")
    return config.model_copy(update={"repetitions": recorded + 1})


def _count_unscored(folder: Path) -> int:
    """Return the number of recorded trials whose calls were only counted."""
    records = read_trials(folder) if folder.exists() else ()
    return max((record.repetition for record in records if record.outcome == "ungraded"), default=0)


def external_matrix(config: Config, packs: Sequence[Path], code_digest: str) -> Matrix:
    """Return the matrix of an outside system's trials. Raises ConfigError if a plan's faults could not strike it."""
    architectures = dict.fromkeys(config.architectures, no_architecture)
    matrix = build_matrix(config, packs, code_digest, architectures=architectures, scenarios={free.NAME: free.free_scenario()})
    for scenario in matrix.scenarios.values():
        if scenario.environment is not None:
            raise ConfigError(f"scenario '{scenario.name}' has a world, which is not served to outside systems; name another")
    _refuse_unreachable_points(matrix)
    return matrix


async def serve(
    matrix: Matrix,
    writer: RunWriter,
    port: int,
    on_open: Callable[[str], None],
    on_result: Callable[[TrialResult], None],
    patience: float = 0.0,
    token: str = "",
    say: Callable[[str], object] = lambda _: None,
    permitted: Permission | None = None,
) -> ServingResult:
    """Serve a matrix's missing trials to outside agents until all trials are done or a signal interrupts this process.

    At an interrupt the current trial is recorded as it is then.

    Args:
        matrix: The trials, with their scenarios and models.
        writer: Stores the records.
        port: The port of this machine; 0 takes any that is free.
        on_open: Gets the root address once clients can connect.
        on_result: Gets each result once its record is stored.
        patience: Seconds without a request after which a trial is given up; 0 waits forever.
        token: The API key that clients must give; "" if they need none.
        say: Gets a line on any trouble at the model's endpoint.
        permitted: The permission to run the code of graders; None asks `permission`.

    Returns:
        The result of serving.

    Raises:
        EndpointError: The port is in use, or a model cannot be used.
        ResultsError: A record cannot be written.
        Unguarded: Grading needs code that has no permission to run.
    """
    graded = all(scenario.graded for scenario in matrix.scenarios.values())
    trial_server = TrialServer(graded, len(missing_trials(matrix.specs, writer.ended)))
    app = application(trial_server.routes(), guard := AccessGuard(token), trial_server.note_refusal, trial_server.track_request)
    no_deadline = matrix.config.model_copy(update={"deadline_seconds": math.inf})  # a trial waits for its agent
    matrix = replace(matrix, config=no_deadline).with_architecture(trial_server.work)

    def watch(result: TrialResult) -> None:
        """Pass a recorded result on, and end the run if the server was closed."""
        trial_server.set_record(result.record)
        on_result(result)
        if trial_server.closed:
            run_task.cancel()

    async with serve_application(app, guard, port, SHUTDOWN_TIMEOUT_S) as trial_server.root:
        run_task = asyncio.create_task(_run(matrix, writer, watch, trial_server, Session(say=say, permitted=permitted)))
        watch_task = asyncio.create_task(trial_server.watch(patience)) if patience and graded else None
        if watch_task:
            watch_task.add_done_callback(lambda _: trial_server.deserted and run_task.cancel())
        with (
            Stop(asyncio.get_running_loop(), lambda: trial_server.close() or run_task.cancel()) as stop,
            suppress(asyncio.CancelledError),
        ):
            on_open(trial_server.root)
            await run_task
        if watch_task:
            watch_task.cancel()
    return ServingResult(
        trial_server.received, tuple(trial_server.refusals), (guard.refusals, guard.reason), stop.by, trial_server.deserted
    )


async def _run(
    matrix: Matrix, writer: RunWriter, watch: Callable[[TrialResult], None], trial_server: TrialServer, session: Session
) -> None:
    """Run the trials, then wait until a client that asks for one more is told that all are done."""
    await run_matrix(matrix, writer, watch, session)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_NOTICE_S):
            await trial_server.until_done_is_seen()


def _refuse_unreachable_points(matrix: Matrix) -> None:
    """Raise ConfigError for a fault at a point that is within the outside system (POINTS)."""
    for plan in matrix.plans.values():
        for fault in plan.faults:
            if fault.point not in POINTS:
                refusal = f"plan '{plan.name}': {fault.effect} strikes at '{fault.point}'"
                raise ConfigError(
                    f"{refusal}, which an outside system holds itself; serve a plan that strikes at output or call"
                )
