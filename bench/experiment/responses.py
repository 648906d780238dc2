"""The responses of a run: kept as they arrive, and found again when the run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.digests import Texts
from bench.experiment.record import ResponseRecord
from bench.experiment.recording import record_of, responses_of, settings_digest
from bench.experiment.store import RunLines, RunWriter
from bench.models.base import Model, Response
from bench.models.cached import CachedModel
from bench.models.routed import answerers


class ResponseKeeper:
    """Writes what one model does on its requests, before anything else is made of it."""

    def __init__(self, model: Model, writer: RunWriter | RunLines):
        self._model, self._writer = model, writer
        self._settings = cache(self._settings_of)

    def __call__(self, response: Response) -> None:
        texts = Texts()
        record = record_of(response, self._settings(response.outcome.by), texts)
        self._writer.respond(record, texts)

    def _settings_of(self, by: str) -> str:
        """Return the parameters of the model that answered: another one, where this one had passed the request on."""
        named = {model.name: model for model in answerers(self._model)}
        return settings_digest(named.get(by, self._model).parameters)


def answers_of(model: CachedModel, folder: Path) -> Iterator[Response]:
    """What this model answered so far in the run in `folder`, and no other one of the same settings."""
    settings = settings_digest(model.parameters)

    def wanted(record: ResponseRecord) -> bool:
        return record.settings == settings and (record.by or record.model) == model.name

    return responses_of(folder, wanted)
