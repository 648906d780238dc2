"""Runs the trials that are still missing, so many at a time as their endpoints take, and appends each as it ends."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.errors import BadAnswer, EndpointError, Unreachable
from bench.experiment.grading import Graders
from bench.experiment.matrix import Matrix, TrialSpec
from bench.experiment.provenance import now
from bench.experiment.record import SessionRecord, TrialRecord
from bench.experiment.responses import ResponseKeeper, answers_of
from bench.experiment.store import RunWriter
from bench.experiment.trial import TrialResult, run_trial
from bench.experiment.untrusted import Permission, permission
from bench.models.base import Model
from bench.models.cached import CachedModel
from bench.models.routed import answerers, answering
from bench.runtime.call import Slot

ENDPOINT_LOST_AFTER = 3
"""Trials in a row that an endpoint failed for good; then the run stops, since the rest would only fail as well."""


def missing(specs: Iterable[TrialSpec], recorded: Mapping[str, str]) -> list[TrialSpec]:
    """The trials that have no record yet, or only that of an error."""
    return [spec for spec in specs if recorded.get(spec.id, "error") == "error"]


async def run_matrix(
    matrix: Matrix, writer: RunWriter, watch: Callable[[TrialRecord], None], permitted: Permission | None = None
) -> None:
    """Run what is missing of a matrix; `watch` is shown each record once it is stored. `permitted` is how it is graded, if not
    as `permission` says of itself.

    As many live trials run at a time as their endpoint takes calls; where no time is real, one is as quick. Models that share
    an endpoint take turns. Raises EndpointError where a model cannot be used at all, ResultsError where a record cannot be
    written, Unguarded where code would be run that is not to be; whatever was recorded stays.
    """
    graders = (permitted or permission(matrix)).graders
    todo = missing(matrix.specs, writer.recorded)
    used = {name: model for name, model in matrix.models.items() if any(spec.model == name for spec in todo)}
    writer.note(SessionRecord(now(), "began", f"{len(todo)} of {len(matrix.specs)} trials to run"))
    how = "stopped"
    try:
        for model in used.values():
            await model.prepare()
        _remember(used.values(), writer)
        await _run_all(todo, used, matrix, writer, watch, graders)
        how = "complete"
    finally:
        writer.note(SessionRecord(now(), "ended", how))
        for model in used.values():
            await model.close()


def _remember(models: Iterable[Model], writer: RunWriter) -> None:
    """A run that goes on knows what was answered before."""
    for model in itertools.chain.from_iterable(map(answerers, models)):
        if isinstance(model, CachedModel):
            model.know(answers_of(model, writer.folder))


async def _run_all(
    todo: list[TrialSpec],
    models: Mapping[str, Model],
    matrix: Matrix,
    writer: RunWriter,
    watch: Callable[[TrialRecord], None],
    graders: Mapping[str, Graders],
) -> None:
    bounds = _bounds(models.values())
    slots = {endpoint: asyncio.Semaphore(bound) for endpoint, bound in bounds.items()}
    health = {name: _Health(model) for name, model in models.items()}
    keepers = {name: ResponseKeeper(model, writer) for name, model in models.items()}

    def slot_at(model: Model) -> Slot:
        return lambda request: slots[answering(model, request).endpoint]

    async def work(queue: deque[TrialSpec]) -> None:
        while queue:
            spec = queue.popleft()
            result = await run_trial(spec, matrix, slot_at(models[spec.model]), graders[spec.model], keepers[spec.model])
            writer.add(result.record, result.texts)
            watch(result.record)
            health[spec.model].saw(result)

    try:
        async with asyncio.TaskGroup() as group:
            for sharing in _sharing(models):
                queue = deque(spec for spec in todo if spec.model in sharing)
                for _ in range(_at_a_time([models[name] for name in sharing], bounds)):
                    group.create_task(work(queue))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _bounds(models: Iterable[Model]) -> dict[str, int]:
    """Endpoint -> how many calls may be in flight there. A recorded one's makes calls wait for each other as they did in the
    recorded run."""
    bounds: dict[str, int] = {}
    for model in itertools.chain.from_iterable(map(answerers, models)):
        bounds[model.endpoint] = max(model.concurrency, bounds.get(model.endpoint, 0))
    return bounds


def _endpoints(model: Model) -> set[str]:
    return {one.endpoint for one in answerers(model)}


def _sharing(models: Mapping[str, Model]) -> list[set[str]]:
    """The models' names, those in one set that share an endpoint, if only by way of a third."""
    sets: list[set[str]] = []
    for name, model in models.items():
        met = [names for names in sets if any(_endpoints(models[other]) & _endpoints(model) for other in names)]
        sets = [*(names for names in sets if names not in met), {name}.union(*met)]
    return sets


def _at_a_time(models: Sequence[Model], bounds: Mapping[str, int]) -> int:
    """How many trials of models that share endpoints run together, so that none of them waits for another's calls: as many as
    the endpoint takes that takes the fewest."""
    if not any(model.timing == "live" for model in models):
        return 1
    return min(bounds[endpoint] for model in models for endpoint in _endpoints(model))


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
