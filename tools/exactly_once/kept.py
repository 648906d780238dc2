"""The numbers of the page, read back from its CSVs: the page is made of them alone."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.read.analysis.statistics import Share, exact_share
from bench.read.claims.published import Published
from bench.read.claims.table import VERDICT_COLUMNS, name_of, notes_on, tally, title_of
from bench.read.claims.verdicts import VERDICTS
from bench.read.render.cells import AdjustedP, Cell, Number, Rate
from bench.read.render.limits import noted
from bench.read.render.table import Table
from studies.exactly_once.study import KINDS, CrashedArm

Row = Mapping[str, str]
INSTANCES = "Instances"
TITLES = tuple(column.title for column in VERDICT_COLUMNS)
COLUMNS = (*TITLES, INSTANCES)


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def crashed(folder: Path) -> list[CrashedArm]:
    return [
        CrashedArm(
            scenario=row["Scenario"],
            model=row["Model"],
            architecture=row["Architecture"],
            point=row["Dies"],
            shares={kind: _exact(row, kind.capitalize()) for kind in KINDS},
            effects={kind: int(row[f"{kind.capitalize()} effects"]) for kind in KINDS},
            left_out=int(row["Left out"]),
            instances=int(row["Instances"]),
        )
        for row in rows_of(folder, "study-exactly-once")
    ]


def _exact(row: Row, name: str) -> Share:
    share = exact_share(int(row[f"{name} k"]), int(row[f"{name} n"]))
    return replace(share, low=float(row[f"{name} low"]), high=float(row[f"{name} high"]), instances=int(row["Instances"]))


def claims(folder: Path, published: Published) -> Table:
    """The verdicts on a source's claims, all of them shares. Raises ValueError where one was not measured: of that the rows do
    not tell why."""
    rows = rows_of(folder, name_of(published))
    if len(rows) != len(published.claims):
        raise ValueError(f"{len(rows)} of {len(published.claims)} claims of {published.paper.source} were measured")
    verdicts = [next(verdict for verdict in VERDICTS if row["Verdict"].partition(" (")[0] == verdict) for row in rows]
    tallies = [tally(label, verdicts) for label in dict.fromkeys(row["Model"] for row in rows)]
    return Table(
        name_of(published),
        title_of(published),
        COLUMNS,
        tuple(_verdict(row) for row in rows),
        (*notes_on(published), *tallies, *noted(_share(row) for row in rows)),
    )


def _verdict(row: Row) -> tuple[Cell, ...]:
    return (
        *(row[name] for name in TITLES[:5]),
        *(Rate(_share(row)), Number(float(row["Published"]), 1, percent=True)),
        *(int(row["N"]), row["To decide"], AdjustedP(None)),
        *(row[name] for name in TITLES[10:]),
        int(row[INSTANCES]),
    )


def _share(row: Row) -> Share:
    k, n, instances = (int(row[name]) for name in ("Ours k", "Ours n", INSTANCES))
    rate, low, high = (float(row[f"Ours{what}"]) for what in ("", " low", " high"))
    return Share(k, n, rate, low, high, None if instances == n else instances)


def with_instances(table: Table) -> Table:
    """The verdicts, each with how many instances its share is of: without that nobody can tell what its interval lacks."""
    rows = tuple((*row, next(_instances(cell.share) for cell in row if isinstance(cell, Rate))) for row in table.rows)
    return replace(table, columns=COLUMNS, rows=rows)


def _instances(share: Share) -> int:
    return share.instances or share.n
