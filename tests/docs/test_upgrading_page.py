"""The numbers of the page on upgrades are those of its committed tables."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
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
            assert f"each of these faults: {solved(row)} a plan" in PAGE
        else:
            counts = " | ".join(row[kind] for kind in SHOWN)
            assert f"| `{row['plan']}` | {solved(row)} | {counts} |" in PAGE
    assert f"{sum(int(row['trials']) for row in rows):,} trials" in PAGE


def solved(row: dict[str, str]) -> str:
    low, high = (f"{float(row[f'solved_{end}']):.1%}" for end in ("low", "high"))
    return f"{row['solved']} of {row['trials']} [{low}, {high}]"


def test_each_row_of_the_smaller_works_is_that_of_the_table_and_one_case_fails_with_remedies() -> None:
    rows = [row for row in rows_of("faults.csv") if row["scenario"] != "service_upgrade"]
    shown = 0
    for row in rows:
        counts = " | ".join(row[kind] for kind in SHOWN[:-1])
        work = row["scenario"].partition(":")[2]
        if f"| `{work}` | `{row['plan']}` | {row['form']} | {solved(row)} | {counts} |" in PAGE:
            shown += 1
        else:
            assert solved(row) == "54 of 54 [54.1%, 100.0%]" and not any(int(row[kind]) for kind in SHOWN)
    assert shown == len([line for line in PAGE.splitlines() if " of 54 [" in line and line.startswith("|")])
    assert "is 54 of 54 [54.1%, 100.0%] without damage" in " ".join(PAGE.split())
    assert f"agreed in all {sum(int(row['trials']) for row in rows):,} trials" in PAGE
    failed = {
        (row["scenario"], row["plan"]): int(row["trials"]) - int(row["solved"])
        for row in rows
        if row["form"] == "remedied" and row["solved"] != row["trials"]
    }
    assert failed == {("service_upgrade:pull_request", "stale_read"): 9}
    assert "The 9 remedied trials" in " ".join(PAGE.split())


def test_each_patterns_crashes_are_those_of_the_table_and_remedies_damage_nothing() -> None:
    cells: dict[str, list[str]] = {}
    remedied, crashes, left_out = 0, 0, 0
    for row in rows_of("study-exactly-once.csv"):
        crashes, left_out = crashes + int(row["Doubled n"]), left_out + int(row["Left out"])
        if row["Architecture"].endswith("_remedied"):
            assert not any(int(row[f"{kind} k"]) for kind in ("Lost", "Doubled", "Orphaned", "Uncompensated"))
            remedied += int(row["Doubled n"])
        else:
            cell = f"{row['Doubled k']} of {row['Doubled n']} ({row['Doubled effects']})"
            cells.setdefault(row["Architecture"], []).append(cell)
    for name, of_points in cells.items():
        assert [line for line in PAGE.splitlines() if f"`{name}`" in line and line.endswith(f"| {' | '.join(of_points)} |")], (
            name
        )
    assert f"no effect was damaged in {remedied} crashes" in PAGE
    assert f"In all there were {crashes:,} crashes." in PAGE and f"{left_out} crashes that could not happen" in " ".join(
        PAGE.split()
    )


def test_each_trial_of_a_coding_agent_on_the_scripted_model_is_a_row_of_the_table() -> None:
    rows = [
        row
        for row in rows_of("tried.csv", ROOT / "reports" / "coding_agents")
        if row["model"] == "scripted" and row["calls"] != "0"
    ]
    for row in rows:
        ended = f"| {row['outcome']} `{row['instance']}`: {row['calls']} calls, {int(row['tokens']):,} tokens |"
        [line] = [line for line in PAGE.splitlines() if f"| {row['agent']} {row['version']} | {row['door']} |" in line]
        assert line.index(ended) == line.index("| solved ") if row["fault"] == "none" else line.endswith(ended)
    assert PAGE.count(" `case_0") == len(rows)


def test_each_trial_of_a_coding_agent_in_the_world_is_a_row_of_the_table() -> None:
    rows = rows_of("in_world.csv", ROOT / "reports" / "coding_agents")
    for row in rows:
        counts = f"{row['tool_calls']} calls of tools, {int(row['tokens']):,} tokens, {row['doubled']} effects doubled |"
        [line] = [line for line in PAGE.splitlines() if f"| {row['agent']} {row['version']} | " in line and "of tools" in line]
        ended = f"| {row['outcome']}: {counts}"
        assert line.index(ended) == line.index("| solved:") if row["fault"] == "none" else line.endswith(ended)
    assert PAGE.count(" effects doubled |") == len(rows)
