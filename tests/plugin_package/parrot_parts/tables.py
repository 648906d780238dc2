"""A table: how many replies each arm heard."""

from __future__ import annotations

from bench.read.render.labels import all_arms, arm_columns
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.results import Results
from bench.read.report.table_part import TablePart


def heard(of: Results) -> Table:
    columns = (*arm_columns(of.run), TableColumn("Replies", lambda arm: int(arm.trials["calls"].sum())))
    return table_of("heard", "What was heard", columns, all_arms(of.arms), ("counted by a parrot",))


PART = TablePart("heard", heard, "faults", concerns=("calls",))
