"""The registry entry for a source of published claims. It stands apart from `results`, which imports pandas, because the
entries are read at the start."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.registry import Part, Registry


@dataclass(frozen=True)
class ClaimsPart(Part):
    """Published claims. `path` is the module that judges them (`bench.read.report.results.Claims`), imported when asked for."""

    path: str = ""


CLAIMS = Registry("source of claims", ClaimsPart, plural="claims")
