"""What is printed can be read, however narrow the terminal is."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from bench.cli.terminal import Terminal


@pytest.mark.parametrize("columns", [1, 20, 200])
def test_no_word_of_a_table_is_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal, written = Terminal(), io.StringIO()
    terminal.file = written
    table = Table("scenario", "architecture", "tokens")
    table.add_row("contract_renewal", "runtime_structured", "1,234,567")
    terminal.show(table)
    assert all(word in written.getvalue() for word in ("scenario", "contract_renewal", "runtime_structured", "1,234,567"))
    assert "…" not in written.getvalue()
