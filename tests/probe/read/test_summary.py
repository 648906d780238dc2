"""What CI servers and pull requests are told of a probe agrees with its records and with its exit code."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_probe import PAY, PLANNED, PROBED, cell, cells, row, write

from bench.cli.commands.probed import ProbeFiles, show_probe
from bench.cli.terminal import Terminal
from bench.probe.points import points_of
from bench.probe.read.run import read_probe
from bench.probe.read.summary import MAX_TABLE_CELLS, SUMMARY, as_markdown, summary_of
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellFinding, CellJudged, CellsPlanned
from bench.record.reading import read_trials

COUNT = sum(len(points_of(call.call_class)) for call in PLANNED)
SCHEMA = Path(__file__).parents[3] / "docs" / "probe.schema.json"


def shown(folder: Path, *runs: CellRun, only: tuple[str, ...] = ()) -> tuple[int, ElementTree.Element, dict[str, object], str]:
    """Show a made probe: its exit code, its JUnit suite, its JSON and its comment."""
    probe = write(folder / "results" / "shop-probe", *runs, probed=PROBED.model_copy(update={"only": only}))
    files = ProbeFiles(folder / "ci" / "probe.json", folder / "ci" / "probe.xml", folder / "ci" / "comment.md")
    code = show_probe(Terminal(), probe, folder / "reports" / "shop-probe", 0, files)
    [suite] = ElementTree.parse(folder / "ci" / "probe.xml").getroot()
    comment = (folder / "ci" / "comment.md").read_text(encoding="utf-8")
    assert comment == (folder / "reports" / "shop-probe" / "probe.md").read_text(encoding="utf-8")
    return code, suite, json.loads((folder / "ci" / "probe.json").read_text(encoding="utf-8")), comment


def ends(suite: ElementTree.Element) -> dict[str, str]:
    """How each case of a suite ended, with the failure's type."""
    cases: dict[str, str] = {}
    for case in suite:
        problem = next(iter(case), None)
        cases[case.attrib["name"]] = "passed" if problem is None else " ".join((problem.tag, problem.get("type", ""))).strip()
    return cases


def judged_anew(run: CellRun, **changed: object) -> CellRun:
    events = [replace(event, **changed) if isinstance(event, CellJudged) else event for event in run.events]  # type: ignore[arg-type]
    return replace(run, events=events)


def of_bound() -> list[CellRun]:
    each = list(cells(frozenset(), clean=5))
    return [*each, *(replace(run, repetition=1) for run in each if run.plan.startswith("shop.") or ".model" in run.plan)]


def test_each_planned_cell_is_a_case_that_fails_only_where_a_run_of_it_did_damage(tmp_path: Path) -> None:
    code, suite, _, _ = shown(tmp_path)
    records = list(read_trials(tmp_path / "results" / "shop-probe"))
    planned = {plan for record in records for each in of_kind(record.events, CellsPlanned) for plan in each.cells}
    damaged = {record.plan for record in records if any(judged.is_damage for judged in of_kind(record.events, CellJudged))}
    told = ends(suite)
    assert code == 1 and told.pop("conclusion") == "failure damage"
    assert set(told) == planned and {name for name, end in told.items() if end == "failure damage"} == damaged
    assert Counter(told.values()) == {"passed": len(planned) - len(damaged), "failure damage": len(damaged)}
    assert (suite.attrib["tests"], suite.attrib["failures"]) == (str(len(planned) + 1), str(len(damaged) + 1))


def test_what_is_undecided_is_skipped_with_its_reason_and_fails_nothing(tmp_path: Path) -> None:
    changed = {f"{PAY}.late": "no_verdict", f"{PAY}.twice": "not_applicable"}
    runs = [
        judged_anew(run, verdict=changed[run.plan], why="the store was busy") if run.plan in changed else run
        for run in of_bound()
        if run.plan != f"{PAY}.error"
    ]
    code, suite, told, comment = shown(tmp_path, *runs)
    skipped = {name for name, end in ends(suite).items() if end == "skipped"}
    assert code == 3 and skipped == {"conclusion", f"{PAY}.late", f"{PAY}.twice", f"{PAY}.error"}
    assert "failure" not in " ".join(ends(suite).values())
    reasons = {case.attrib["name"]: case[0].attrib["message"] for case in suite if len(case)}
    assert "the store was busy" in reasons[f"{PAY}.late"] and reasons[f"{PAY}.error"] == "it was not run"
    assert told["missing"] == [f"{PAY}.error"] and comment.startswith("## bench probe: ? undecided\n")


