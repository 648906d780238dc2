"""The README is short, and what it shows is what there is."""

from __future__ import annotations

import re
from pathlib import Path

from blocks import blocks_of

import bench
from bench.experiment.config import Config, load_config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDING = "paper-qwen2.5-coder-1.5b-instruct"


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) <= 130


def test_the_architecture_that_the_readme_shows_is_the_real_one() -> None:
    shown = [block.text for block in blocks_of(README) if block.language == "python"]
    assert (ROOT / "bench" / "architectures" / "monolithic.py").read_text(encoding="utf-8") in shown


def test_the_config_that_the_readme_shows_is_short_and_can_be_read(tmp_path: Path) -> None:
    [block] = [block for block in blocks_of(README) if block.language == "toml"]
    path = tmp_path / "config.toml"
    path.write_text(block.text, encoding="utf-8")
    assert len(block.text.splitlines()) <= 9 and isinstance(load_config(path, {}), Config)


def test_each_row_of_the_readmes_results_stands_in_the_committed_report() -> None:
    reported = (ROOT / "reports" / RECORDING / "tables" / "first_round.md").read_text(encoding="utf-8").splitlines()
    rows = re.search(r"^\| Scenario .*?(?=\n\n)", README, re.MULTILINE | re.DOTALL)
    assert rows and len(rows[0].splitlines()) == 8
    assert [row for row in rows[0].splitlines() if row not in reported] == []


def test_the_readmes_caveat_says_how_many_trials_the_run_solved() -> None:
    said = re.search(r"\*\*(\d+) of (\d+) trials\*\*", README)
    outcomes = bench.load_run(ROOT / "results" / RECORDING).trials["outcome"]
    assert said and said.groups() == (str(int((outcomes == "solved").sum())), str(len(outcomes)))
