"""The parameters of a model in a manifest: its settings, its prices, and where its replies came from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from bench.common.bounds import BoundedTable, Many
from bench.common.numbers import Count, Price
from bench.record.entry import ManifestPart
from bench.record.formats import DEFAULT


class EarlierRun(ManifestPart):
    """A run whose replies another run reused."""

    name: str
    digest: str


class RecordingUsed(EarlierRun):
    """The run in which a model's replies were recorded."""

    started: str = ""
    trials: Count = 0
    concurrency: Count | None = None
    """How many calls at a time the replay was declared to take; None if it took as many as its recording."""


class ModelParameters(ManifestPart):
    """The parameters of a model of any kind: the fields that are used or shown, in the order in which they are shown, and the
    model's other fields."""

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: Count | None = None
    top_p: float | None = None
    response_format: str | None = None
    timeout_seconds: float | None = None
    price_in: Price | None = None
    """Dollars per million tokens read."""
    price_out: Price | None = None
    """Dollars per million tokens written."""
    price_cached: Price | None = None
    """Dollars per million of those tokens read that the provider's prompt cache held."""
    weights: str | None = None
    cache: bool = False
    extra_body: BoundedTable[str, Any] | None = None
    kind: str = ""
    default: str = ""
    """Of a routed model: the model for requests that no subtask routes elsewhere."""
    subtasks: BoundedTable[str, str] = Field(default_factory=dict)
    """Of a routed model: subtask -> model."""
    after_crash: str = ""
    """Of a routed model: the model for requests after the agent's process has died."""
    models: BoundedTable[str, ModelParameters] = Field(default_factory=dict)
    """Of a routed model: the models to which it passes requests on."""
    cache_from: Many[EarlierRun] = ()
    recording: RecordingUsed | None = None
    answer_format: str = DEFAULT
    draft_tags: Many[tuple[str, str]] = ()

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> ModelParameters:
        """Return the parameters of a running model."""
        return cls.model_validate_json(json.dumps(parameters, default=str))

    @model_serializer(mode="wrap")
    def _leave_out_unset(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out settings that a model does not have, instead of writing their defaults."""
        unset = type(self).model_fields.keys() - self.model_fields_set
        return {name: value for name, value in whole(self).items() if name not in unset}

    @property
    def is_simulated(self) -> bool:
        """Whether the model is simulated, or routes requests to a simulated model."""
        return self.kind == "simulated" or any(model.is_simulated for model in self.models.values())

    @property
    def prices(self) -> tuple[float, float] | None:
        """Dollars per million tokens read, and written; None unless both are known."""
        return None if self.price_in is None or self.price_out is None else (self.price_in, self.price_out)

    @property
    def is_routed(self) -> bool:
        """Whether the model routes requests and has no prices. A recording of a routed model can have prices."""
        return self.kind == "routed" and self.prices is None

    def answering(self, by: str, subtasks: Sequence[str]) -> ModelParameters | None:
        """Return the parameters of the model that answered, or would have answered without a fault; None if that model is not
        known. `by` is the model that the call names; "" if it names none."""
        if not self.is_routed:
            return self
        return self.models.get(by or target_of(self.default, self.subtasks, subtasks))

    def cost(self, tokens_in: int, tokens_out: int, cached: int | None = None) -> float | None:
        """Return the cost of these tokens in dollars; None if a price is unknown. `cached` of the tokens read can have another
        price."""
        if self.prices is None:
            return None
        less = 0.0 if self.price_cached is None else min(cached or 0, tokens_in) * (self.prices[0] - self.price_cached)
        return (tokens_in * self.prices[0] + tokens_out * self.prices[1] - less) / 1_000_000

    def model_without_price(self, name: str) -> str:
        """Return the name of a model without prices that can answer for this model; "" if all have prices."""
        if not self.is_routed:
            return "" if self.prices else name
        return next((target for target, target_model in self.models.items() if not target_model.prices), "")


def target_of(default: str, routes: Mapping[str, str], subtasks: Sequence[str]) -> str:
    """Return the model for a request for these subtasks. `routes` maps a subtask to its model. If the subtasks have different
    models, the default answers."""
    named = {routes.get(name, default) for name in subtasks}
    return named.pop() if len(named) == 1 else default
