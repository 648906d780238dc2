"""What a trial cost: the provider's token counts where it told them, our tokenizer's where it did not, times its prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.experiment.record import TrialRecord
from bench.models.routed import RoutedSettings
from bench.runtime.events import Called, of_kind

Parameters = Mapping[str, Any]
"""`Model.parameters`, which a run's manifest keeps: prices, if there are any, are in dollars per million tokens."""


@dataclass(frozen=True)
class Tariff:
    """The parameters of an experiment's models, by name. A call is charged at the prices of the model that answered it."""

    models: Mapping[str, Parameters]

    def cost(self, record: TrialRecord) -> float | None:
        """In dollars; None where a price is unknown: never 0 in its place."""
        parameters = self.models.get(record.model, {})
        if not _is_routed(parameters) and prices_of(parameters) is None:
            return None
        total = 0.0
        for call in of_kind(record.events, Called):
            tokens_in = call.tokens_in if call.usage_in is None else call.usage_in
            tokens_out = call.tokens_out if call.usage_out is None else call.usage_out
            cost = priced(parameters_of(parameters, call.by, call.subtasks), tokens_in, tokens_out)
            if cost is None:
                return None
            total += cost
        return total


def priced(parameters: Parameters, tokens_in: int, tokens_out: int) -> float | None:
    """Dollars for so many tokens read and written; None where a price is unknown."""
    prices = prices_of(parameters)
    return None if prices is None else (tokens_in * prices[0] + tokens_out * prices[1]) / 1_000_000


def prices_of(parameters: Parameters) -> tuple[float, float] | None:
    """For a million tokens read, and written; None unless both are known."""
    price_in, price_out = parameters.get("price_in"), parameters.get("price_out")
    return None if price_in is None or price_out is None else (price_in, price_out)


def _is_routed(parameters: Parameters) -> bool:
    """A routed model has no prices of its own; a recording of one may have been given some."""
    return parameters.get("kind") == "routed" and prices_of(parameters) is None


def parameters_of(parameters: Parameters, by: str, subtasks: Sequence[str]) -> Parameters:
    """Those of the model that answered, or that would have, had a fault not kept the request from it."""
    if not _is_routed(parameters):
        return parameters
    routes = RoutedSettings(default=parameters["default"], subtasks=parameters["subtasks"])
    found: Parameters = parameters["models"].get(by or routes.target(subtasks), {})
    return found


def unpriced(name: str, parameters: Parameters) -> str:
    """The name of a model that may answer in this one's name, and has no prices; "" where all have."""
    if not _is_routed(parameters):
        return "" if prices_of(parameters) else name
    return next((target for target, own in parameters["models"].items() if not prices_of(own)), "")
