"""A report's table is printed so that it can be read, however narrow the terminal is."""

from __future__ import annotations

import io

import pytest

from bench.cli.commands.report_tables import REPORT_TABLE_WIDTH, show_report_table
from bench.cli.terminal import Terminal
from bench.read.render.table import Table


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_a_report_s_table_breaks_no_word_and_no_line_is_longer_than_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal, written = Terminal(wrapped=True), io.StringIO()
    terminal.file = written
    titles = ("System", "Right after a crash", "Damaged per 100 crashes", "Trials that went another course")
    row = ("contract_renewal_with_keys", "12/15 = 80.0% [51.9%, 95.7%]", "n/a", "undetermined")
    show_report_table(terminal, Table("shown", "At a glance", titles, (row, row)))
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
    show_report_table(terminal, Table("shown", "At a glance", ("First", "Second"), ((cell, cell),)))
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
    show_report_table(terminal, Table("shown", "At a glance", titles, tuple(rows)))
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= 60 and lines[0] == "At a glance"
    assert [line for line in lines if line.startswith("Scenario")] == [
        "Scenario: a_scenario_with_a_long_name_a",
        "Scenario: a_scenario_with_a_long_name_b",
    ]
    assert len({len(line) for line in lines if line.startswith("│")}) == 1, "the columns are equally wide"
    assert sum("inconclusive" in line for line in lines) == 4
