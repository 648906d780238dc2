"""What a trial cost: the provider's token counts where it told them, our ruler's where it did not, times its prices."""

from __future__ import annotations

from bench.experiment.record import TrialRecord
from bench.runtime.events import Called


def cost_of(record: TrialRecord, price_in: float | None, price_out: float | None) -> float | None:
    """In the currency of the prices, which are per million tokens; None where a price is unknown: never 0 in its place."""
    if price_in is None or price_out is None:
        return None
    calls = [event for event in record.events if isinstance(event, Called)]
    tokens_in = sum(call.tokens_in if call.usage_in is None else call.usage_in for call in calls)
    tokens_out = sum(call.tokens_out if call.usage_out is None else call.usage_out for call in calls)
    return (tokens_in * price_in + tokens_out * price_out) / 1_000_000
