"""The committed scorecards as pages, made of the numbers that stand beside them: `python tools/reports/scorecard_pages.py`.

`reports/NAME/scorecard.json.gz` has each number, and each trial's kills, its end, and its damage beyond the control.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from pydantic import TypeAdapter

from bench.read.render.table import markdown
from bench.worlds.read.scorecard.card import Scorecard
from bench.worlds.read.scorecard.tables import tables
from bench.worlds.read.scorecard.words import INTRODUCTION, findings, warnings

REPORTS = Path(__file__).parents[2] / "reports"
NUMBERS, PAGE = "scorecard.json.gz", "scorecard.md"


def folders() -> list[Path]:
    return sorted(path.parent for path in REPORTS.glob(f"*/{NUMBERS}"))


def page(folder: Path) -> str:
    card = TypeAdapter(Scorecard).validate_json(gzip.decompress((folder / NUMBERS).read_bytes()))
    first, *others = (markdown(table).replace("### ", "## ", 1) for table in tables(card))
    lines = [f"# Recovery scorecard: {', '.join(world.name for world in card.worlds)}", ""]
    lines += [f"**{warning}**\n" for warning in warnings(card)]
    lines += [INTRODUCTION, "", first, "## In words", "", *(f"- {finding}" for finding in findings(card)), "", *others]
    return "\n".join(lines)


if __name__ == "__main__":
    for folder in folders():
        (folder / PAGE).write_text(page(folder), encoding="utf-8")
