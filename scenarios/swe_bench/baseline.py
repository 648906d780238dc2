"""The baseline has no answer: no keyword rule can write a patch."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    return {}
