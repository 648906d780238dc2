"""The numbers of the page on patterns are those of the committed tables, and of a run of the config that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from study_runs import run_of_matrix

from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.worlds.run.entries import PATTERNS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
POINTS = ("before", "unacknowledged", "unrecorded", "recorded")
DAMAGE = ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale", "late")


def table(report: str, name: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "reports" / report / f"{name}.csv")


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("README.md", "frameworks and {} patterns"),
        ("docs/index.md", "the {} patterns of agents"),
        ("docs/packs.md", "{} [patterns](patterns.md) act in worlds"),
        ("docs/service_upgrade.md", "of the {} [patterns](patterns.md) were run"),
        ("docs/patterns.md", "{} patterns act in [worlds](worlds.md)"),
    ],
)
def test_each_page_says_how_many_patterns_there_are(page: str, sentence: str) -> None:
    count = {10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen"}[len(PATTERNS)]
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert sentence.format(count).lower() in text.lower()


def rows_of(section: str) -> list[list[str]]:
    """The cells of each row of a section's table, without its head."""
    text = PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")][2:]


def test_each_cell_of_exactly_once_is_that_of_the_committed_study() -> None:
    cells = {(row["Architecture"], row["Dies"]): row for row in table("exactly_once", "study-exactly-once").to_dict("records")}
    shown = [(name, shares) for names, *shares in rows_of("Exactly once") for name in re.findall(r"`(\w+)`", names)]
    assert len(shown) == 6
    for name, shares in shown:
        for point, cell in zip(POINTS, shares, strict=True):
            row = cells[name, point]
            share, low, high = (f"{100 * row[column]:.0f}" for column in ("Doubled", "Doubled low", "Doubled high"))
            assert cell == f"{share}% [{low}, {high}] ({100 * row['Doubled effects'] / row['Doubled n']:.0f})", (name, point)


def test_what_is_said_below_exactly_once_is_what_its_tables_count() -> None:
    cells, kills = table("exactly_once", "study-exactly-once"), table("exactly_once", "kills")
    remedied = cells["Architecture"].str.endswith("_remedied")
    bare, kept = cells[~remedied], cells[remedied]
    damaged = [f"{kind.capitalize()} effects" for kind in DAMAGE if f"{kind.capitalize()} effects" in cells]
    assert not kept[damaged].to_numpy(dtype=float).any() and not bare["Lost effects"].any()
    same = kills["The same as in process k"].sum()
    assert f"With remedies no effect was damaged in any way in {kept['Lost n'].sum():,} crashes" in TEXT
    assert kills.groupby(kills["Architecture"].str.removesuffix("_remedied"))["SIGKILLs"].sum().eq(50).all()
    assert f"After {kills['SIGKILLs'].sum()} kills, 50 for each pattern" in TEXT
    assert f"in {same} of {kills['Trials'].sum()} trials. These real kills are of four customers" in TEXT


def test_what_is_said_of_the_runtime_alone_is_what_the_committed_report_counts() -> None:
    sagas = table("exactly_once", "sagas")
    otherwise = sagas.set_index("Architecture")["Otherwise k"]
    assert len(sagas) == 6 and set(otherwise[otherwise > 0].index) == {"composition", "state_machine"}
    remedied = sagas[sagas["Architecture"].str.endswith("_remedied")]
    assert len(remedied) == 4 and remedied["Otherwise high"].lt(0.1).all(), "they hold: the intervals end within 10%"
    boundaries = " ".join((ROOT / "docs" / "results" / "boundaries.md").read_text(encoding="utf-8").split())
    assert "both hold with remedies; counterexamples are bare `composition` and bare `state_machine`" in boundaries


def test_what_is_said_of_the_reliability_surface_is_what_its_table_counts() -> None:
    surface = table("reliability_surface-simulated", "tables/study-reliability-surface").set_index("Architecture")
    customers = 40
    loads = surface["Fault"] + surface["λ"].astype(str)
    assert len(surface) * customers == 8_640
    by_words = surface.assign(load=loads).set_index(["load", "ε"], append=True)["pass^1"].unstack("ε")
    assert by_words.eq(by_words[0], axis="index").all(axis=None) and by_words.shape[0] * customers == 2_880


@pytest.mark.endurance
@pytest.mark.parametrize(("pack", "cases", "column"), [("contract_renewal", 40, 1), ("incident_response", 48, 3)])
def test_the_table_of_undisturbed_patterns_is_what_they_do(tmp_path: Path, pack: str, cases: int, column: int) -> None:
    config = load_config(ROOT / "studies" / "comparisons" / "undisturbed.toml", {"scenarios": [pack], "instances": cases})
    trials = run_of_matrix(tmp_path, build_matrix(config, [ROOT / "scenarios"], "code")).trials
    assert trials["recount_agrees"].all() and len(trials) == 18 * cases
    grouped = trials.assign(solved=trials["outcome"].eq("solved")).groupby("architecture")
    counts = grouped[["solved", *(f"damage_{kind}" for kind in DAMAGE)]].sum()
    numbers = dict[str, tuple[str, str]]()
    for names, *cells in rows_of("Undisturbed"):
        of = re.findall(r"`(\w+)`", names) or [name for name in counts.index if name.endswith("_remedied")]
        numbers |= dict.fromkeys(of, (cells[column - 1], cells[column]))
    assert set(numbers) == set(counts.index)
    for name, row in counts.iterrows():
        damage = ", ".join(f"{row[f'damage_{kind}']} {kind}" for kind in DAMAGE if row[f"damage_{kind}"])
        assert numbers[str(name)] == (str(row["solved"]), damage or "none"), name


def test_the_page_says_after_how_many_deaths_at_the_queue_effects_are_doubled() -> None:
    rows = table("in_flight-simulated", "tables/study-exactly-once").groupby("Architecture")
    deaths, doubled = (rows[f"Doubled {what}"].sum() for what in ("n", "k"))
    assert set(deaths) == {12} and f"each arm has {deaths['queue']} deaths" in TEXT
    assert f"Without a key the letter is sent twice after {doubled['queue']} of 12 deaths." in TEXT
    assert f"effects are doubled after {doubled['planner_exchanged']} of 12 deaths; if the plan keeps" in TEXT
    assert {doubled[name] for name in ("queue_keys", "adapter_pinned", "planner_pinned")} == {0}
    none = table("in_flight-simulated", "tables/study-exactly-once").query("`Doubled k` == 0")
    assert (
        f"doubled for none of three customers, and the 95% interval of this share ends at {none['Doubled high'].max():.0%}."
        in TEXT
    )
