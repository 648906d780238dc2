"""The paper's tables with ours beside them: the same rows, and the same quantities."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from records import accepted, called, committed, fault, recovered, rejected, run_of, smooth, trial, undamaged

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.published import load_published
from bench.read.analysis.results import Results
from bench.read.claims.beside_paper import paper_tables
from bench.read.claims.judging import findings
from bench.read.claims.retries import paired_tables, rounds_ask_the_same
from bench.read.render.cells import text_of
from bench.read.render.table import Table
from bench.read.report.written_report import report_of
from bench.record.events import Answered, Event
from bench.record.record import TrialRecord

PUBLISHED = load_published()
ARCHITECTURES = ("monolithic", "static", "runtime_structured")
DEBUGGING = "multi_file_debugging"


def tables_of(run: Run) -> list[Table]:
    return list(paper_tables(run, arms_of(run), PUBLISHED))


def cell(table: Table, row: str, column: str) -> str:
    return next(text_of(line[table.columns.index(column)]) for line in table.rows if line[0] == row)


def records(plan: str = "paper", scenario: str = "k8s_oomkill", repetitions: int = 3) -> list[TrialRecord]:
    def events(repetition: int) -> list[Event]:
        return recovered(100 * repetition) if plan != "none" else smooth()

    return [
        trial(name, plan, repetition, scenario=scenario, events=events(repetition))
        for name in ARCHITECTURES
        for repetition in range(1, repetitions + 1)
    ]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_of(tmp_path / "run", [*records("none"), *records("paper")])


def test_a_table_has_the_papers_rows_in_its_order_and_says_n(run: Run) -> None:
    [table] = tables_of(run)
    published = next(each for each in PUBLISHED.table if each.number == 2)
    rows = [str(row[0]) for row in table.rows]
    papers = [cells.row for cells in published.cells.values()]
    assert [name for name in (row.removesuffix(", as the paper counts") for row in rows) if name in papers] == papers
    assert cell(table, "N", "static, ours, SIMULATED") == "3 trials, 3 passes, 3 rounds, 3 pairs with monolithic"


def test_tokens_and_calls_are_those_of_a_pass_without_a_failure_as_the_papers_are(run: Run) -> None:
    [table] = tables_of(run)
    passed, struck = (
        run.trials[run.trials["architecture"].eq("static") & run.trials["plan"].eq(plan)] for plan in ("none", "paper")
    )
    assert cell(table, "Tokens", "static, ours, SIMULATED").startswith(f"{passed['tokens'].mean():.0f} ±")
    assert struck["tokens"].mean() > passed["tokens"].mean(), "else nothing were told apart"
    assert cell(table, "LLM calls", "static, ours, SIMULATED").startswith(f"{passed['calls'].mean():.1f} ±")
    assert cell(table, "Tokens", "static, paper") == "2553 ± 224"


def test_retry_tokens_are_those_of_one_round(run: Run) -> None:
    [table] = tables_of(run)
    rounds = run.trials.loc[run.trials["architecture"].eq("static"), "first_round_tokens"].dropna()
    assert cell(table, "Retry tokens, the whole round", "static, ours, SIMULATED").startswith(f"{rounds.mean():.0f} ±")
    assert cell(table, "Of monolithic's, as the paper counts", "static, paper") == "180.5%"
    assert cell(table, "Of monolithic's, as the paper counts", "runtime_structured, paper") == "48.2%"


def refixed(fix: int, with_reason: int = 0) -> list[Event]:
    """Validation refuses the fix, so the fix and the validation are asked for again. The fix can be told why."""
    return [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(called(2, "b"), accepted(2, "b"), committed(2, "b", made_from=[("a", 1)])),
        *fault("planned", "delivered", call=3, subtask="c"),
        *(called(3, "c"), undamaged(3, "c"), accepted(3, "c"), rejected(2, "b")),
        *fault("detected", call=3, subtask="c"),
        *(called(4, "b", cause="retry", tokens=(fix + with_reason, 20), attempt=2, caused_by=11), accepted(4, "b")),
        *(called(5, "c", cause="rerun", tokens=(500, 30), attempt=2, caused_by=11), accepted(5, "c"), committed(5, "c")),
        Answered((("a", 1), ("b", 1), ("c", 1))),
        *fault("recovered", call=3, subtask="c"),
    ]


@pytest.fixture
def refused_fixes(tmp_path: Path) -> Run:
    trials = [trial("monolithic", "validation", n, scenario=DEBUGGING, events=recovered(780)) for n in (1, 2, 3)]
    for name, reason in (("static", 0), ("runtime_structured", 28)):
        trials += [trial(name, "validation", n, scenario=DEBUGGING, events=refixed(200 + 10 * n, reason)) for n in (1, 2, 3)]
    return run_of(tmp_path / "run", [*trials, *records("none", DEBUGGING)])


def test_a_retry_is_counted_as_the_paper_counts_with_the_whole_round_beside_it(refused_fixes: Run) -> None:
    [table] = tables_of(refused_fixes)
    ours = {name: f"{name}, ours, SIMULATED" for name in ARCHITECTURES}
    counted, whole = (f"Retry tokens, {which}" for which in ("as the paper counts", "the whole round"))
    assert cell(table, counted, ours["static"]).startswith("770 ±") and cell(table, whole, ours["static"]).startswith("770 ±")
    assert cell(table, counted, ours["runtime_structured"]).startswith("268 ±"), "the fix alone"
    assert cell(table, whole, ours["runtime_structured"]).startswith("798 ±"), "and its validation"
    assert cell(table, "Of monolithic's, as the paper counts", ours["runtime_structured"]).startswith("33.5% ")
    assert cell(table, whole, "runtime_structured, paper") == "–", "the paper does not say it"


def test_the_finding_says_both_and_what_follows_from_the_code(refused_fixes: Run) -> None:
    [finding] = [each for each in findings(Results(refused_fixes)) if each.title]
    assert finding.title == (
        "On multi_file_debugging a retry of runtime_structured took 34% of monolithic's tokens as the paper counts "
        "(65% there) and 100% in all (SIMULATED)"
    )
    first, second, third = finding.text.split(". ")[0], *re.findall(r"A retry of [^A]*?\.(?= A|$)", finding.text)
    assert "33.5% [" in first and "the paper 65.4%" in first and "over the whole round" in first
    assert "the same calls, told the reason: follows from the code" in second
    assert "static took 96.2%" in third and "over the whole round" not in third, "both are one"


def test_retries_that_are_compared_with_static_alone_give_no_title(tmp_path: Path) -> None:
    trials = [
        trial(name, "validation", n, scenario=DEBUGGING, events=refixed(200)) for name in ARCHITECTURES[1:] for n in (1, 2)
    ]
    [finding] = findings(Results(run_of(tmp_path / "run", [*trials, *records("none", DEBUGGING)])))
    assert finding.title == "" and "of static's tokens" in finding.text and "monolithic" not in finding.text


def test_arms_that_ask_for_other_subtasks_do_not_differ_by_the_code_alone(refused_fixes: Run) -> None:
    [named] = [named for at, named in arms_of(refused_fixes).items() if at.plan == "validation"]
    static, selective, whole = (named[name] for name in ("static", "runtime_structured", "monolithic"))
    assert rounds_ask_the_same(refused_fixes, selective, static) and not rounds_ask_the_same(refused_fixes, selective, whole)


def test_the_papers_framework_share_is_told_to_be_the_same_everywhere(run: Run) -> None:
    [table] = tables_of(run)
    assert any("18.0% of latency in each cell that has it" in note for note in table.notes)
    assert cell(table, "Framework, of latency", "runtime_structured, paper") == "18.0%"


def test_a_failure_at_another_place_has_a_table_of_its_own(tmp_path: Path) -> None:
    pack = "multi_file_debugging"
    records_ = [*records("none", pack), *records("paper", pack), *records("validation", pack), *records("elsewhere", pack)]
    its_failure, another = tables_of(run_of(tmp_path / "run", records_))
    assert (its_failure.name, another.name) == ("table1", "table1-paper")
    assert its_failure.title.startswith("Table 1 beside ours: ")
    assert another.title.startswith("Table 1 beside another failure, a field is missing in the fix")
    assert not any(claim.plan == "paper" for claim in PUBLISHED.claim if claim.scenario == pack)


def test_a_size_of_a_pack_stands_beside_the_same_table(tmp_path: Path) -> None:
    sized = [*records("none", "k8s_oomkill:paper_sized"), *records("paper", "k8s_oomkill:paper_sized")]
    assert [table.name for table in tables_of(run_of(tmp_path / "sized", sized))] == ["table2"]
    both = run_of(tmp_path / "both", [*records("none"), *records("paper"), *sized])
    assert [table.name for table in tables_of(both)] == ["table2-plain", "table2-paper_sized"]


def test_a_monolith_by_the_papers_source_stands_beside_its_columns(tmp_path: Path) -> None:
    records_ = [*records("none"), *records("paper")]
    records_ += [trial("sre_agent_monolith", plan, 1, scenario="k8s_oomkill") for plan in ("none", "paper")]
    [table] = tables_of(run_of(tmp_path / "run", records_))
    assert "sre_agent_monolith, ours, SIMULATED" in table.columns
    assert len(table.columns) == 1 + 3 * 2 + 1


def test_a_run_without_the_papers_failure_has_no_such_table(tmp_path: Path) -> None:
    assert tables_of(run_of(tmp_path / "run", records("none"))) == []


def test_the_ratio_is_over_the_pairs_that_have_both_rounds(tmp_path: Path) -> None:
    twice = [trial("static", "paper", n, scenario="k8s_oomkill", events=recovered(2 * n * 100)) for n in (1, 2, 3)]
    once = [trial("monolithic", "paper", n, scenario="k8s_oomkill", events=recovered(n * 100)) for n in (1, 2)]
    run = run_of(tmp_path / "run", [*twice, *once])
    [pair] = paired_tables(arms_of(run), PUBLISHED)
    ratio = pair.ratio("static")
    assert ratio and ratio.pairs == 2
    assert ratio.ratio == pytest.approx((220 + 420) / (120 + 220))
    assert pair.ratio("runtime_structured") is None


@pytest.mark.usefixtures("unmade")
def test_the_papers_tables_stand_first(run: Run) -> None:
    report = report_of(run)
    page = report.files["report.md"].decode()
    assert page.index("## The paper's tables beside ours") == page.index("\n## ") + 1
    assert page.index("figures/retry-") < page.index("\n## "), "the abstract's claim is the figure of the first screen"
