"""A shell completes commands and options, and is told how by one command."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench_anew


@pytest.mark.parametrize(
    ("words", "number", "completed"),
    [
        ("bench wa", 1, ["watch"]),
        ("bench new ", 2, ["scenario", "plugin"]),
        ("bench run --eng", 2, ["--engine"]),
        ("bench nothing-like-it", 1, []),
    ],
)
def test_a_word_that_is_begun_is_completed(tmp_path: Path, words: str, number: int, completed: list[str]) -> None:
    asked = {"_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": f"{number}"}
    code, out, err = bench_anew(tmp_path, **asked)
    assert (code, out.split(), err) == (0, completed, "")


def test_completion_is_installed_for_a_shell_by_one_command(tmp_path: Path) -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # typer looks for a shell among the processes above otherwise
    code, out, err = bench_anew(tmp_path, "--install-completion", "bash", HOME=str(tmp_path), **named)
    assert (code, err) == (0, "") and "bash completion installed" in out
    installed = (tmp_path / ".bash_completions" / "bench.sh").read_text(encoding="utf-8")
    assert "_BENCH_COMPLETE=complete_bash" in installed
    assert "bench.sh" in (tmp_path / ".bashrc").read_text(encoding="utf-8")
