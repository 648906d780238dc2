"""No keyword rule writes a patch: the baseline has no answer."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    return {}
