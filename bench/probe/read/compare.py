"""Compares two probes cell by cell: whether the second shows damage that the first did not. Only cells that ran in both
count."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from bench.common.errors import ResultsError
from bench.probe.read.run import INCONCLUSIVE, ProbeRead
from bench.probe.read.sentences import verdict_label
from bench.read.render.table import Table
from bench.record.probe_events import DAMAGE, CellVerdict

ProbesVerdict = Literal["worse", "better", "trade-off", "no worse", "inconclusive"]


@dataclass(frozen=True)
class ComparedProbes:
    """The comparison of probe A with probe B.

    verdict   worse: a cell has damage in B but not in A, and no cell only in A; better: only the reverse; trade-off: both;
    inconclusive: none of these, and a cell with a verdict in A has none in B; else no worse
    cells     the cells that ran in both probes, each with its verdict in A and in B
    only_a, only_b   the number of cells that ran only in A, and only in B
    """

    verdict: ProbesVerdict
    cells: tuple[tuple[str, CellVerdict, CellVerdict], ...]
    only_a: int
    only_b: int

    @property
    def table(self) -> Table:
        """The cells that differ."""
        rows = tuple(
            (plan, verdict_label(first), verdict_label(second)) for plan, first, second in self.cells if first != second
        )
        return Table("cells", "Cells whose verdicts differ", ("Cell", "A", "B"), rows)

    @property
    def line(self) -> str:
        """The result of the comparison in one line."""
        damaged_in_b = sum(second in DAMAGE and first not in DAMAGE for _, first, second in self.cells)
        damaged_in_a = sum(first in DAMAGE and second not in DAMAGE for _, first, second in self.cells)
        unshared = f"; {self.only_a} cells are only in A and {self.only_b} only in B" if self.only_a or self.only_b else ""
        shared = f"of {len(self.cells)} cells that both have, {damaged_in_b} have damage only in B and {damaged_in_a} only in A"
        return f"{shared}{unshared}: {self.verdict}"

    @property
    def json(self) -> str:
        """The comparison as JSON."""
        cells = {plan: {"a": first, "b": second} for plan, first, second in self.cells}
        return json.dumps({"verdict": self.verdict, "only_a": self.only_a, "only_b": self.only_b, "cells": cells}, indent=2)


def compare_probes(first_probe: ProbeRead, second_probe: ProbeRead) -> ComparedProbes:
    """Return how the cells of a second probe differ from those of a first. Raises ResultsError if they share no cell."""
    shared = tuple(
        (plan, cell.verdict, second_probe.cells[plan].verdict)
        for plan, cell in first_probe.cells.items()
        if plan in second_probe.cells
    )
    if not shared:
        raise ResultsError(
            f"{first_probe.folder.name} and {second_probe.folder.name} share no cell; compare probes of the same calls"
        )
    only_b_damaged = any(second in DAMAGE and first not in DAMAGE for _, first, second in shared)
    only_a_damaged = any(first in DAMAGE and second not in DAMAGE | INCONCLUSIVE for _, first, second in shared)
    is_open = any(first not in INCONCLUSIVE and second in INCONCLUSIVE for _, first, second in shared)
    verdict: ProbesVerdict = "inconclusive" if is_open else "no worse"
    if only_b_damaged or only_a_damaged:
        verdict = "worse" if only_b_damaged else "better"
    if only_a_damaged and only_b_damaged:
        verdict = "trade-off"
    return ComparedProbes(verdict, shared, len(first_probe.cells) - len(shared), len(second_probe.cells) - len(shared))
