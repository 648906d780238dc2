"""The baseline: it finds no answer, because no rule without a model knows the agent's replies."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    """Return no answer."""
    return {}
