"""Compare two probes cell by cell: does the later probe show damage that the earlier did not? Only cells that both struck
count."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from bench.common.errors import ResultsError
from bench.probe.read.run import ProbeRead
from bench.probe.read.sentences import SIGNS
from bench.read.render.table import Table
from bench.record.probe_events import DAMAGE, CellVerdict

ProbesVerdict = Literal["worse", "better", "trade-off", "no worse", "inconclusive"]
WITHOUT = frozenset[CellVerdict](("no_verdict", "repeated", "not_applicable"))


@dataclass(frozen=True)
class ComparedProbes:
    """Two probes, compared with each other.

    verdict   worse: a cell of B has damage that A's lacks, and no cell the reverse; trade-off: both; better: only the reverse;
              inconclusive: none of these, and a cell that A judged has no verdict in B; else no worse
    cells     the cells that both have, each with its verdict in A and in B
    """

    verdict: ProbesVerdict
    cells: tuple[tuple[str, CellVerdict, CellVerdict], ...]
    only_a: int
    only_b: int

    @property
    def table(self) -> Table:
        """The cells that differ."""
        rows = tuple(
            (plan, " ".join(SIGNS[first]), " ".join(SIGNS[second])) for plan, first, second in self.cells if first != second
        )
        return Table("cells", "Cells whose verdicts differ", ("Cell", "A", "B"), rows)

    @property
    def line(self) -> str:
        """The result of the comparison in one line."""
        gone, new = (
            sum((first in DAMAGE, second in DAMAGE) == pair for _, first, second in self.cells)
            for pair in ((True, False), (False, True))
        )
        alone = f"; {self.only_a} cells are only in A and {self.only_b} only in B" if self.only_a or self.only_b else ""
        both = f"of {len(self.cells)} cells that both have, {new} have damage only in B and {gone} only in A"
        return f"{both}{alone}: {self.verdict}"

    @property
    def json(self) -> str:
        cells = {plan: {"a": first, "b": second} for plan, first, second in self.cells}
        return json.dumps({"verdict": self.verdict, "only_a": self.only_a, "only_b": self.only_b, "cells": cells}, indent=2)


def compare_probes(a: ProbeRead, b: ProbeRead) -> ComparedProbes:
    """Return how the cells of probe B differ from the cells of probe A. Raises ResultsError if the probes share no cell."""
    shared = tuple((plan, cell.verdict, b.cells[plan].verdict) for plan, cell in a.cells.items() if plan in b.cells)
    if not shared:
        raise ResultsError(f"{a.folder.name} and {b.folder.name} share no cell; compare probes of the same calls")
    new = any(second in DAMAGE and first not in DAMAGE for _, first, second in shared)
    gone = any(first in DAMAGE and second not in DAMAGE | WITHOUT for _, first, second in shared)
    open_ = any(first not in WITHOUT and second in WITHOUT for _, first, second in shared)
    verdict: ProbesVerdict = "trade-off" if new and gone else "inconclusive" if open_ else "no worse"
    if new != gone:
        verdict = "worse" if new else "better"
    return ComparedProbes(verdict, shared, len(a.cells) - len(shared), len(b.cells) - len(shared))
