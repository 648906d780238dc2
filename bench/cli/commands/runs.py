"""The command `bench runs`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from bench.cli.shown import RunsOutput, RunsOutputCache, RunsTable
from bench.cli.terminal import Terminal
from bench.common.errors import ResultsError
from bench.common.paths import REPORTS, RESULTS, cache_folder
from bench.record.archive import SUFFIX

if TYPE_CHECKING:
    from bench.read.overview.kept import SpentTrials
    from bench.read.overview.runs import ListedRun

out, err = Terminal(), Terminal(stderr=True)


def runs(
    results: Annotated[Path, typer.Argument(help="The folder of runs.")] = RESULTS,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="List only runs with this tag; may be given more than once.")
    ] = None,
) -> None:
    """List all runs and what they cost, and write a page of them.

    Your runs come first, then the runs of this repository, each group with its sums. The page can be sorted and filtered. If a
    folder cannot be read, a line names it, and all other runs are listed.

    For example: bench runs --tag prompt-2
    """
    if not results.is_dir():
        raise ResultsError(f"{results}: is not a folder of runs; name another, or run: bench run configs/smoke.toml --report")
    tracked = tracked_runs(results)
    cache = RunsOutputCache(results, REPORTS / "index.html", ["tags", *(tag or ()), "tracked", *sorted(tracked)])
    output = cache.read()
    if output is None:
        output = _read(results, tag or (), tracked)
        cache.store(output)
    for group in output.tables:
        table = Table(box=None, pad_edge=False)
        for title in group.titles:
            table.add_column(title, overflow="fold", no_wrap=title in ("started", "trials", "tokens", "dollars"))
        for row in group.rows:
            table.add_row(*row)
        out.show(table)
        out.print(f"{group.line}\n")
    for line in output.unread:
        err.print(f"not read: {line}")
    out.print(output.last)


def _read(results: Path, tags: Sequence[str], tracked: frozenset[str]) -> RunsOutput:
    """Read the runs, write the page, and return the output of the command."""
    # Here, because these import pandas, and no other command should wait for that.
    from bench.read.overview.runs import index_of, index_page, sum_spent  # noqa: PLC0415
    from bench.record.files import write_files  # noqa: PLC0415

    with err.showing_progress() as show:
        index = index_of(results, REPORTS, cache_folder("runs"), tracked, show).tagged(tags)
    tables = []
    for group, group_runs in index.groups.items():
        total = sum_spent(group_runs)
        line = f"{group}: {len(group_runs)} run{'' if len(group_runs) == 1 else 's'}, {total.text}"
        tables.append(_table(group_runs, total, line))
    [page] = write_files(REPORTS, {"index.html": index_page(index).encode()})
    count = f"{len(index.runs)} run{'' if len(index.runs) == 1 else 's'}"
    last = f"{count}; for prices and verdicts open {page}"
    return RunsOutput(tables=tuple(tables), unread=index.unread, last=last)


def _table(runs: Sequence[ListedRun], total: SpentTrials, line: str) -> RunsTable:
    """Return a table with a row for each run and a row of the sums."""
    labelled = any(listed.row.tags or listed.row.note for listed in runs)
    rows = []
    for row in (listed.row for listed in runs):
        spent, labels = row.spent, "; ".join(filter(None, (", ".join(row.tags), row.note)))
        cells = (row.started[:10], row.name, row.trials, row.solved, f"{spent.tokens:,}", spent.cost)
        rows.append((*cells, *([labels] if labelled else [])))
    rows.append(("all", "", f"{total.trials:,}", "", f"{total.tokens:,}", total.cost))
    titles = ("started", "run", "trials", "solved by an arm", "tokens", "dollars", *(["tags, note"] if labelled else []))
    return RunsTable(titles=titles, rows=tuple(rows), line=line)


def tracked_runs(results: Path) -> frozenset[str]:
    """Return the names of the runs that git tracks, which came with the clone. Without git the set is empty."""
    words = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z"]
    try:
        listing = subprocess.run(words, cwd=results, capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    paths = (Path(os.fsdecode(name)) for name in listing.stdout.split(b"\0") if name)
    return frozenset(path.parts[0].removesuffix(SUFFIX) for path in paths if len(path.parts) > 1 or path.suffix == SUFFIX)
