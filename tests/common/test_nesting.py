"""A value that is nested too deeply for one reader is so for all."""

from __future__ import annotations

import pytest

from bench.common.nesting import MOST_LEVELS, is_too_deep
from bench.scenario import Json


def nested(levels: int, wrap: str) -> Json:
    value: Json = 1
    for level in range(levels):
        value = {"a": value} if wrap == "objects" or (wrap == "both" and level % 2) else [value]
    return value


@pytest.mark.parametrize("wrap", ["lists", "objects", "both"])
def test_a_value_may_have_so_many_levels_and_no_more(wrap: str) -> None:
    assert not is_too_deep(nested(MOST_LEVELS, wrap))
    assert is_too_deep(nested(MOST_LEVELS + 1, wrap)) and is_too_deep([1, nested(MOST_LEVELS, wrap)])
    assert is_too_deep(nested(100_000, wrap))


def test_a_wide_value_is_not_deep() -> None:
    assert not is_too_deep([[{"a": []}] * 1000] * 100) and not is_too_deep("[" * 1000) and not is_too_deep(None)
