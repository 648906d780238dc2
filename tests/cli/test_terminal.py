"""What is printed can be read, however narrow the terminal is."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from bench.cli.terminal import Terminal


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
