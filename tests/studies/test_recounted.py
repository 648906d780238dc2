"""The tables of studies whose records git does not hold, recounted from a row for each trial by other code than theirs."""

from __future__ import annotations

import csv
import lzma
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-9

Row = dict[str, str]
Place = tuple[str, ...]


def rows_of(config: str, report: str = "boundary_studies") -> list[Row]:
    packed = ROOT / "reports" / report / "rows" / f"{config}.csv.xz"
    return list(csv.DictReader(lzma.decompress(packed.read_bytes()).decode().splitlines()))


def table_of(name: str, report: str = "boundary_studies") -> list[Row]:
    text = (ROOT / "reports" / report / "tables" / f"{name}.csv").read_text(encoding="utf-8")
    table = list(csv.DictReader(text.splitlines()))
    assert table
    return table


def config_of(path: str) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    return tomllib.loads((ROOT / "studies" / path).read_text(encoding="utf-8"))


def damage(row: Row) -> int:
    return sum(int(count) for name, count in row.items() if name.startswith("damage_"))


def by_instance(values: Iterable[tuple[str, float]]) -> float:
    """The mean over instances of the mean of each instance."""
    each = defaultdict[str, list[float]](list)
    for instance, value in values:
        each[instance].append(value)
    return fmean(map(fmean, each.values()))


# Boundaries

STRENGTHS = ("none", "schema", "policy", "business_rule")
OCCASIONS = {
    "strength": ("rejections", "calls_forbidden", "steps_failed"),
    "approval": ("waiting_for_people_minutes",),
    "commit": ("faults_delivered",),
    "signal": ("rejections",),
}


def test_what_each_part_of_the_boundary_carries_is_recounted() -> None:
    rates = {
        name: str(float(str(model.get("error_rate", 0)))) for name, model in config_of("boundary/config.toml")["model"].items()
    }
    cells = config_of("boundary/config.toml")["architecture"]

    def level(row: Row, part: str) -> str:
        cell = cells[row["architecture"]]
        if part == "error rate":
            return rates[row["model"]]
        return str(cell.get(part, "risky" if cell["strength"] in STRENGTHS[2:] else "never"))

    def could_act(row: Row, part: str) -> bool:
        return part not in OCCASIONS or any(float(row[name] or 0) > 0 for name in OCCASIONS[part])

    parts = (*OCCASIONS, "error rate")
    trials = [(row, {part: level(row, part) for part in parts}) for row in rows_of("boundary")]
    table = table_of("study-boundary")
    assert len(trials) == 6480 and len(table) == 20
    for shown in table:
        part = shown["Part"]
        twins: dict[Place, dict[str, Row]] = defaultdict(dict)
        for row, levels in trials:
            if row["scenario"] == shown["Scenario"]:
                others = (levels[other] for other in parts if other != part)
                twins[row["instance"], row["repetition"], *others][levels[part]] = row
        pairs = [
            (each[shown["At"]], each[shown["In the place of"]])
            for each in twins.values()
            if {shown["At"], shown["In the place of"]} <= set(each)
        ]
        acted = [pair for pair in pairs if any(could_act(row, part) for row in pair) or len(set(map(damage, pair))) > 1]
        assert (len(acted), len(pairs)) == (int(shown["Pairs that could differ"]), int(shown["Pairs"])), shown
        more = by_instance((this["instance"], damage(this) - damage(that)) for this, that in acted)
        assert more == pytest.approx(float(shown["More damage"]), abs=TOLERANCE), shown


def test_the_damage_of_the_log_and_of_the_state_machine_is_recounted() -> None:
    by_arm = defaultdict[Place, list[int]](list)
    for row in rows_of("log_or_row"):
        by_arm[row["model"], row["plan"], row["architecture"]].append(damage(row))
    table = table_of("study-log-or-row")
    assert len(table) == 20
    for row in table:
        model, plan = row["Model"].partition(" ")[0], row["Fault plan"].replace(" ", "_")
        for column, pattern in (("Event log", "event_driven"), ("State machine", "state_machine")):
            counts = by_arm[model, plan, pattern + ("_remedied" if row["Form"] == "with remedies" else "")]
            assert fmean(counts) == pytest.approx(float(row[column]), abs=TOLERANCE), row
