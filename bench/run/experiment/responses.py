"""The responses of a run: kept as they arrive, and looked up when the run continues."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.common.digests import Texts
from bench.record.record import ResponseRecord
from bench.record.store import RunLines, RunWriter
from bench.run.experiment.recording import record_of, responses_of, settings_digest
from bench.run.models.base import Model, Response
from bench.run.models.cached import CachedModel
from bench.run.models.routed import answerers


class ResponseKeeper:
    """Writes one model's responses as soon as they come."""

    def __init__(self, model: Model, writer: RunWriter | RunLines):
        self._model, self._writer = model, writer
        self._settings = cache(self._settings_of)

    def __call__(self, response: Response) -> None:
        texts = Texts()
        record = record_of(response, self._settings(response.outcome.by), texts)
        self._writer.respond(record, texts)

    def _settings_of(self, by: str) -> str:
        """Return the digest of the answering model's settings: another model's, if this one passed the request on."""
        named = {model.name: model for model in answerers(self._model)}
        return settings_digest(named.get(by, self._model).parameters)


def answers_of(model: CachedModel, folder: Path) -> Iterator[Response]:
    """Yield this model's responses so far in the run in `folder`, and no other model's with the same settings."""
    settings = settings_digest(model.parameters)

    def wanted(record: ResponseRecord) -> bool:
        return record.settings == settings and (record.by or record.model) == model.name

    return responses_of(folder, wanted)
