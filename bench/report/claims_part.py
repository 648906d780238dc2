"""The kind of part that a source of published claims is. What a report is made of imports pandas, and the command asks each
wing for its entries at its start: so this stands apart."""

from __future__ import annotations

from dataclasses import dataclass

from bench.registry import Part, Registry


@dataclass(frozen=True)
class ClaimsPart(Part):
    """Published claims. `path` is the module that judges them (`bench.report.results.Claims`), imported when asked for."""

    path: str = ""


CLAIMS = Registry("source of claims", ClaimsPart, plural="claims")
