"""The entry of a report's table: the function that makes it, and its section on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from bench.common.raised import type_and_message
from bench.common.registry import Part
from bench.read.analysis.results import Results
from bench.read.analysis.rows import FRAMES
from bench.read.render.limits import limit_notes, numbers_in
from bench.read.render.table import Table

LEADING_SECTION = "summary"
"""The section whose tables are on the first screen, above the sentences."""
SECTIONS = {
    LEADING_SECTION: "In short",
    "paper": "The paper's tables beside ours",
    "world": "What became of the world",
    "scorecard": "Killed and started again",
    "failure": "What one failure costs",
    "recovery": "Recovery to a right answer",
    "break_even": "Break-even",
    "verdicts": "Verdicts",
    "study": "The study",
    "comparison": "Every measure",
    "outcomes": "Outcomes",
    "refusals": "Calls that were refused or failed",
    "differences": "Paired differences between architectures",
    "cost": "What a solved task costs",
    "latency": "Latency",
    "ledger": "Where the tokens went",
    "faults": "Faults",
    "more": "More tables",
}
"""The sections of a report, in reading order, and their titles."""
OPEN_TABLES = {"paper": 2, "world": 2, "scorecard": 1, "failure": 1, "verdicts": 1, "study": 2}
"""Section -> how many of its tables a page shows open. All other tables are folded by section."""


@dataclass(frozen=True)
class TablePart(Part):
    """A table of a report, or several of one kind.

    make         a function that makes the part's tables: one, several, or none if there is nothing to say
    section      the tables' section (SECTIONS)
    concerns     names of the run's frames, `faults` for instance: no table is made if any of these frames has no rows
    says_limits  whether the limits of intervals are noted below each table
    """

    make: Callable[[Results], Table | Iterable[Table]]
    section: str = "more"
    concerns: tuple[str, ...] = field(default=(), kw_only=True)
    says_limits: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        self.refuse_unknown("section", [self.section], list(SECTIONS))
        self.refuse_unknown("concerns", self.concerns, ["trials", *FRAMES.names])

    def tables(self, results: Results) -> Iterator[Table]:
        """Yield the part's tables of a report. If a part of another package fails, yield a table that says why.

        Args:
            results: What the report is made from.

        Yields:
            Each table, with its section.

        Raises:
            Exception: A part of ours fails.
        """
        if not all(len(getattr(results.run, frame)) for frame in self.concerns):
            return
        try:
            result = self.make(results)
            tables = [result] if isinstance(result, Table) else list(result)
        except Exception as error:
            if not self.package:
                raise
            tables = [Table(self.name, f"{self.name}: not shown", ("Why",), ((f"{self.package}: {type_and_message(error)}",),))]
        for table in tables:
            limits = limit_notes(numbers_in(table)) if self.says_limits else ()
            yield replace(table, notes=(*table.notes, *limits), section=self.section)
