"""What a call costs, at the prices of its model."""

from __future__ import annotations

import pytest

from bench.record.model_parameters import ModelParameters


@pytest.mark.parametrize(
    ("prices", "cached", "dollars"),
    [
        ({"price_in": 10.0, "price_out": 100.0}, 600, 0.02),
        ({"price_in": 10.0, "price_out": 100.0, "price_cached": 1.0}, 600, 0.0146),
        ({"price_in": 10.0, "price_out": 100.0, "price_cached": 0.0}, 600, 0.014),
        ({"price_in": 10.0, "price_out": 100.0, "price_cached": 1.0}, None, 0.02),
        ({"price_in": 10.0, "price_out": 100.0, "price_cached": 1.0}, 5_000, 0.011),
        ({"price_in": 10.0, "price_cached": 1.0}, 600, None),
    ],
)
def test_tokens_of_the_prompt_cache_have_their_own_price_and_are_counted_once(
    prices: dict[str, float], cached: int | None, dollars: float | None
) -> None:
    cost = ModelParameters.model_validate(prices).cost(1_000, 100, cached)
    assert cost == (None if dollars is None else pytest.approx(dollars))
