"""What is committed holds together: each recorded run, replayed, is the run; the committed tables are what the runs give now,
and the documents show them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from committed import REPLAYED, SNAPSHOT, recorded_reports
from committed import replay as replay_of
from pages import as_committed

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.render.table import Table, markdown
from bench.read.report.page import as_markdown
from bench.read.report.written_report import contents_of, report_of
from bench.record.reading import read_manifest
from bench.run.architectures.registry import ARCHITECTURES

ROOT = Path(__file__).parents[2]
RECORDING, STRUCTURED = "paper-qwen2.5-coder-1.5b-instruct", "structured_output-qwen2.5-coder-1.5b-instruct"
HUMANEVAL, INCIDENTS = "humaneval_one_call-qwen2.5-coder-1.5b-instruct", "incidents-qwen2.5-coder-1.5b-instruct"
OTHER_FAULTS, PIPELINE = "incidents_faults-qwen2.5-coder-1.5b-instruct", "humaneval-qwen2.5-coder-1.5b-instruct"
CHAOS, OTHER_PIPELINE_FAULTS = "chaos-qwen2.5-coder-1.5b-instruct", "humaneval_faults-qwen2.5-coder-1.5b-instruct"
FORMATS = "answer_format-qwen2.5-coder-1.5b-instruct"
SMALLER_INCIDENTS, SMALLER_PIPELINE = "incidents-qwen2.5-coder-0.5b-instruct", "humaneval-qwen2.5-coder-0.5b-instruct"
SMALLER_HUMANEVAL = "humaneval_one_call-qwen2.5-coder-0.5b-instruct"
BANK, SMALLER_BANK = "judgment_bank-qwen2.5-coder-1.5b-instruct", "judgment_bank-qwen2.5-coder-0.5b-instruct"
DESK_BANK, PARAPHRASE = "support_desk_bank-qwen2.5-coder-1.5b-instruct", "paraphrase-qwen2.5-coder-1.5b-instruct"
PATCHING, CUTS = "patching-qwen2.5-coder-1.5b-instruct", "cuts-qwen2.5-coder-1.5b-instruct"
ORCHESTRATED = "orchestration_live-qwen2.5-coder-1.5b-instruct"
AGENTS, IMPATIENT = "scorecard_live-qwen2.5-coder-1.5b-instruct", "sre_agent"
"""Processes that are killed and started again: which reply comes first is the machine's, so it is not replayed. And a framework
whose client did not wait for some replies, which are not recorded."""
SMALLER, SYSTEMS = "paper-qwen2.5-coder-0.5b-instruct", "systems-qwen2.5-coder-1.5b-instruct"
BESIDE, FAIR = "incidents_systems-qwen2.5-coder-1.5b-instruct", "fair_systems-qwen2.5-coder-1.5b-instruct"
ALONE = (
    SMALLER,
    "repair-qwen2.5-coder-1.5b-instruct",
    "substitution-qwen2.5-coder",
    SYSTEMS,
    "substitution_incidents-qwen2.5-coder",
    "repair_bank-qwen2.5-coder-1.5b-instruct",
    "untold-qwen2.5-coder-1.5b-instruct",
    "noise-qwen2.5-coder-1.5b-instruct",
    "paper_sized-qwen2.5-coder-1.5b-instruct",
    "validation-qwen2.5-coder-1.5b-instruct",
)
OF_THIS_MACHINE = (b"Framework s", b"Framework (s)")
"""What the rows of framework time say: ours, and the paper's. Their numbers are measured anew in each replay."""
SHOWN = ("table2.md",)
"""The tables of the committed report that the documents show."""
RUNS = {
    RECORDING: 120,
    STRUCTURED: 90,
    SMALLER: 120,
    ALONE[1]: 120,
    ALONE[2]: 120,
    SYSTEMS: 100,
    ALONE[4]: 120,
    ALONE[5]: 18,
    ALONE[6]: 120,
    ALONE[7]: 40,
    ALONE[8]: 64,
    ALONE[9]: 162,
    HUMANEVAL: 164,
    INCIDENTS: 360,
    OTHER_FAULTS: 300,
    BESIDE: 200,
    FAIR: 72,
    PIPELINE: 216,
    OTHER_PIPELINE_FAULTS: 300,
    CHAOS: 600,
    FORMATS: 360,
    SMALLER_INCIDENTS: 60,
    SMALLER_PIPELINE: 60,
    SMALLER_HUMANEVAL: 164,
    BANK: 100,
    SMALLER_BANK: 100,
    DESK_BANK: 27,
    PARAPHRASE: 36,
    PATCHING: 24,
    AGENTS: 40,
    IMPATIENT: 20,
    CUTS: 84,
    ORCHESTRATED: 32,
}
"""Each committed run and its trials."""
ALL = ", every system"
WHOLE = (RECORDING,)
"""The run that is always replayed whole: the paper's. The others are in the long form."""
ONCE = ", first repetition"
LONG = (OTHER_FAULTS, PIPELINE, FAIR, OTHER_PIPELINE_FAULTS, ALONE[8], ALONE[9])
"""The runs whose pages the long form makes again: each has the parts of a page that others have, and takes seconds."""
IN_PART = (STRUCTURED, *ALONE)
"""Of these the short form replays the first repetition. Humaneval's answers are graded in the sandbox, one process each."""


