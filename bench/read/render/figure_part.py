"""The entry of a report's figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.common.registry import Part
from bench.read.analysis.results import Results
from bench.read.render.drawing import Picture


@dataclass(frozen=True)
class FigurePart(Part):
    """A figure of a report, or several of one kind.

    draw    draws the figures; none if there is nothing to show
    leads   these figures come before the others; the first figure of a report stands beside its summary
    """

    draw: Callable[[Results], Iterable[Picture]]
    leads: bool = field(default=False, kw_only=True)
