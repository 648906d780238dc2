"""A shell completes commands and options, and is told how by one command."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench, bench_anew

CONFIG = """name = "mine"
scenarios = ["demo"]
architectures = ["static"]
models = ["simulated"]
plans = ["lost_field"]
repetitions = 1
seed = 1
model.simulated.kind = "simulated"
plan.lost_field.faults = [{ point = "output", effect = "missing_field", attempts = [1] }]
"""


@pytest.mark.parametrize(
    ("words", "number", "completed"),
    [
        ("bench wa", 1, ["watch"]),
        ("bench new ", 2, ["scenario", "plugin"]),
        ("bench run --wor", 2, ["--workers"]),
        ("bench list eff", 2, ["effects"]),
        ("bench report mi", 2, ["mine-simulated"]),
        ("bench run mine.toml --model recorded:", 4, ["recorded:mine-simulated"]),
        ("bench run broken.toml --plan no", 4, ["none"]),
        ("bench run mine.toml --model sim", 4, ["simulated"]),
        ("bench run mine.toml --plan lo", 4, ["lost_field"]),
        ("bench run mine.toml --scenario de", 4, ["demo"]),
        ("bench nothing-like-it", 1, []),
    ],
)
def test_a_word_that_is_begun_is_completed(tmp_path: Path, words: str, number: int, completed: list[str]) -> None:
    (tmp_path / "mine.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("name = ", encoding="utf-8")
    for folder, file in (("results/mine-simulated", "manifest.json"), ("scenarios/demo", "scenario.py")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / file).touch()
    asked = {"_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": f"{number}"}
    code, out, err = bench(tmp_path, **asked)
    assert (code, out.split(), err) == (0, completed, "")


def test_completion_is_installed_for_a_shell_by_one_command(tmp_path: Path) -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # typer looks for a shell among the processes above otherwise
    code, out, err = bench_anew(tmp_path, "--install-completion", "bash", HOME=str(tmp_path), **named)
    assert (code, err) == (0, "") and "bash completion installed" in out
    installed = (tmp_path / ".bash_completions" / "bench.sh").read_text(encoding="utf-8")
    assert "_BENCH_COMPLETE=complete_bash" in installed
    assert "bench.sh" in (tmp_path / ".bashrc").read_text(encoding="utf-8")
