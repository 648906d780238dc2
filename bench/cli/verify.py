"""The command `bench verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.terminal import Terminal
from bench.errors import ResultsError
from bench.experiment.files import runs_in
from bench.experiment.verify import sources
from bench.experiment.verify import verify as checked
from bench.paths import RESULTS, folder_of


def verify(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN ...]", help="Names under results/, or folders; all of results/, if none."),
    ] = None,
) -> None:
    """Are the records of runs as they were written? Exits with 1 where a line was changed, lost, doubled or moved."""
    folders = [folder_of(run) for run in runs] if runs else runs_in(RESULTS)
    if not folders:
        raise ResultsError(f"{RESULTS}: holds no run; name a folder that `bench run` wrote")
    sound = [_verified(Terminal(), folder) for folder in folders]
    raise typer.Exit(0 if all(sound) else 1)


def _verified(out: Terminal, folder: Path) -> bool:
    try:
        found = checked(folder)
    except ResultsError as error:
        out.print(str(error))
        return False
    for defect in found.defects:
        out.print(defect.text)
    if not found.defects:
        held = f"{found.trials} trials, {found.responses} responses, {found.texts} texts"
        out.print(f"{folder}: sound: {held}; {sources(folder)}")
    return not found.defects
