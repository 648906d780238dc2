"""The budget of one `bench run`: tokens, dollars, minutes. Only replies to requests of this invocation count: earlier replies
of a run are not paid again, and a reply from a cache costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.common.errors import CallFailed, ConfigError
from bench.common.tokens import count_tokens
from bench.record.model_parameters import ModelParameters
from bench.run.models.base import Model, Response
from bench.run.models.counting import tokens_read, tokens_written


@dataclass(frozen=True)
class Budget:
    """The limits of one invocation; None means no limit. `tokens` are counted by our tokenizer. `cost` is in dollars, by the
    provider's token count if the provider sent one."""

    tokens: int | None = None
    cost: float | None = None
    minutes: float | None = None


class Spending:
    """The tokens and dollars spent of a budget. Raises ConfigError if the cost is limited and a model's prices are unknown."""

    def __init__(self, budget: Budget, models: Mapping[str, Model]):
        self.budget = budget
        self._parameters = {name: ModelParameters.of(model.parameters) for name, model in models.items()}
        self.tokens, self.cost = 0, 0.0
        unpriced = next(filter(None, (entry.model_without_price(name) for name, entry in self._parameters.items())), "")
        if budget.cost is not None and unpriced:
            problem = f"--max-cost: model '{unpriced}' has no price_in and price_out, so what it costs is unknown"
            raise ConfigError(f"{problem}; give both in its table, or bound the run by --max-tokens")

    def add(self, response: Response) -> None:
        """Add the tokens and the cost of a response. A response that was paid before, or is never paid, adds nothing."""
        tokens = _tokens_of(response)
        self.tokens += sum(tokens)
        if self.budget.cost is not None:
            subtasks = response.request.context.subtasks
            parameters = self._parameters[response.model].answering(response.outcome.by, subtasks)
            cost = parameters.cost(*_billed_tokens(response, tokens)) if parameters else None
            self.cost += cost or 0.0

    @property
    def limit_reached(self) -> str:
        """The limit on tokens or cost that was reached, in words; "" if none was. The session checks the minutes."""
        budget = self.budget
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"--max-tokens {budget.tokens:,} is reached"
        if budget.cost is not None and self.cost >= budget.cost:
            return f"--max-cost {budget.cost:g} is reached"
        return ""

    @property
    def summary(self) -> str:
        """The tokens and dollars that were spent, in words."""
        money = "" if self.budget.cost is None else f", {self.cost:.4g} $"
        return f"{self.tokens:,} tokens{money} in this invocation"


def _tokens_of(response: Response) -> tuple[int, int]:
    """Return the numbers of tokens read and written, by our tokenizer; 0 for a reused reply and for a failure that is not
    paid."""
    outcome = response.outcome
    if isinstance(outcome, CallFailed):
        if not outcome.paid:
            return 0, 0
        written = count_tokens(outcome.partial)
    elif outcome.reused:
        return 0, 0
    else:
        written = tokens_written(outcome)
    return tokens_read(response.request), written


def _billed_tokens(response: Response, tokens: tuple[int, int]) -> tuple[int, int, int | None]:
    """Return the numbers of tokens read, written, and read from the prompt cache (None if unknown): by the provider's count, or
    by our tokenizer if the provider sent no count."""
    outcome = response.outcome
    if isinstance(outcome, CallFailed):
        return *(outcome.counted or tokens), None
    usage = outcome.usage
    return (usage.tokens_in, usage.tokens_out, usage.cached) if usage and any(tokens) else (*tokens, None)
