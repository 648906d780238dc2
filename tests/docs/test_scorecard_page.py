"""The numbers of the page on scorecards are what its command gives now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from study_runs import run_of_matrix

from bench.read.render.cells import text_of
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.worlds.read.scorecard.build import scorecard_of
from bench.worlds.read.scorecard.tables import glance

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scorecard.md").read_text(encoding="utf-8")


def rounded(share: str) -> str:
    """A share as the page writes it: without its value, and without digits behind the point."""
    counts, low, high = re.fullmatch(r"(\d+/\d+) = [\d.]+% \[([\d.]+)%, ([\d.]+)%\]", share).groups()  # type: ignore[union-attr]
    return f"{counts} [{float(low):.0f}%, {float(high):.0f}%]"


@pytest.mark.endurance
def test_the_pages_first_table_is_that_of_forty_customers(tmp_path: Path) -> None:
    config = load_config(ROOT / "configs" / "renewal.toml", {"instances": 40, "plans": ["none", "crash"]})
    shown = glance(scorecard_of([run_of_matrix(tmp_path, build_matrix(config, [ROOT / "scenarios"], "code"))]))
    for row in ([text_of(cell) for cell in line] for line in shown.rows):
        cells = dict(zip(shown.columns, row, strict=True))
        tokens = cells["Tokens, × control"].removesuffix(" (interval n/a)")
        undisturbed = cells["Right, undisturbed"].partition(" = ")[0]
        [of_system] = [line for line in PAGE.splitlines() if line.startswith(f"| `{cells['System']}` |")]
        assert f"| {undisturbed} | {cells['Crashes']} in " in of_system
        assert f"| {rounded(cells['Right after a crash'])} | {cells['Damaged per 100 crashes']} | {tokens} |" in of_system


def test_what_the_page_says_of_conversations_is_what_their_committed_scorecard_counts() -> None:
    report = (ROOT / "reports" / "support_desk-simulated" / "scorecard.md").read_text(encoding="utf-8")
    at_a_glance, _ = report.split("## In words")
    by_name = {
        name: cells for name, *cells in (line.strip("| ").split(" | ") for line in at_a_glance.splitlines() if line[:2] == "| ")
    }
    remedied = {tuple(cells) for name, cells in by_name.items() if name.endswith("_remedied")}
    assert len(remedied) == 1
    page = " ".join(PAGE.split())
    for words, cells in (
        ("`bare_agent` in", by_name["bare_agent"]),
        ("`supervisor_gate`, which denies what was done already, in", by_name["supervisor_gate"]),
        ("each of nine patterns with remedies in", next(iter(remedied))),
    ):
        assert f"{words} {rounded(cells[2])}" in page
