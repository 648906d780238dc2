"""The command `bench verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import RESULTS, folder_of
from bench.record.files import runs_in
from bench.record.reading import read_manifest
from bench.record.store import is_written
from bench.record.verify import sources, whole_digest
from bench.record.verify import verify as verify_run


def verify(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN ...]", help="Names under results/, or folders; all runs in results/, if not given."),
    ] = None,
    digest: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Check that a single run has this published digest.")
    ] = None,
) -> None:
    """Check that the records of runs are complete and unchanged.

    Exits with 1 if a line was changed, lost, doubled or moved, or the end is missing.

    The command prints a digest of each sound run, for its author to publish. --digest compares a run with a published digest: a
    sound run with another digest was recorded again, or was continued after the publication.

    For example: bench verify smoke-simulated
    """
    if digest is not None and len(runs or ()) != 1:
        raise ConfigError("--digest belongs to one run; name that run alone")
    folders = [folder_of(run) for run in runs] if runs else runs_in(RESULTS)
    if not folders:
        raise ResultsError(f"{RESULTS}: holds no run; name a folder that `bench run` wrote")
    sound = [_verify(Terminal(), folder, digest) for folder in folders]
    raise typer.Exit(0 if all(sound) else 1)


def _verify(out: Terminal, folder: Path, digest: str | None) -> bool:
    """Print whether the records of a run are sound, and return the result."""
    try:
        check = verify_run(folder)
    except ResultsError as error:
        out.print(str(error))
        return False
    for defect in check.defects:
        out.print(defect.text)
    if check.defects:
        if digest is not None:
            out.print(f"{folder}: it has changed since its digest was made")
        return False
    if not check.has_end and not is_written(folder):
        advice = "it was killed, or lines are cut off its end: run it again, or restore it from a copy"
        out.print(f"{folder}: has {check.ending}; {advice}")
        return False
    records = f" in {check.records} records" if check.records != check.trials else ""
    counts = f"{check.trials} trials{records}, {check.responses} responses, {check.texts} texts"
    ending = "" if check.ending == "complete" else f"; not complete: {check.ending}"
    if replaced := read_manifest(folder).replaces:
        ending += f"; chained anew when it was converted from format {replaced.format}"
    run_digest = whole_digest(folder)
    out.print(f"{folder}: sound: {counts}{ending}; {sources(folder)}; digest {run_digest}")
    if digest is not None and digest.strip().lower() != run_digest:
        out.print(f"{folder}: its lines agree with each other, and its digest is another: it was made anew, or it went on")
        return False
    return True
