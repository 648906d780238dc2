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
from bench.worlds.read.scorecard.tables import overview

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scorecard.md").read_text(encoding="utf-8")


def rounded(share: str) -> str:
    """A share as the page writes it: without its value, and without digits behind the point."""
    counts, low, high = re.fullmatch(r"(\d+/\d+) = [\d.]+% \[([\d.]+)%, ([\d.]+)%\]", share).groups()  # type: ignore[union-attr]
    return f"{counts} [{float(low):.0f}%, {float(high):.0f}%]"


@pytest.mark.endurance
def test_the_pages_first_table_is_that_of_forty_customers(tmp_path: Path) -> None:
    config = load_config(ROOT / "configs" / "renewal.toml", {"instances": 40, "plans": ["none", "crash"]})
    shown = overview(scorecard_of([run_of_matrix(tmp_path, build_matrix(config, [ROOT / "scenarios"], "code"))]))
    for row in ([text_of(cell) for cell in line] for line in shown.rows):
        cells = dict(zip(shown.columns, row, strict=True))
        tokens = cells["Tokens, × control"].removesuffix(" (interval n/a)")
        undisturbed = cells["Right, undisturbed"].partition(" = ")[0]
        [of_system] = [line for line in PAGE.splitlines() if line.startswith(f"| `{cells['System']}` |")]
        assert f"| {undisturbed} | {cells['Crashes']} in " in of_system
        assert f"| {rounded(cells['Right after a crash'])} | {cells['Damaged per 100 crashes']} | {tokens} |" in of_system
