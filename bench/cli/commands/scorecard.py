"""The command `bench scorecard`."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.commands.report_tables import show_report_table
from bench.cli.terminal import Terminal
from bench.common.paths import folder_of


def scorecard(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Runs' names under results/, or folders.")],
) -> None:
    """Show how often systems recover, and what they damage.

    The runs need a pack with a world, the plan `none`, and fault plans that kill the system or drop answers to it. Several runs
    are shown together if their seed, packs and fault plans are the same. Each run must pass `bench verify`. `bench report` has
    the same tables with more columns.

    For example: bench scorecard renewal-simulated
    """
    # These import pandas and scipy, which slow down the start.
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.worlds.read.scorecard.build import scorecard_of  # noqa: PLC0415
    from bench.worlds.read.scorecard.tables import overview, short_table  # noqa: PLC0415
    from bench.worlds.read.scorecard.words import INTRODUCTION, findings, warnings  # noqa: PLC0415

    card = scorecard_of([load_run(folder, check=True) for folder in map(folder_of, runs)])
    wide = Terminal(wrapped=True)
    wide.print(f"Recovery scorecard: {', '.join(world.name for world in card.worlds)}\n")
    for text in (*warnings(card), INTRODUCTION, *(f"- {finding}" for finding in findings(card))):
        wide.print(f"{text}\n")
    for table in (overview(card), short_table(card)):
        show_report_table(wide, table)
        wide.print("\n".join(f"- {note}" for note in table.footer), end="\n\n")
