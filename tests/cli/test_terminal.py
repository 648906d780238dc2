"""What is printed can be read, however narrow the terminal is."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from bench.cli.terminal import REPORT_TABLE_WIDTH, Terminal
from bench.read.render.table import Table as ReportTable


@pytest.mark.parametrize("columns", [1, 20, 45, 46, 47, 48, 49, 50, 200])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_no_word_of_a_table_is_cut(columns: int, is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1" if is_terminal else "")
    terminal, written = Terminal(), io.StringIO()
    terminal.file = written
    table = Table("scenario", "architecture", "tokens")
    table.add_row("contract_renewal", "runtime_structured", "1,234,567")
    terminal.show(table)
    assert all(word in written.getvalue() for word in ("scenario", "contract_renewal", "runtime_structured", "1,234,567"))
    assert "…" not in written.getvalue()


def test_a_terminal_without_a_width_prints_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    terminal, written = Terminal(), io.StringIO()
    terminal.file = written
    terminal.print("packs")
    assert written.getvalue() == "packs\n"


def test_a_pipe_gets_each_row_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal, written = Terminal(), io.StringIO()
    terminal.file = written
    table = Table(box=None)
    table.add_column("run", overflow="fold")
    table.add_row("a-name-that-is-longer-than-the-terminal")
    terminal.show(table)
    assert "a-name-that-is-longer-than-the-terminal" in written.getvalue()


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_a_report_s_table_breaks_no_word_and_no_line_is_longer_than_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal, written = Terminal(wrapped=True), io.StringIO()
    terminal.file = written
    titles = ("System", "Right after a crash", "Damaged per 100 crashes", "Trials that went another course")
    row = ("contract_renewal_with_keys", "12/15 = 80.0% [51.9%, 95.7%]", "n/a", "undetermined")
    terminal.show_report_table(ReportTable("shown", "At a glance", titles, (row, row)))
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    words = [word for text in (*titles, *row) for word in text.split()]
    assert all(written.getvalue().count(word) >= 1 for word in words)


@pytest.mark.parametrize(("columns", "cell", "in_lines"), [("", "a" * 70, 1), ("100", "a" * 70, 2), ("", "a b " * 60, 4)])
def test_a_report_s_table_in_a_pipe_is_as_wide_as_its_cells_or_as_it_may_be(
    columns: str, cell: str, in_lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    terminal, written = Terminal(wrapped=True), io.StringIO()
    terminal.file = written
    terminal.show_report_table(ReportTable("shown", "At a glance", ("First", "Second"), ((cell, cell),)))
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= (int(columns) if columns else REPORT_TABLE_WIDTH)
    assert sum("a" in line for line in lines[1:]) == in_lines


def test_rows_that_agree_stand_together_where_a_table_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    terminal, written = Terminal(wrapped=True), io.StringIO()
    terminal.file = written
    titles = ("Scenario", "Plan", "Measure", "Finding")
    rows = [
        (f"a_scenario_with_a_long_name_{scenario}", "first_reply", measure, "inconclusive")
        for scenario in "ab"
        for measure in ("solved", "seconds_of_the_calls")
    ]
    terminal.show_report_table(ReportTable("shown", "At a glance", titles, tuple(rows)))
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= 60 and lines[0] == "At a glance"
    assert [line for line in lines if line.startswith("Scenario")] == [
        "Scenario: a_scenario_with_a_long_name_a",
        "Scenario: a_scenario_with_a_long_name_b",
    ]
    assert len({len(line) for line in lines if line.startswith("│")}) == 1, "the columns are equally wide"
    assert sum("inconclusive" in line for line in lines) == 4


@pytest.mark.parametrize(("passed", "shown"), [(0, ""), (120, "half of it\n")])
def test_in_a_pipe_a_line_a_minute_says_how_far_the_work_is(passed: int, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("bench.cli.terminal.perf_counter", lambda: now)
    terminal, written = Terminal(), io.StringIO()
    terminal.file = written
    with terminal.showing_progress() as show:
        show("begun")
        now += passed
        show("half of it")
        show("more of it")
    assert written.getvalue() == shown
