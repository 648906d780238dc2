"""The entry of a report's table: what makes it, and where on the page it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.analysis.rows import FRAMES
from bench.registry import Part
from bench.render.table import Table
from bench.report.results import Results

SECTIONS = {
    "paper": "The paper's tables beside ours",
    "world": "What became of the world",
    "failure": "What one failure costs",
    "recovery": "Recovery to a right answer",
    "break_even": "Break-even",
    "verdicts": "Verdicts",
    "study": "The study",
    "comparison": "Every measure",
    "outcomes": "Outcomes",
    "refusals": "Calls that were refused or failed",
    "models": "Models compared",
    "differences": "Paired differences between architectures",
    "cost": "What a solved task costs",
    "latency": "Latency",
    "ledger": "Where the tokens went",
    "faults": "Faults",
    "tokenizer": "The tokenizer",
    "instances": "Instance by instance",
    "more": "More tables",
}
"""The sections of a report, in reading order, and their titles."""
FOLDED = ("instances", "refusals")
"""The sections whose tables are long: they open when they are asked for."""


@dataclass(frozen=True)
class TablePart(Part):
    """One table of a report, or several of one kind.

    make         makes them: one, several, or none where there is nothing to say
    section      where they stand (SECTIONS)
    concerns     the frames of a run without rows in which there is none: `faults`, say, or `tool_calls`
    says_limits  below each stands what its intervals do not hold
    """

    make: Callable[[Results], Table | Iterable[Table]]
    section: str = "more"
    concerns: tuple[str, ...] = field(default=(), kw_only=True)
    says_limits: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        self.refuse_unknown("section", [self.section], list(SECTIONS))
        self.refuse_unknown("concerns", self.concerns, ["trials", *FRAMES.names])
