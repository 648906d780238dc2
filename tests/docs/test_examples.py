"""The example of an architecture is one: it runs, and does what the page says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import blocks_of
from trials import calls, matrix_of, run_all

PAGE = Path(__file__).parents[2] / "docs" / "own_architecture.md"
FAULT = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "total"}


def test_the_ten_lines_solve_a_task_and_a_rejection_throws_everything_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [block] = [block for block in blocks_of(PAGE.read_text(encoding="utf-8")) if block.file == "mine.py"]
    (tmp_path / "the_page_s_own.py").write_text(block.text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    name = "the_page_s_own:from_the_start"
    plain, struck = (run_all(matrix_of(plans=plans, architectures=[name])) for plans in (None, {"plan": [FAULT]}))
    assert [result.record.outcome for result in (*plain, *struck)] == ["solved", "solved"]
    once = [subtasks for subtasks, _, _ in calls(plain[0])]
    assert once and [subtasks for subtasks, _, _ in calls(struck[0])] == [*once[: once.index("total") + 1], *once]
