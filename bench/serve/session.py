"""`bench serve`: the trials of a system that is none of ours, run at a fixed port and recorded like any others."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.architectures.registry import ARCHITECTURES
from bench.endpoint.access_guard import AccessGuard
from bench.endpoint.server import application, serving
from bench.errors import ConfigError
from bench.experiment.config import Config, load_config
from bench.experiment.matrix import Matrix, build_matrix
from bench.experiment.reading import read_trials
from bench.experiment.runner import missing, run_matrix
from bench.experiment.session import Session
from bench.experiment.store import RunWriter
from bench.experiment.trial import TrialResult
from bench.experiment.untrusted import Permission
from bench.registry import is_path
from bench.serve import free
from bench.serve.trial_server import TrialServer, nobody
from bench.signals import Stop

LAST_WORDS = 1.0
"""Seconds that the answer to the last request is given to be sent."""
GRACE = 3.0
"""Seconds after the last trial in which a client that asks for the next one is told that there is none."""
POINTS = ("output", "call")
"""Where an outside system can be struck: what it reads and what it keeps it holds itself."""


@dataclass(frozen=True)
class Served:
    """How it went.

    requests   the endpoint's own count of those that it took
    refusals   why others were not taken
    strangers  how many more came from who may not ask here, and why the last of them was turned away
    stopped    the signal that stopped it, if one did
    deserted   nobody asked for the next trial any more
    """

    requests: int
    refusals: tuple[str, ...]
    strangers: tuple[int, str]
    stopped: signal.Signals | None
    deserted: bool


def external_config(
    path: Path, architecture: str, overrides: Mapping[str, Any], recorded: Mapping[str, Mapping[str, Any]] | None = None
) -> Config:
    """The experiment on an outside system under this name; without `scenarios` in the overrides its calls are only counted.
    `recorded` are the entries of models that a recording stands in for.

    Raises ConfigError, also where the name is one of ours.
    """
    if architecture in ARCHITECTURES or is_path(architecture):
        raise ConfigError(f"--architecture: '{architecture}' is one of ours; name your own system otherwise")
    scenarios = overrides.get("scenarios") or [free.NAME]
    return load_config(path, {**overrides, "scenarios": scenarios, "architectures": [architecture]}, recorded)


def one_more(config: Config, folder: Path) -> Config:
    """Calls that are only counted make a new trial each time: one repetition more than this folder has recorded.

    A recording answers the n-th of them with its own n-th; raises ConfigError where it has none, or no more.
    """
    done = _counted(folder)
    for run in filter(None, (config.model[name].replays for name in config.models)):
        held = _counted(run)
        if not held:
            raise ConfigError(f"recording {run}: holds no calls without a task; give --scenario, one that it was recorded with")
        if done >= held:
            problem = f"recording {run}: all it holds without a task, {held} trials, has been replayed into {folder}"
            raise ConfigError(f"{problem}; give another --name to begin anew, or record more")
    return config.model_copy(update={"repetitions": done + 1})


def _counted(folder: Path) -> int:
    """The trials of calls that were only counted."""
    records = read_trials(folder) if folder.exists() else ()
    return max((record.repetition for record in records if record.outcome == "ungraded"), default=0)


def external_matrix(config: Config, packs: Sequence[Path], code_digest: str) -> Matrix:
    """The trials of an outside system. Raises ConfigError where a plan's faults could not strike it."""
    architectures = dict.fromkeys(config.architectures, nobody)
    matrix = build_matrix(config, packs, code_digest, architectures=architectures, scenarios={free.NAME: free.free_scenario()})
    for scenario in matrix.scenarios.values():
        if scenario.environment is not None:
            raise ConfigError(f"scenario '{scenario.name}' has a world, which is not served to outside systems; name another")
    _refuse_plans_out_of_reach(matrix)
    return matrix


async def serve(
    matrix: Matrix,
    writer: RunWriter,
    port: int,
    opened: Callable[[str], None],
    saw: Callable[[TrialResult], None],
    patience: float = 0.0,
    token: str = "",
    say: Callable[[str], object] = lambda _: None,
    permitted: Permission | None = None,
) -> Served:
    """Serve what is missing of a matrix until it is done or interrupted.

    `opened` is told the root address, `saw` is shown each record once it is stored. On an interrupt the trial that is going on
    is recorded as it stands. A trial that nobody asks for anything for `patience` seconds is given up; 0 waits for ever. What
    a client gives as its API key is `token`; "" asks for none. `say` is told of trouble at the model's endpoint. `permitted` is
    how it is graded, if not as `permission` says of itself. Raises what `run_matrix` raises, and EndpointError for a port that
    is taken.
    """
    graded = all(scenario.graded for scenario in matrix.scenarios.values())
    trial_server = TrialServer(graded, len(missing(matrix.specs, writer.ended)))
    app = application(trial_server.routes(), door := AccessGuard(token), trial_server.refused, trial_server.follow)
    unhurried = matrix.config.model_copy(update={"deadline_seconds": math.inf})  # a trial waits for its agent
    matrix = replace(matrix, config=unhurried).worked_by(trial_server.work)

    def watch(result: TrialResult) -> None:
        trial_server.saw(result.record)
        saw(result)
        if trial_server.closed:
            running.cancel()

    async with serving(app, door, port, LAST_WORDS) as trial_server.root:
        running = asyncio.create_task(_run(matrix, writer, watch, trial_server, Session(say=say, permitted=permitted)))
        watching = asyncio.create_task(trial_server.watch(patience)) if patience and graded else None
        if watching:
            watching.add_done_callback(lambda _: trial_server.deserted and running.cancel())
        with Stop(lambda: trial_server.close() or running.cancel()) as stop, suppress(asyncio.CancelledError):
            opened(trial_server.root)
            await running
        if watching:
            watching.cancel()
    return Served(
        trial_server.received, tuple(trial_server.refusals), (door.turned_away, door.why), stop.by, trial_server.deserted
    )


async def _run(
    matrix: Matrix, writer: RunWriter, watch: Callable[[TrialResult], None], trial_server: TrialServer, session: Session
) -> None:
    """Run the trials, and see to it that a client that asks for one more is told that all are done."""
    await run_matrix(matrix, writer, watch, session)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await trial_server.until_done_is_seen()


def _refuse_plans_out_of_reach(matrix: Matrix) -> None:
    for plan in matrix.plans.values():
        for fault in plan.faults:
            if fault.point not in POINTS:
                refusal = f"plan '{plan.name}': {fault.effect} strikes at '{fault.point}'"
                raise ConfigError(
                    f"{refusal}, which an outside system holds itself; serve a plan that strikes at output or call"
                )
