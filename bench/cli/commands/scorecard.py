"""The command `bench scorecard`, and the comparison of scorecards for `bench compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.cli.command_part import Compared
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError, nearest
from bench.common.files import write_whole
from bench.common.paths import folder_of

# Code that reads results imports pandas and scipy, which slow down the start, so it is imported in the functions that use it.
if TYPE_CHECKING:
    from bench.worlds.read.scorecard.card import Scorecard

Format = Literal["terminal", "markdown", "html", "json"]
out = Terminal()


def scorecard(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Runs' names under results/, or folders; or a scorecard's JSON or .json.gz."),
    ],
    form: Annotated[Format, typer.Option("--format", help="terminal, markdown, html or json.")] = "terminal",
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of the terminal.")] = None,
    badge: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON of a badge, for shields.io; of one system.")
    ] = None,
    system: Annotated[list[str] | None, typer.Option(help="Show only this system; may be given more than once.")] = None,
) -> None:
    """Show how surely systems recover, and what they break.

    The runs need a pack with a world, the plan `none`, and fault plans that kill the system or keep answers from it. Several
    runs are shown together if they share the seed, what the pack asks, and the fault plans' text. Each run must
    pass `bench verify`.

    For example: bench scorecard renewal-simulated
    """
    from bench.worlds.read.scorecard.badge import badge as badge_of  # noqa: PLC0415

    if form == "html" and to is None:
        raise ConfigError("a page is written to a file: name it with --to scorecard.html")
    card = _only(scorecard_in(runs), system or ())
    written = badge_of(card) if badge else ""
    if form == "terminal" and to is None:
        _print(card)
    else:
        _write(_text(card, form), to)
    if badge:
        _write(written, badge)


def is_scorecard(name: str) -> bool:
    """Return whether a name is a scorecard's file, and not a run."""
    return name.removesuffix(".gz").endswith(".json") and not Path(name).is_dir()


def scorecard_in(names: Sequence[str]) -> Scorecard:
    """Return the scorecard of these runs, or read it from a file. Raise ResultsError if a run fails verification."""
    from bench.read.analysis.frames import load_run  # noqa: PLC0415
    from bench.worlds.read.scorecard.build import scorecard_of  # noqa: PLC0415
    from bench.worlds.read.scorecard.card import read_scorecard  # noqa: PLC0415

    if is_scorecard(names[0]):
        if len(names) > 1:
            raise ConfigError(f"{names[0]} is one scorecard; give one file, or runs")
        return read_scorecard(Path(names[0]))
    return scorecard_of([load_run(folder, check=True) for folder in map(folder_of, names)])


def compared(first: str, second: str, gate: Mapping[str, float], whole: bool, allowed: Mapping[str, int]) -> Compared:
    """Compare the scorecard of the second run or file with the scorecard of the first."""
    from bench.worlds.read.scorecard import compare_table  # noqa: PLC0415
    from bench.worlds.read.scorecard.compare import compare_scorecards  # noqa: PLC0415

    comparison = compare_scorecards(scorecard_in([first]), scorecard_in([second]), gate, whole, allowed)
    line = f"{Path(second).name} against {Path(first).name}: {compare_table.summary(comparison)}"
    shown = compare_table.compare_table(comparison)
    return Compared(comparison.verdict, (shown,), compare_table.as_json(comparison), (line,), compare_table.WIDE)


def _only(card: Scorecard, systems: Sequence[str]) -> Scorecard:
    from dataclasses import replace  # noqa: PLC0415

    known = list(dict.fromkeys(row.system for row in card.rows))
    for name in systems:
        if name not in known:
            raise ResultsError(f"no row of the system '{name}'; {nearest(name, known)}")
    return replace(card, rows=tuple(row for row in card.rows if row.system in systems)) if systems else card


def _text(card: Scorecard, form: Format) -> str:
    from bench.worlds.read.scorecard.card import as_json  # noqa: PLC0415
    from bench.worlds.read.scorecard.page import as_html, as_markdown  # noqa: PLC0415

    return {"json": as_json, "html": as_html}.get(form, as_markdown)(card)


def _write(text: str, to: Path | None) -> None:
    if to is None:
        out.print(text, end="")
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    write_whole(to, text.encode())
    out.print(f"{to} is written")


def _print(card: Scorecard) -> None:
    """Print the scorecard: findings in words, the tables, the tables' notes, and the provenance."""
    from bench.worlds.read.scorecard.page import title, warnings  # noqa: PLC0415
    from bench.worlds.read.scorecard.tables import glance, in_short  # noqa: PLC0415
    from bench.worlds.read.scorecard.words import ABOUT, findings, provenance  # noqa: PLC0415

    wide = Terminal(wrapped=True)
    wide.print(f"{title(card)}\n")
    for text in (*warnings(card), ABOUT, *(f"- {finding}" for finding in findings(card))):
        wide.print(f"{text}\n")
    for table in (glance(card), in_short(card)):
        wide.show_report_table(table)
        for note in table.footer:
            wide.print(f"- {note}")
        wide.print()
    for name, text in provenance(card):
        wide.print(f"{name}: {text}")
