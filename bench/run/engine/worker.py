"""A worker of an engine. It rebuilds the experiment from what it was sent, and runs trials as a single process does.

What travels is the config, the digests of all that determines a trial, and the specs of trials. The worker resolves packs, code
and packages where it runs, and refuses to run anything where they differ.
"""

from __future__ import annotations

import gc
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.common.errors import ConfigError, PackError, ResultsError
from bench.record.store import RunLines
from bench.run.engine.relay import Line, RemoteModel, RemoteSlots
from bench.run.experiment.budget import Budget, Spending
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.run.experiment.provenance import package_versions
from bench.run.experiment.runner import run_all
from bench.run.experiment.session import Session
from bench.run.experiment.so_far import SoFar
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.experiment.trouble import gates_of
from bench.run.experiment.untrusted import Permission, permission
from bench.run.trial import loop

SAME = "install there what is installed here, then run the same command again"


@dataclass(frozen=True)
class Experiment:
    """The description of an experiment that is sent to a worker.

    packs       the folders of packs, as the worker is to find them
    unguarded   whether models' code is run though a guard of the sandbox is missing
    digests     of all that determines a trial, by a name for people
    """

    config: Config
    packs: tuple[Path, ...]
    unguarded: bool
    digests: Mapping[str, str]

    @classmethod
    def of(cls, matrix: Matrix, packs: Sequence[Path], *, unguarded: bool) -> Experiment:
        return cls(matrix.config, tuple(path.resolve() for path in packs), unguarded, digests_of(matrix))


@dataclass(frozen=True)
class FinishedTrials:
    """Trials that have ended.

    lines     what the run's writer appends
    so_far    the sums over these trials
    tokens    the tokens that they spent; 0 if the run has no budget
    cost      the dollars that they spent; 0 if the run's budget has no dollars
    notices   lines to print where the run was begun
    seconds   how long they took
    """

    lines: RunLines
    so_far: SoFar
    tokens: int
    cost: float
    notices: Sequence[str]
    seconds: float


def digests_of(matrix: Matrix) -> dict[str, str]:
    """Return the digests of everything that determines the trials, as this process computes them."""
    digests = {"the code of bench": our_codebase().digest}
    digests |= {f"the pack '{key}'": f"{scenario.asked} {scenario.graded_by}" for key, scenario in matrix.scenarios.items()}
    digests |= {f"the architecture '{name}'": architecture.digest for name, architecture in matrix.architectures.items()}
    digests |= {f"the effect '{name}' at {point}": digest for (name, point), digest in matrix.effects.items()}
    digests |= {f"the model '{name}'": f"{model.parameters} {matrix.kinds[name]}" for name, model in matrix.models.items()}
    return digests | {f"the package '{name}'": version for name, version in {**package_versions(), **matrix.versions}.items()}


def run_trials(travelled: bytes, specs: Sequence[TrialSpec], budget: Budget | None = None) -> FinishedTrials:
    """Run trials whose models are not live, as one process does.

    Args:
        travelled: The experiment, pickled.
        specs: The trials.
        budget: The run's budget. The worker counts what it names, and the run's process enforces it. None: nothing is counted.

    Raises:
        ResultsError: This worker lacks packs, code or packages of the run, or has other versions.
    """
    (matrix, permitted), began = _resolved(travelled), perf_counter()
    lines, so_far, notices = RunLines(), SoFar(matrix), list[str]()
    unbounded = Budget(cost=None if budget is None or budget.cost is None else math.inf)
    spending = Spending(unbounded, matrix.models)
    session = Session(spending if budget else None, notices.append)
    gates = gates_of(matrix.models.values(), matrix.back_off)
    loop.run(run_all(specs, matrix.models, gates, matrix, lines, so_far.add, session, permitted.graders))
    session.raise_error()
    return FinishedTrials(lines, so_far, spending.tokens, spending.cost, notices, perf_counter() - began)


def run_live(travelled: bytes, spec: TrialSpec, relay: Any) -> TrialResult:
    """Run a trial of a live model. The process that began the run asks the model.

    Args:
        travelled: The experiment, pickled.
        spec: The trial.
        relay: The actor `bench.run.engine.relay.Relay`.

    Raises:
        ResultsError: As `run_trials` does.
    """
    (matrix, permitted), line = _resolved(travelled), Line(relay, spec.id)
    asked = replace(matrix, models={**matrix.models, spec.model: RemoteModel(matrix.models[spec.model], line)})
    return loop.run(run_trial(spec, asked, RemoteSlots(line), permitted.graders[spec.model]))


@lru_cache(maxsize=1)
def _resolved(travelled: bytes) -> tuple[Matrix, Permission]:
    """Return the experiment as this worker makes it, once. The collector passes over all that is loaded by then."""
    experiment: Experiment = pickle.loads(travelled)
    try:
        matrix = build_matrix(experiment.config, experiment.packs, our_codebase().digest)
    except (ConfigError, PackError) as error:
        raise ResultsError(f"a worker cannot make the experiment: {error}; {SAME}") from error
    here = digests_of(matrix)
    for name, digest in experiment.digests.items():
        if here.get(name) != digest:
            lacks = "has another version of" if name in here else "lacks"
            raise ResultsError(f"a worker {lacks} {name}; {SAME}")
    resolved = matrix, permission(matrix, experiment.unguarded)
    gc.freeze()
    return resolved