def test_a_tools_damage_is_a_failure_of_its_own_kind(tmp_path: Path) -> None:
    by_tool = CellFinding("doubled", PAY, 2, (row(2),), (3,), "tool")
    runs = [
        judged_anew(run, verdict="doubled", findings=(by_tool,)) if run.plan == f"{PAY}.twice" else run for run in of_bound()
    ]
    code, suite, told, _ = shown(tmp_path, *runs)
    failed = {name: end for name, end in ends(suite).items() if end != "passed"}
    assert (code, told["exit_code"], failed) == (4, 4, {"conclusion": "failure tool", f"{PAY}.twice": "failure tool"})


def test_a_probe_without_damage_has_a_suite_in_which_all_passes(tmp_path: Path) -> None:
    code, suite, told, comment = shown(tmp_path, *of_bound())
    assert (code, told["verdict"], set(ends(suite).values())) == (0, "none", {"passed"})
    assert comment.startswith("## bench probe: ✓ no damage\n")


def test_what_could_not_be_probed_is_an_error_with_the_reason(tmp_path: Path) -> None:
    code, suite, told, comment = shown(tmp_path, CellRun("clean", 0, (), {}, 0.0, problem="the agent ended with code 1"))
    assert (code, ends(suite), told["cells"]) == (2, {"conclusion": "error"}, [])
    assert "could not be probed: the agent ended with code 1" in comment


def test_the_json_holds_each_cell_with_its_rows_and_its_schema_is_documented(tmp_path: Path) -> None:
    _, _, told, _ = shown(tmp_path)
    summary = SUMMARY.validate_python(told)
    assert summary == summary_of(read_probe(tmp_path / "results" / "shop-probe"))
    [lost] = [each for each in summary.cells if each.cell == f"{PAY}.lost"]
    assert (lost.verdict, lost.runs, lost.damaged, lost.rows[0].after) == ("doubled", 2, 2, {"id": 2, "order": 7, "amount": 30})
    assert told["version"] == 1 and json.loads(SCHEMA.read_text(encoding="utf-8")) == SUMMARY.json_schema(mode="serialization")


def test_the_comment_begins_with_the_verdict_and_the_worst_case_and_its_rows_before_the_table(tmp_path: Path) -> None:
    _, _, told, comment = shown(tmp_path)
    parts = [
        "## bench probe: ✕ damage",
        str(told["sentence"]),
        "Worst: shop.pay#1.lost: doubled",
        "Rows: orders.payments",
        "| Cell |",
    ]
    places = [comment.index(part) for part in parts]
    assert places == sorted(places) and places[0] == 0
    lines = [line for line in comment.splitlines() if line.startswith("| shop.") or line.startswith("| model.")]
    assert len(lines) == COUNT and "✕ doubled | damage in 2 of 2 |" in lines[0]


def test_what_strangers_write_makes_no_markdown(tmp_path: Path) -> None:
    run = cell(f"{PAY}.lost", 0, PLANNED[1], "lost", doubled=True)
    run = judged_anew(
        run, findings=(CellFinding("doubled", PAY, 2, (replace(row(2), key="![x](http://e.example) | <b>"),), (4,)),)
    )
    comment = as_markdown(
        read := read_probe(write(tmp_path / "p", *cells(frozenset()), replace(run, repetition=7))), summary_of(read)
    )
    assert r"\![x\](http://e.example) \| \<b>" in comment and "![x](" not in comment


def test_a_comment_of_very_many_cells_is_cut_and_says_so(tmp_path: Path) -> None:
    summary = summary_of(read := read_probe(write(tmp_path / "p")))
    many = replace(summary, cells=summary.cells * 10)
    comment = as_markdown(read, many)
    assert f"- {COUNT * 10 - MAX_TABLE_CELLS} further cells: probe.html has them." in comment and "| ✕ doubled |" in comment


@pytest.mark.parametrize("verdict", ["did_not_end", "repeated", "no_verdict", "not_applicable"])
def test_what_is_no_pass_is_never_shown_as_passed(tmp_path: Path, verdict: str) -> None:
    runs = [judged_anew(run, verdict=verdict) if run.plan == f"{PAY}.late" else run for run in of_bound()]
    _, suite, _, _ = shown(tmp_path, *runs)
    assert ends(suite)[f"{PAY}.late"] == "skipped"
