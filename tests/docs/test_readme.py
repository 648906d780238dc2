"""The README is short, and what it shows is what there is."""

from __future__ import annotations

import re
from pathlib import Path

from blocks import blocks_of
from picture import picture_of

import bench
from bench.probe.read.run import read_probe
from bench.probe.read.summary import as_markdown, summary_of
from bench.run.experiment.config import Config, load_config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDING = "paper-qwen2.5-coder-1.5b-instruct"


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) < 90


def test_the_readmes_line_to_install_is_that_of_the_page_on_installing() -> None:
    """So the page is the one place to change when the package's name is published."""
    lines = [
        [line.partition("    #")[0] for line in text.splitlines() if "pip install" in line and line.startswith("$")]
        for text in (README, (ROOT / "docs" / "install.md").read_text(encoding="utf-8"))
    ]
    assert lines[0][:1] == lines[1][:1] != []


def test_the_architecture_that_the_readme_shows_is_the_real_one() -> None:
    shown = [block.text for block in blocks_of(README) if block.language == "python"]
    assert (ROOT / "bench" / "run" / "architectures" / "monolithic.py").read_text(encoding="utf-8") in shown


def test_the_config_that_the_readme_shows_is_short_and_can_be_read(tmp_path: Path) -> None:
    [block] = [block for block in blocks_of(README) if block.language == "toml"]
    path = tmp_path / "config.toml"
    path.write_text(block.text, encoding="utf-8")
    assert len(block.text.splitlines()) <= 9 and isinstance(load_config(path, {}), Config)


def test_the_readmes_caveat_says_how_many_trials_the_run_solved() -> None:
    match = re.search(r"\*\*This model solved (\d+) of (\d+) trials", README)
    outcomes = bench.load_run(ROOT / "results" / RECORDING).trials["outcome"]
    assert match and match.groups() == (str(int((outcomes == "solved").sum())), str(len(outcomes)))


def test_the_page_of_the_recorded_probe_that_git_holds_is_what_its_report_writes() -> None:
    probe = read_probe(ROOT / "docs" / "pictures" / "bill_agent-probe")
    page = ROOT / "reports" / "bill_agent-probe" / "probe.md"
    assert as_markdown(probe, summary_of(probe)) == page.read_text(encoding="utf-8")


def test_the_readmes_picture_shows_the_last_lines_of_the_recorded_probe() -> None:
    pictures = ROOT / "docs" / "pictures"
    assert (pictures / "probe.svg").read_text(encoding="utf-8") == picture_of(pictures / "bill_agent-probe")
