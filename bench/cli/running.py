"""A run as a person sees it: its beginning, what stops it, its end."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

import typer
from rich.table import Table

from bench.cli.progress import RunProgress, SoFar
from bench.cli.terminal import Terminal
from bench.experiment.matrix import Matrix
from bench.experiment.preview import preview
from bench.experiment.runner import missing, run_matrix
from bench.experiment.session import Session
from bench.experiment.store import RunWriter
from bench.runtime import loop
from bench.signals import Stop, exit_code


def run_to_its_end(matrix: Matrix, writer: RunWriter, session: Session, out: Terminal, err: Terminal) -> None:
    """Run what is missing, and say how it ended. Raises typer.Exit where that is not done: 128 + n for the signal n, else 1."""
    todo, so_far = missing(matrix.specs, writer.recorded), SoFar(matrix)
    out.print(f"{len(matrix.specs)} trials, {len(matrix.specs) - len(todo)} of them recorded already in {writer.folder}")
    try:
        with RunProgress(out, len(todo), so_far) as progress:
            stopped = loop.run(_until_stopped(matrix, writer, progress, session, err))
    except KeyboardInterrupt:  # before anything ran
        stopped = signal.SIGINT
    finally:
        writer.close()
    if stopped:
        err.print(f"stopped; what is recorded is kept in {writer.folder}: the same command goes on from there")
        raise typer.Exit(exit_code(stopped))
    if so_far.trials < len(todo):
        done = f"{so_far.trials} of {len(todo)} missing trials are recorded, and what else was answered is kept"
        err.print(f"stopped: {session.ending}; {done}; the same command goes on, with this budget anew, a larger one or none")
        raise typer.Exit(1)
    out.print(f"done: {so_far.ends or 'nothing was missing'}; {so_far.account}; next: bench report {writer.folder.name}")
    for line in (*so_far.client_bound(), *so_far.unknown_words()):
        out.print(line)
    if errors := list(so_far.errors()):
        err.print("\n".join(errors))
        raise typer.Exit(1)


async def _until_stopped(
    matrix: Matrix, writer: RunWriter, progress: RunProgress, session: Session, err: Terminal
) -> signal.Signals | None:
    """Run to the end, or until a signal asks to stop: which."""

    def stop_soon() -> None:
        progress.stop()  # a second signal ends the process as it stands: the terminal is itself again by then
        session.end("a signal asked for it")
        if not session.has_begun:
            running.cancel()
        elif waited_for := session.in_flight:
            err.print(f"stopping: waiting for {waited_for} calls in flight; Ctrl-C again ends at once and gives them up")

    running = asyncio.create_task(run_matrix(matrix, writer, progress.saw, session))
    with Stop(stop_soon) as stop, suppress(asyncio.CancelledError):
        await running
    return stop.by


def show_preview(out: Terminal, matrix: Matrix) -> None:
    table = Table("scenario", "architecture", "model", "plan", "trials", "calls", "tokens", "cost", box=None)
    for row in preview(matrix):
        cost = "unknown" if row.cost is None else f"{row.cost:.2f}"
        arm = (row.scenario, row.architecture, row.model, row.plan)
        calls, tokens = ("unknown" if number is None else f"{number:,}" for number in (row.calls, row.tokens))
        table.add_row(*arm, str(row.trials), calls, tokens, cost)
    out.show(table)
    out.print("Ahead of time, as if every reply but the faulted ones were right at once: a model's own failures come on top.")
