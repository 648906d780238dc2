"""The numbers of the page on the upgrade of a service are those of its committed tables."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service_upgrade.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
FOLDER = ROOT / "reports" / "exactly_once_upgrade-simulated"
SHOWN = ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale")


def rows_of(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def test_each_plans_row_is_that_of_the_table_and_with_remedies_all_is_solved() -> None:
    rows = [row for row in rows_of("faults.csv") if row["scenario"] == "service_upgrade"]
    for row in rows:
        if row["form"] == "remedied":
            assert row["solved"] == row["trials"] and not any(int(row[kind]) for kind in SHOWN)
            assert f"each of these faults: {solved(row)} a plan" in TEXT
        else:
            assert f"| `{row['plan']}` | {solved(row)} | {row['doubled']} |" in PAGE
    assert f"{sum(int(row['trials']) for row in rows):,} trials" in TEXT


def solved(row: dict[str, str]) -> str:
    low, high = (f"{float(row[f'solved_{end}']):.1%}" for end in ("low", "high"))
    return f"{row['solved']} of {row['trials']} [{low}, {high}]"


def test_what_is_said_of_the_smaller_works_is_what_their_rows_count() -> None:
    rows = [row for row in rows_of("faults.csv") if row["scenario"] != "service_upgrade"]
    by_cell = {(row["scenario"].partition(":")[2], row["plan"], row["form"]): row for row in rows}
    remedied = {key: row for key, row in by_cell.items() if key[2] == "remedied"}
    failed = remedied.pop(("pull_request", "stale_read", "remedied"))
    assert {solved(row) for row in remedied.values()} == {"54 of 54 [54.1%, 100.0%]"}
    assert not any(int(row[kind]) for row in remedied.values() for kind in SHOWN)
    assert f"except for `pull_request` under `stale_read`: {solved(failed)}. The {54 - int(failed['solved'])} remedied" in TEXT
    lost = {solved(row) for (_, plan, form), row in by_cell.items() if (plan, form) == ("lost_ci", "bare")}
    assert [f"leaves {cell} solved in each task" in TEXT for cell in lost] == [True]


def test_each_patterns_crashes_are_those_of_the_table_and_remedies_damage_nothing() -> None:
    doubled: dict[str, list[str]] = {}
    remedied, crashes, left_out = 0, 0, 0
    for row in rows_of("study-exactly-once.csv"):
        crashes, left_out = crashes + int(row["Doubled n"]), left_out + int(row["Left out"])
        if row["Architecture"].endswith("_remedied"):
            assert not any(int(row[f"{kind} k"]) for kind in ("Lost", "Doubled", "Orphaned", "Uncompensated"))
            remedied += int(row["Doubled n"])
        else:
            doubled.setdefault(row["Architecture"], []).append(f"{row['Doubled k']} of {row['Doubled n']}")
    keep_nothing = ("bare_agent", "hierarchical_delegation", "scatter_gather_saga", "supervisor_gate", "human_in_the_loop")
    assert {cell for name in keep_nothing for cell in doubled[name]} == {"16 of 16", "13 of 13"}
    row_of = "{} crashes *before*, {} *unacknowledged*, {} *unrecorded* and {} *recorded*".format(*doubled["state_machine"])
    assert f"doubles an effect after {row_of}" in TEXT
    assert f"no effect was damaged in {remedied} crashes" in TEXT
    assert f"In all there were {crashes:,} crashes" in TEXT and f"{left_out} crashes that could not happen" in TEXT


def test_each_coding_agent_solved_both_of_its_trials_on_the_scripted_model() -> None:
    rows = [
        row
        for row in rows_of("tried.csv", ROOT / "reports" / "coding_agents")
        if row["model"] == "scripted" and row["calls"] != "0"
    ]
    assert {row["outcome"] for row in rows} == {"solved"} and len(rows) == 4
    assert {row["calls"] for row in rows if row["fault"] == "none"} == {"4"}
    assert {row["calls"] for row in rows if row["fault"] != "none"} == {"8"} and "4 and 8 calls" in TEXT
    assert all(f"{row['agent']} {row['version']}" in TEXT for row in rows)


def test_each_trial_of_a_coding_agent_in_the_world_is_a_row_of_the_table() -> None:
    rows = rows_of("in_world.csv", ROOT / "reports" / "coding_agents")
    undisturbed = [row for row in rows if row["fault"] == "none"]
    killed = [row for row in rows if row["fault"] != "none"]
    assert {row["agent"] for row in undisturbed} == {row["agent"] for row in killed} and len(rows) == 4
    assert {(row["outcome"], row["doubled"]) for row in undisturbed} == {
        ("solved", "0")
    } and "Undisturbed, each solved the task." in TEXT
    assert {(row["outcome"], row["doubled"]) for row in killed} == {
        ("wrong", "5")
    } and "each agent started from the beginning and doubled 5 effects" in TEXT
