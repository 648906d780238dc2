"""Runs the trials that are still missing, so many at a time as their endpoints take, and appends each as it ends."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from bench.errors import BadAnswer, EndpointError, Unreachable
from bench.experiment.matrix import Matrix, TrialSpec
from bench.experiment.provenance import now
from bench.experiment.record import SessionRecord, TrialRecord
from bench.experiment.recording import answered_by
from bench.experiment.store import RunWriter
from bench.experiment.trial import Graders, TrialResult, run_trial
from bench.models.base import Model
from bench.models.once import AskedOnce
from bench.models.routed import answerers, answering
from bench.runtime.clock import meter_tasks

ENDPOINT_LOST_AFTER = 3
"""Trials in a row that an endpoint failed for good; then the run stops, since the rest would only fail as well."""


def missing(specs: Iterable[TrialSpec], recorded: Mapping[str, str]) -> list[TrialSpec]:
    """The trials that have no record yet, or only that of an error."""
    return [spec for spec in specs if recorded.get(spec.id, "error") == "error"]


async def run_matrix(matrix: Matrix, writer: RunWriter, watch: Callable[[TrialRecord], None]) -> None:
    """Run what is missing of a matrix; `watch` is shown each record once it is stored.

    A live model has as many workers as its concurrency; where no time is real, one is as quick. The calls to one endpoint are
    bounded together, whichever model passed them on to it. Raises EndpointError where a model cannot be used at all,
    ResultsError where a record cannot be written; whatever was recorded stays.
    """
    todo = missing(matrix.specs, writer.recorded)
    used = {name: model for name, model in matrix.models.items() if any(spec.model == name for spec in todo)}
    meter_tasks(asyncio.get_running_loop())
    writer.note(SessionRecord(now(), "began", f"{len(todo)} of {len(matrix.specs)} trials to run"))
    how = "stopped"
    try:
        for model in used.values():
            await model.prepare()
        _remember(used.values(), writer)
        await _run_all(todo, used, matrix, writer, watch)
        how = "complete"
    finally:
        writer.note(SessionRecord(now(), "ended", how))
        for model in used.values():
            await model.close()


def _remember(models: Iterable[Model], writer: RunWriter) -> None:
    """A run that goes on knows what was answered before."""
    for model in itertools.chain.from_iterable(map(answerers, models)):
        if writer.recorded and isinstance(model, AskedOnce):
            model.know(answered_by(model.name, writer.folder))


async def _run_all(
    todo: list[TrialSpec],
    models: Mapping[str, Model],
    matrix: Matrix,
    writer: RunWriter,
    watch: Callable[[TrialRecord], None],
) -> None:
    slots = _Slots(models.values())
    graders = Graders()
    try:
        async with asyncio.TaskGroup() as group:
            for name, model in models.items():
                queue = deque(spec for spec in todo if spec.model == name)
                health = _Health(model)

                async def work(queue: deque[TrialSpec], model: Model, health: _Health) -> None:
                    while queue:
                        spec = queue.popleft()
                        result = await run_trial(spec, matrix, lambda request: slots.of(answering(model, request)), graders)
                        writer.add(result.record, result.texts)
                        watch(result.record)
                        health.saw(result)

                for _ in range(model.concurrency if model.timing == "live" else 1):
                    group.create_task(work(queue, model, health))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


class _Slots:
    """One bound on the calls in flight for each endpoint. A recorded one's makes calls wait for each other as they did in the
    recorded run."""

    def __init__(self, models: Iterable[Model]):
        bounds: dict[str, int] = {}
        for model in itertools.chain.from_iterable(map(answerers, models)):
            bounds[model.endpoint] = max(model.concurrency, bounds.get(model.endpoint, 0))
        self._semaphores = {endpoint: asyncio.Semaphore(bound) for endpoint, bound in bounds.items()}

    def of(self, model: Model) -> asyncio.Semaphore:
        return self._semaphores[model.endpoint]


class _Health:
    """Notices that an endpoint is gone."""

    def __init__(self, model: Model):
        self._model = model
        self._lost = 0

    def saw(self, result: TrialResult) -> None:
        if not isinstance(result.failure, Unreachable | BadAnswer):
            self._lost = 0
            return
        self._lost += 1
        if self._lost >= ENDPOINT_LOST_AFTER:
            said = f"model '{self._model.name}' failed {self._lost} trials in a row: {result.failure.detail}"
            raise EndpointError(f"{said}; see to {self._model.endpoint} and run the same command again to go on")
