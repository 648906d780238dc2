"""A table: how many replies each arm heard."""

from __future__ import annotations

from bench.read.analysis.results import Results
from bench.read.render.labels import arm_columns, each_arm
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart


def heard(of: Results) -> Table:
    columns = (*arm_columns(of.run), TableColumn("Replies", lambda arm: int(arm.trials["calls"].sum())))
    return table_of("heard", "What was heard", columns, each_arm(of.arms), ("counted by a parrot",))


PART = TablePart("heard", heard, "faults", concerns=("calls",))