def short_and_long(names: Iterable[str]) -> list[Any]:
    return [name if name in WHOLE else pytest.param(name, marks=pytest.mark.endurance) for name in names]


@pytest.fixture(
    scope="module",
    params=[
        *short_and_long(name for name in RUNS if name not in (AGENTS, IMPATIENT, CUTS)),  # of CUTS 16 trials were not recorded
        *(f"{name}{ONCE}" for name in IN_PART),
        *(pytest.param(f"{name}{ALL}", marks=pytest.mark.slow) for name in (SYSTEMS, BESIDE, FAIR)),
    ],
)
def recording(request: pytest.FixtureRequest) -> str:
    """A committed run's name. Of the systems run, those that need no optional dependency; all of them take minutes."""
    return str(request.param)


@cache
def committed(name: str) -> Run:
    return bench.load_run(ROOT / "results" / name)


def folder_of(recording: str) -> Path:
    return ROOT / "results" / recording.partition(",")[0]


@pytest.fixture(scope="module")
def replay(recording: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run's own experiment, its models recorded; for the reference run, what `nox -s bench` runs."""
    recorded = folder_of(recording)
    extras = {part.name for part in ARCHITECTURES if part.extra}
    architectures = read_manifest(recorded).config.architectures
    names = [name for name in architectures if recording.endswith(ALL) or name not in extras]
    once = {"repetitions": 1} if recording.endswith(ONCE) else {}
    folder = tmp_path_factory.mktemp("results") / f"{recorded.name}-replay"
    return replay_of(recorded.name, folder, architectures=names, **once)


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize("recording", [SNAPSHOT], indirect=True, scope="module")
def test_a_replay_gives_the_committed_tables_byte_for_byte(recording: str, replay: Run) -> None:
    """The paper's tables are committed in all formats, the others in Markdown."""
    made = {name: content for name, content in report_of(replay).files.items() if name.startswith("tables/")}
    folder = ROOT / "reports" / recording
    committed = {
        name: (folder / name).read_bytes() for name in made if name.endswith(".md") or re.match(r"tables/table[12]", name)
    }
    assert {f"tables/{path.name}" for path in (folder / "tables").glob("*.md")} <= committed.keys() < made.keys()
    assert [name for name in committed if _of_the_run(made[name]) != _of_the_run(committed[name])] == []


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize(
    "recording",
    short_and_long(name for name in REPLAYED if name != STRUCTURED),  # of its report one table is committed, and no page
    indirect=True,
    scope="module",
)
def test_a_replay_gives_the_tables_of_the_committed_page(recording: str, replay: Run) -> None:
    made = contents_of(Results(replay)).page
    committed = (ROOT / "reports" / recording / "report.md").read_text()
    snapshot = folder_of(recording).name == SNAPSHOT
    text = as_markdown(made) if snapshot else as_committed(as_markdown(made, None), committed)
    tables = [page.partition("## What was run")[0].encode() for page in (text, committed)]
    assert _of_the_run(tables[0]) == _of_the_run(tables[1])


def test_a_page_is_missed_for_another_number_and_not_for_a_further_row_column_note_table_or_figure() -> None:
    old = Table("spent", "Spent", ("Arm", "Tokens"), (("a", 1), ("b|c", 2)), ("a note",))
    new = Table("spent", "Spent", ("Arm", "Calls", "Tokens"), (("a", 7, 1), ("d", 8, 3), ("b|c", 9, 2)), ("a note", "another"))
    page = page_of(old)
    assert as_committed(page_of(replace(old, name="more"), new), page) == page == as_committed(page, page)
    assert as_committed(f"{page}\n{page_of(replace(old, name='more')).replace('Costs', 'More')}", f"{page}\n") == f"{page}\n"
    drawn = f"![old](figures/old.png)\n\n{page}"
    assert as_committed(f"![new](figures/new.png)\n\n{drawn}", drawn) == drawn != as_committed(page, drawn)
    others = (replace(new, rows=(("a", 7, 1), ("b|c", 9, 3))), replace(new, rows=new.rows[:2]), replace(new, title="Gone"))
    for other in (*others, replace(new, columns=("Arm", "Calls", "Words")), replace(new, notes=())):
        assert as_committed(page_of(other), page) != page


def page_of(*tables: Table) -> str:
    shown = (f'<a id="{table.name}"></a>\n\n{markdown(table)}\n<!-- end of {table.name} -->\n' for table in tables)
    return "\n".join(["## Costs\n", *shown])


def _of_the_run(table: bytes) -> list[bytes]:
    return [line for line in table.splitlines() if not any(row in line for row in OF_THIS_MACHINE)]


PLACE = ["scenario", "instance", "model", "architecture", "plan", "repetition"]
SAME = ["outcome", "score", "tokens", "retry_tokens", "calls"]


def test_a_replay_says_what_the_run_said_and_no_request_is_missing(recording: str, replay: Run) -> None:
    live, again = (
        trials.set_index(PLACE).sort_index() for trials in (committed(folder_of(recording).name).trials, replay.trials)
    )
    assert len(live) == RUNS[folder_of(recording).name]
    live = live.loc[live.index.isin(again.index)]
    assert len(again) == len(live) > 0 and not (replay.calls["failure"] == "not_recorded").any()
    pd.testing.assert_frame_equal(again[SAME], live[SAME])
    assert again["api_seconds"].to_dict() == pytest.approx(live["api_seconds"].to_dict(), abs=1e-6)


@pytest.mark.parametrize("name", RUNS)
def test_no_trial_of_a_committed_run_is_an_error_of_ours_and_every_fault_has_its_receipt(name: str) -> None:
    assert_all_is_accounted_for(committed(name))


def test_no_trial_of_a_replay_is_an_error_of_ours_and_every_fault_has_its_receipt(replay: Run) -> None:
    assert_all_is_accounted_for(replay)


def assert_all_is_accounted_for(run: Run) -> None:
    assert not (run.trials["outcome"] == "error").any()
    assert (run.trials["faults_planned"] == run.trials["faults_delivered"] + run.trials["faults_not_applicable"]).all()
    accounts = run.trials[["in_answer", "rejected", "superseded", "lost", "judging", "redundant"]].sum(axis="columns")
    assert (accounts == run.trials["tokens"]).all()


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize(
    "report", [pytest.param(name, marks=pytest.mark.endurance) if name in LONG else name for name in recorded_reports()]
)
def test_all_that_a_committed_page_shows_is_what_its_runs_give_now_and_its_figures_are_there(report: str) -> None:
    folder, contents = ROOT / "reports" / report, contents_of(Results(committed(report)))
    page = (folder / "report.md").read_text()
    assert as_committed(as_markdown(contents.page, None), page) == page
    shown = {f"{picture.name}.png" for picture in contents.pictures}
    assert shown <= {path.name for path in folder.glob("figures/*")}


def test_the_documents_show_the_tables_of_the_committed_report() -> None:
    page = (ROOT / "docs" / "results" / "paper.md").read_text()
    tables = [f"reports/{RECORDING}/tables/{name}" for name in SHOWN]
    assert all((ROOT / table).exists() for table in tables)
    assert [table for table in tables if f"{{include}} ../../{table}\n" not in page] == []
