"""What the page on code that agents change says of results stands in the tables of two reports, impact and retesting."""

from __future__ import annotations

from pathlib import Path

from traps import TRAPS

from bench import load_run
from bench.record.reading import read_responses
from impact.report import report, results
from impact.rows import read

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "reports" / "impact"
ROWS = read(FOLDER / "edits.csv")


def test_the_page_says_what_the_rows_say() -> None:
    page = " ".join((ROOT / "docs" / "code.md").read_text(encoding="utf-8").split())
    of_edits, *of_losses = results(ROWS)[:3]
    assert [sentence for sentence in (of_edits, *of_losses) if sentence not in page] == [] and len(of_losses) == 2


def test_the_page_says_how_many_traps_there_are() -> None:
    page = " ".join((ROOT / "docs" / "code.md").read_text(encoding="utf-8").split())
    assert f"{len(TRAPS)} small trees in which a test depends on what it does not run" in page


def test_the_page_says_how_many_of_a_strangers_trees_were_lost() -> None:
    outcomes = [row["outcome"] for row in read(FOLDER / "strangers.csv")]
    seen, judged = outcomes.count("seen"), len(outcomes) - outcomes.count("not judged")
    page = " ".join((ROOT / "docs" / "code.md").read_text(encoding="utf-8").split())
    assert f"wrote {len(outcomes)} small trees with tests" in page and judged - seen == 2
    assert f"{judged} trees could be judged; `bench code` saw the failure in {seen} of the {judged}, and lost two:" in page


def test_the_report_is_made_of_the_rows() -> None:
    assert (FOLDER / "report.md").read_text(encoding="utf-8") == report(ROWS)


def test_what_the_page_says_of_beliefs_about_tests_stands_in_the_studys_table() -> None:
    lines = (
        (ROOT / "reports" / "retesting-simulated" / "tables" / "study-retesting.md").read_text(encoding="utf-8").splitlines()
    )
    names, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in cells}
    selective, everything = (rows["none", arm] for arm in ("selective", "rerun_everything"))
    flaky, stale = rows["flaky", "selective"], rows["stale_cache", "notebook"]
    solved, beside = (row["Solved"].split(" ")[0].replace("/", " of ") for row in (selective, everything))
    assert solved == beside
    page = " ".join((ROOT / "docs" / "retesting.md").read_text(encoding="utf-8").split())
    misled = flaky["Cases with a wrong belief"].split(" ")[0].replace("/", " of ")
    expected = (
        f"`selective` saves {selective['Executions saved']} runs of tests a case",
        f"solves what `rerun_everything` solves: {solved}. It believed no wrong pass in {selective['Wrong beliefs'][5:]}.",
        f"submits the broken repository without a patch, in {stale['Wrong']} of 120 cases.",
        f"a wrong belief in {misled} cases and gave up on {flaky['Gave up']}.",
    )
    assert selective["Wrong beliefs"].startswith("0 of ")
    assert [sentence for sentence in expected if sentence not in page] == []


def test_what_the_page_says_of_a_models_patches_stands_in_the_table_of_the_arms() -> None:
    lines = (ROOT / "reports" / "patching_arms" / "tables" / "study-patching-arms.md").read_text(encoding="utf-8").splitlines()
    names, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in cells}
    page = " ".join((ROOT / "docs" / "retesting.md").read_text(encoding="utf-8").split())
    edits, whole = rows["edits", "selective"], rows["whole files", "selective"]
    assert {row["Solved"].split(" ")[0] for row in rows.values()} == {"0/12"}
    expected = (
        f"Of the model's edits, {edits['Patches that fit']} could be applied.",
        f"Of its whole files, {whole['Patches that fit']} could.",
        f"In edits `selective` saved {edits['Executions saved']} runs of tests a case",
        f"of the {rows['edits', 'rerun_everything']['Executions']} that `rerun_everything` makes",
        f"saved no runs beyond chance, {whole['Executions saved']}.",
    )
    assert [sentence for sentence in expected if sentence not in page] == []
    folder = ROOT / "results" / "patching-qwen2.5-coder-1.5b-instruct"
    run = load_run(folder)
    asked = sum(not response.reused for response in read_responses(folder))
    assert asked == run.trials["calls"].sum()
    count = f"whole files: {asked} replies in {len(run.trials)} trials"
    assert count in page
