"""The cost of a trial in dollars: token counts times the provider's prices. The counts are the provider's if it sent them, else
our tokenizer's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bench.record.events import Called, of_kind
from bench.record.model_parameters import ModelParameters
from bench.record.record import TrialRecord


class Parametrised(Protocol):
    """An object with a model's parameters."""

    @property
    def parameters(self) -> Mapping[str, object]: ...


@dataclass(frozen=True)
class Tariff:
    """The parameters of an experiment's models, by name. A call is charged at the prices of the model that answered it."""

    models: Mapping[str, ModelParameters]

    @classmethod
    def of(cls, models: Mapping[str, Parametrised]) -> Tariff:
        """Return the tariff of running models."""
        return cls({name: ModelParameters.of(model.parameters) for name, model in models.items()})

    def cost(self, record: TrialRecord) -> float | None:
        """Return the cost of a trial in dollars; None, never 0, if a price is unknown."""
        parameters = self.models.get(record.model)
        if parameters is None or not (parameters.is_routed or parameters.prices):
            return None
        total = 0.0
        for call in of_kind(record.events, Called):
            tokens_in = call.tokens_in if call.usage_in is None else call.usage_in
            tokens_out = call.tokens_out if call.usage_out is None else call.usage_out
            answered = parameters.answering(call.by, call.subtasks)
            cost = answered.cost(tokens_in, tokens_out, call.usage_cached) if answered else None
            if cost is None:
                return None
            total += cost
        return total
