"""The numbers of the page, read back from its CSVs: the page is made of them alone."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from exactly_once.sagas import Otherwise

from bench.read.analysis.statistics import Share, exact_share
from studies.exactly_once.study import KINDS, CrashedArm

Row = Mapping[str, str]


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


def sagas(folder: Path) -> list[Otherwise]:
    return [Otherwise(row["What is said"], row["Architecture"], _otherwise(row)) for row in rows_of(folder, "sagas")]


def _otherwise(row: Row) -> Share:
    k, n, instances = (int(row[name]) for name in ("Otherwise k", "Otherwise n", "Instances"))
    rate, low, high = (float(row[f"Otherwise{what}"]) for what in ("", " low", " high"))
    return Share(k, n, rate, low, high, None if instances == n else instances)
