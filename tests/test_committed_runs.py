"""What is committed holds together: each run's report is what its results give, and the README shows what the report says."""

from __future__ import annotations

from pathlib import Path

import pytest

import bench
from bench.analysis.published import load_published
from bench.report.report import contents_of

ROOT = Path(__file__).parent.parent
RUNS = ("paper-qwen2.5-coder-1.5b-instruct",)
SHOWN = "comparison"


@pytest.fixture(scope="module", params=RUNS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def made_again(name: str) -> dict[str, bytes]:
    return contents_of(bench.load_run(ROOT / "results" / name), load_published())


def test_every_text_of_a_committed_report_is_what_its_results_give(name: str, made_again: dict[str, bytes]) -> None:
    folder = ROOT / "reports" / name
    committed = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert committed == set(made_again)
    texts = [file for file in committed if file.endswith((".md", ".csv", ".tex"))]
    assert [file for file in texts if (folder / file).read_bytes() != made_again[file]] == []


def test_no_trial_of_a_committed_run_is_an_error_of_ours_and_every_fault_has_its_receipt(name: str) -> None:
    run = bench.load_run(ROOT / "results" / name)
    assert not (run.trials["outcome"] == "error").any()
    assert (run.trials["faults_planned"] == run.trials["faults_delivered"] + run.trials["faults_moot"]).all()
    accounts = run.trials[["useful", "rejected", "superseded", "lost", "judging"]].sum(axis="columns")
    assert (accounts == run.trials["tokens"]).all()


def test_the_readme_shows_the_tables_of_the_committed_report(name: str) -> None:
    readme = (ROOT / "README.md").read_text()
    tables = sorted((ROOT / "reports" / name / "tables").glob(f"{SHOWN}-*-paper.md"))
    assert tables
    for table in tables:
        rows = [line for line in table.read_text().splitlines() if line.startswith("|")]
        assert [row for row in rows if row not in readme] == []
