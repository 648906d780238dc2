"""A worker of an engine: it makes the experiment again from what travelled, and runs trials of it one by one.

What travels is the config, the digests of all that determines a trial, and the specs of trials. The worker resolves packs, code
and packages where it runs, and refuses to run anything where they differ.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.digests import Texts
from bench.engine.relay import Line, RemoteModel, RemoteSlots
from bench.errors import ConfigError, PackError, ResultsError
from bench.experiment.code import our_codebase
from bench.experiment.config import Config
from bench.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.experiment.provenance import package_versions
from bench.experiment.record import ResponseRecord, TrialRecord
from bench.experiment.recording import record_of, settings_digest
from bench.experiment.trial import TrialResult, run_trial
from bench.experiment.trouble import gates_of
from bench.experiment.untrusted import Permission, permission
from bench.models.base import Response
from bench.models.routed import answerers, answering
from bench.runtime import loop
from bench.runtime.slots import Slots

SAME = "install there what is installed here, then run the same command again"


@dataclass(frozen=True)
class Experiment:
    """What travels to a worker.

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
class Finished:
    """A trial that came to its end: its record, the responses in the order in which they came, and all texts of both."""

    record: TrialRecord
    responses: tuple[ResponseRecord, ...]
    texts: Mapping[str, str]


def digests_of(matrix: Matrix) -> dict[str, str]:
    """What an experiment's trials are determined by where this process runs."""
    digests = {"the code of bench": our_codebase().digest}
    digests |= {f"the pack '{key}'": f"{scenario.asked} {scenario.graded_by}" for key, scenario in matrix.scenarios.items()}
    digests |= {f"the architecture '{name}'": architecture.digest for name, architecture in matrix.architectures.items()}
    digests |= {f"the effect '{name}' at {point}": digest for (name, point), digest in matrix.effects.items()}
    digests |= {f"the model '{name}'": f"{model.parameters} {matrix.kinds[name]}" for name, model in matrix.models.items()}
    return digests | {f"the package '{name}'": version for name, version in package_versions().items()}


def run_trials(travelled: bytes, specs: Sequence[TrialSpec]) -> list[Finished]:
    """Run these trials, whose models are not live, one after another, each on an event loop of its own.

    Args:
        travelled: The experiment, pickled.
        specs: The trials.

    Raises:
        ResultsError: Packs, code or packages are not here, or are others than where the run was begun.
    """
    resolved = _resolved(travelled)
    return [_run(spec, *resolved) for spec in specs]


def run_live(travelled: bytes, spec: TrialSpec, relay: Any) -> TrialResult:
    """Run a trial whose model is live, and is asked where the run was begun.

    Args:
        travelled: The experiment, pickled.
        spec: The trial.
        relay: The actor `bench.engine.relay.Relay`.

    Raises:
        ResultsError: As `run_trials` does.
    """
    (matrix, permitted), line = _resolved(travelled), Line(relay, spec.id)
    asked = replace(matrix, models={**matrix.models, spec.model: RemoteModel(matrix.models[spec.model], line)})
    return loop.run(run_trial(spec, asked, RemoteSlots(line), permitted.graders[spec.model]))


def _run(spec: TrialSpec, matrix: Matrix, permitted: Permission) -> Finished:
    model = matrix.models[spec.model]
    settings = {each.name: settings_digest(each.parameters) for each in (*answerers(model), model)}
    gates, texts, responses = gates_of([model], matrix.back_off), Texts(), list[ResponseRecord]()

    def keep(response: Response) -> None:
        answered = settings.get(response.outcome.by, settings[model.name])
        responses.append(record_of(response, answered, texts))

    slots = Slots(lambda request: gates[answering(model, request).endpoint])
    result = loop.run(run_trial(spec, matrix, slots, permitted.graders[spec.model], keep))
    return Finished(result.record, tuple(responses), {**texts, **result.texts})


@lru_cache(maxsize=1)
def _resolved(travelled: bytes) -> tuple[Matrix, Permission]:
    """The experiment as it is here, once for each worker."""
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
    return matrix, permission(matrix, experiment.unguarded)
