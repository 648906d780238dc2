"""Commands that put runs together, and hand them to other programs: `bench merge`, `bench export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.terminal import Terminal
from bench.errors import ResultsError
from bench.experiment.merging import merge_parts
from bench.experiment.verify import require_sound
from bench.paths import REPORTS, RESULTS, folder_of, name_of, named

out = Terminal()


def merge(
    parts: Annotated[list[str], typer.Argument(help="The parts' names under results/, their folders, or their archives.")],
    name: Annotated[str, typer.Option(help="The folder under results/ of the run that is made of them.")],
) -> None:
    """Join parts of a run that were recorded apart.

    Parts are shards, or have instances, plans or repetitions of their own. They stay as they are.

    For example: bench merge mine-shard-1-of-2 mine-shard-2-of-2 --name mine
    """
    folders, target = [folder_of(part) for part in parts], named(RESULTS, name)
    if len(folders) < 2:
        raise ResultsError(f"{parts[0]}: is one part alone; name those that are to be merged with it")
    ended, whole = merge_parts(folders, target)
    missing = "complete" if ended == whole else f"{whole - ended} are missing, which `bench run CONFIG --name {name}` runs"
    out.print(f"{target}: {ended} of {whole} trials, {missing}")


def export(
    run: Annotated[str, typer.Argument(help="A run's name under results/, its folder, or its archive.")],
    to: Annotated[Path | None, typer.Option(help="The folder to write into; reports/RUN/FORM, if not given.")] = None,
    form: Annotated[str, typer.Option(help="The form; `bench list` names them.")] = "csv",
) -> None:
    """Write a run in a form that other programs read.

    csv has a file for each frame of `bench.load_run`.

    For example: bench export smoke-simulated --to export
    """
    # Here, because these import pandas, for which no other command should wait.
    from bench.analysis.frames import load_run  # noqa: PLC0415
    from bench.report.exports import EXPORTS  # noqa: PLC0415
    from bench.report.exports import export as write_export  # noqa: PLC0415

    part, folder = EXPORTS.named(form), folder_of(run)
    require_sound(folder)
    to = to or named(REPORTS, name_of(folder)) / form
    written = write_export(load_run(folder), part, to)
    out.print(f"{len(written)} files in {to}: {', '.join(path.name for path in written)}")
