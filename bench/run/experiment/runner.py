"""Run the missing trials of a matrix, and store each record when its trial ends. As many trials run at the same time as their
endpoints allow. Commands without a live model run in as many trials at the same time as the session has workers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from bench.common.errors import BadAnswer, EndpointError, NoText, UnknownFinish, Unreachable, UsedUp
from bench.record.provenance import now
from bench.record.record import SessionRecord
from bench.record.store import RunWriter
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, TrialSpec, TrialSpecs
from bench.run.experiment.responses import ResponseWriter, own_responses
from bench.run.experiment.session import Session
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.experiment.trouble import gates_of, trouble_of, watch_endpoint
from bench.run.experiment.untrusted import permission
from bench.run.models.base import Model, Request
from bench.run.models.cached import CachedModel
from bench.run.models.routed import answerers, answering
from bench.run.trial.gate import Gate
from bench.run.trial.slots import Slots

LASTING_FAILURES = (Unreachable, BadAnswer, NoText, UnknownFinish)
MAX_FAILED_TRIALS = 3
"""After so many trials in a row with LASTING_FAILURES of an endpoint, the run stops: the other trials would fail as well."""


def missing_trials(specs: Sequence[TrialSpec], ended_places: Collection[str]) -> Sequence[TrialSpec]:
    """Return the trials whose places are not in `ended_places`."""
    return TrialSpecs(lambda: (spec for spec in specs if spec.place not in ended_places)) if ended_places else specs


async def run_matrix(
    matrix: Matrix,
    writer: RunWriter,
    watch: Callable[[TrialResult], None],
    session: Session | None = None,
) -> None:
    """Run the missing trials of a matrix. All that was recorded stays, whatever is raised.

    As many live trials run at the same time as their endpoint takes calls. On virtual time, one trial at a time is as quick,
    unless processes do the work. Models that share an endpoint take turns.

    Args:
        matrix: The trials, with their scenarios and models.
        writer: Stores the records. A trial that has a record is not missing.
        watch: Gets each result once its record is stored.
        session: The session, which can end before all trials have run; None makes one.

    Raises:
        EndpointError: A model cannot be used.
        ResultsError: A record cannot be written.
        Unguarded: The trials need code that has no permission to run.
    """
    todo, session = missing_trials(matrix.specs, writer.ended), session or Session()
    graders = (session.permitted or permission(matrix)).graders
    models = {name: model for name, model in matrix.models.items() if any(spec.model == name for spec in todo)}
    gates = gates_of(models.values(), matrix.back_off)
    writer.note(SessionRecord(now(), "began", f"{len(todo)} of {len(matrix.specs)} trials to run"))
    ending, mark = "stopped", None
    try:
        for model in models.values():
            await model.prepare()
        for model in itertools.chain.from_iterable(map(answerers, models.values())):
            if isinstance(model, CachedModel):  # a continued run gives its earlier replies again
                model.add_responses(own_responses(model, writer.folder))
        remaining = await run_all(todo, models, gates, matrix, writer, watch, session, graders)
        ending, mark = (f"stopped: {session.ending}", None) if remaining else ("complete", writer.mark)
        session.raise_error()
    finally:
        writer.note(SessionRecord(now(), "ended", ending, trouble_of(gates), mark))
        for model in models.values():
            await model.close()


async def run_all(
    todo: Sequence[TrialSpec],
    models: Mapping[str, Model],
    gates: Mapping[str, Gate],
    matrix: Matrix,
    writer: RunWriter,
    watch: Callable[[TrialResult], None],
    session: Session,
    graders: Mapping[str, Graders],
) -> int:
    """Run trials whose models are prepared, and store their records. The workers of an endpoint take trials from one queue.

    Args:
        todo: The trials to run.
        models: The models by name.
        gates: The limits on concurrent calls, by endpoint.
        matrix: The matrix that has the trials.
        writer: Stores the records.
        watch: Gets each result once its record is stored.
        session: The session, which a signal, a budget or an error can end before all trials have run.
        graders: The graders of the answers, by model.

    Returns:
        The number of trials that did not come to their end.

    Raises:
        EndpointError: A model cannot be used.
        ResultsError: A record cannot be written.
        Unguarded: The trials need code that has no permission to run.
    """
    monitors = {name: _EndpointMonitor(model, session) for name, model in models.items()}
    response_writers = {name: ResponseWriter(model, writer) for name, model in models.items()}
    remaining = len(todo)

    def gate_for(model: Model, worker_gates: Mapping[str, Gate]) -> Callable[[Request], Gate]:
        return lambda request: worker_gates[answering(model, request).endpoint]

    async def work(queue: Iterator[TrialSpec], worker_gates: Mapping[str, Gate]) -> None:
        """Run the trials of a queue one after the other, and record each."""
        nonlocal remaining
        while not session.why and (spec := next(queue, None)):
            slots = Slots(gate_for(models[spec.model], worker_gates))
            on_counted = session.response_watcher(spec.architecture)
            trial = run_trial(spec, matrix, slots, graders[spec.model], response_writers[spec.model], on_counted)
            result = await session.run_until_end(trial, slots)
            if result:
                writer.add(result.record, result.texts)
                remaining -= 1
                watch(result)
                monitors[spec.model].note_result(result)

    assignments = [
        (queue, worker_gates)
        for sharing in _models_by_endpoint(models)
        for queue in [iter([spec for spec in todo if spec.model in sharing])]
        for worker_gates in _gates_of_workers([models[name] for name in sharing], gates, matrix, session.workers)
    ]
    session.begin(gate for _, worker_gates in assignments for gate in worker_gates.values())
    try:
        async with asyncio.TaskGroup() as group:
            watchers = [
                group.create_task(watch_endpoint(*watched, matrix.back_off, session)) for watched in _live_gates(models, gates)
            ]
            workers = [group.create_task(work(queue, worker_gates)) for queue, worker_gates in assignments]
            await asyncio.gather(*workers)
            for task in watchers:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return remaining


def _live_gates(models: Mapping[str, Model], gates: Mapping[str, Gate]) -> Iterable[tuple[Gate, Model]]:
    """Return the gates of live endpoints, each with one of its models."""
    live = (answerer for model in models.values() for answerer in answerers(model) if answerer.timing == "live")
    return {model.endpoint: (gates[model.endpoint], model) for model in live}.values()


def _endpoints(model: Model) -> set[str]:
    """Return the endpoints of a model and of the models that it routes to."""
    return {part.endpoint for part in answerers(model)}


def _models_by_endpoint(models: Mapping[str, Model]) -> list[set[str]]:
    """Return the names of the models in sets. Models that share an endpoint, even through a third model, are in one set."""
    sets: list[set[str]] = []
    for name, model in models.items():
        overlapping = [names for names in sets if any(_endpoints(models[other]) & _endpoints(model) for other in names)]
        sets = [*(names for names in sets if names not in overlapping), {name}.union(*overlapping)]
    return sets


def _gates_of_workers(
    models: Sequence[Model], gates: Mapping[str, Gate], matrix: Matrix, workers: int
) -> Iterator[Mapping[str, Gate]]:
    """Yield the gates of each worker, which are by endpoint. A worker runs one trial at a time; all models share endpoints.

    For live models, there are as many workers as the smallest limit of the endpoints, so that no trial waits for another's
    calls. For other models there is one worker; for commands there are `workers`, each with gates of its own, since on virtual
    time no trial waits for another.
    """
    if any(model.timing == "live" for model in models):
        for _ in range(min(gates[endpoint].most for model in models for endpoint in _endpoints(model))):
            yield gates
        return
    yield gates
    for _ in range(workers - 1 if matrix.has_commands else 0):
        yield gates_of(models, matrix.back_off)


class _EndpointMonitor:
    """Ends the session when an endpoint fails for good."""

    def __init__(self, model: Model, session: Session):
        self._model, self._session = model, session
        self._failed_trials = 0

    def note_result(self, result: TrialResult) -> None:
        """Count a trial that failed at the endpoint, and end the session after too many such trials in a row."""
        failure = result.failure
        self._failed_trials = self._failed_trials + 1 if isinstance(failure, LASTING_FAILURES) else 0
        if failure and (self._failed_trials >= MAX_FAILED_TRIALS or isinstance(failure, UsedUp)):
            model, trials = self._model, self._failed_trials
            problem = f"model '{model.name}' at {model.endpoint} failed {trials} trials in a row: {failure.detail}"
            error = EndpointError(f"{problem}; {failure.advice or 'see to it'}; the same command goes on")
            self._session.end("the endpoint fails", error)
