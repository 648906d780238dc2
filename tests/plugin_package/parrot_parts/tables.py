"""A table: how many replies each arm heard."""

from __future__ import annotations

from bench.render.labels import ARM, arm_cells, each_arm
from bench.render.table import Cell, Table
from bench.report.results import Results
from bench.report.table_part import TablePart


def heard(of: Results) -> Table:
    rows: list[tuple[Cell, ...]] = [(*arm_cells(of.run, arm), int(arm.trials["calls"].sum())) for arm in each_arm(of.arms)]
    return Table("heard", "What was heard", (*ARM, "Replies"), tuple(rows), ("counted by a parrot",))


PART = TablePart("heard", heard, "faults", concerns=("calls",))
