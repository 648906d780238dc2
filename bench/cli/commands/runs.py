"""The command `bench runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bench.cli.terminal import Terminal
from bench.common.errors import ResultsError
from bench.common.paths import REPORTS, RESULTS

out, err = Terminal(), Terminal(stderr=True)


def runs(
    results: Annotated[Path, typer.Argument(help="The folder of runs.")] = RESULTS,
    reports: Annotated[Path, typer.Option(help="The folder of reports, into which index.html is written.")] = REPORTS,
) -> None:
    """List all runs, and write a page of them with rankings.

    The page sorts and filters, shows each config over time, and ranks those arms of each pack that can be compared. If a folder
    cannot be read, a line names it and the others are listed.

    For example: bench runs
    """
    # Here, because these import pandas, and no other command should wait for that.
    from bench.read.analysis.kept import cache_folder  # noqa: PLC0415
    from bench.read.overview.runs import index_of, index_page, solved_said  # noqa: PLC0415
    from bench.record.files import write_files  # noqa: PLC0415

    if not results.is_dir():
        raise ResultsError(f"{results}: is not a folder of runs; name another, or run: bench run configs/smoke.toml --report")
    index = index_of(results, reports, cache_folder("runs"))
    table = Table(box=None, pad_edge=False)
    for title in ("started", "run", "trials", "solved", "tokens", "dollars"):
        table.add_column(title, overflow="fold", no_wrap=title not in ("run", "solved"))
    for run in index.runs:
        first, solved = run.arms[0], solved_said(run.arms, named=False)
        table.add_row(first.started[:10], first.name, run.trials, solved, f"{run.tokens:,}", run.dollars)
    if index.runs:
        out.show(table)
    for line in index.unread:
        err.print(f"not read: {line}")
    [page] = write_files(reports, {"index.html": index_page(index).encode()})
    count = f"{len(index.runs)} run{'' if len(index.runs) == 1 else 's'}"
    out.print(f"{count}; for prices, verdicts, history and rankings open {page}")
