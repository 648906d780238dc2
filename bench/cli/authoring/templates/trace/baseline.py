"""Rules without a model know nothing of what an agent said."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    return {}
