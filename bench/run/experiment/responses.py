"""Store the responses of a run as they arrive, and look them up when the run continues."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.common.digests import Texts
from bench.record.record import ResponseRecord
from bench.record.store import RunWriter
from bench.run.experiment.recording import record_of, responses_of, same_account, settings_digest
from bench.run.models.base import Model, Response
from bench.run.models.cached import CachedModel
from bench.run.models.routed import answerers


class ResponseWriter:
    """Writes each response of one model to the run as soon as it arrives."""

    def __init__(self, model: Model, writer: RunWriter):
        self._model, self._writer = model, writer
        self._answerer = cache(self._answerer_of)

    def __call__(self, response: Response) -> None:
        texts = Texts()
        settings, account = self._answerer(response.outcome.by)
        record = record_of(response, settings, texts, account)
        self._writer.respond(record, texts)

    def _answerer_of(self, by: str) -> tuple[str, str]:
        """Return the settings digest and the account of the model named `by`, to which this model routed the request; of this
        model itself if there is no model of that name."""
        model = {model.name: model for model in answerers(self._model)}.get(by, self._model)
        return settings_digest(model.parameters), model.account if isinstance(model, CachedModel) else ""


def own_responses(model: CachedModel, folder: Path) -> Iterator[Response]:
    """Return an iterator over the responses that this model, with its present settings and account, gave so far in the run in
    `folder`. Responses of other models with the same settings are left out."""
    settings = settings_digest(model.parameters)

    def is_wanted(record: ResponseRecord) -> bool:
        is_its_own = record.settings == settings and (record.by or record.model) == model.name
        return is_its_own and same_account(record.account, model.account)

    return responses_of(folder, is_wanted)
