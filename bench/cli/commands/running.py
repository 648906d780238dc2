"""Running the missing trials of a config, with the lines that a person sees before, during and after the run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from contextlib import suppress

import typer
from rich.table import Table

from bench.cli.commands.progress import RunProgress
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, EndpointError
from bench.common.signals import Stop, exit_code
from bench.record.reading import read_trials
from bench.record.store import RunWriter
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.preview import expected_starts, preview
from bench.run.experiment.runner import missing_trials, run_matrix
from bench.run.experiment.session import Session
from bench.run.experiment.so_far import SoFar
from bench.run.experiment.trial import TrialResult
from bench.run.trial import loop

DEFAULT_WORKERS = 2
"""How many trials of commands run at a time without --workers."""
EARLY_STOP_REASON = "--stop-early: all trials of an arm end alike"
CONTINUE_ADVICE = "without --stop-early"


def run_missing_trials(
    matrix: Matrix,
    writer: RunWriter,
    session: Session,
    out: Terminal,
    err: Terminal,
    *,
    early: bool = False,
) -> bool:
    """Run the missing trials and print the result. Return whether no trial of this session ended in an error.

    Args:
        early: Whether the run stops as soon as all trials of an arm end alike without being solved.

    Raises:
        typer.Exit: The run was stopped by signal n, with 128 + n; or trials are missing, with 1.
    """
    missing_specs, so_far = missing_trials(matrix.specs, writer.ended), SoFar(matrix)
    trials = f"{len(matrix.specs)} trial{'s' * (len(matrix.specs) != 1)}"
    out.print(f"{trials}, {len(matrix.specs) - len(missing_specs)} of them recorded already in {writer.folder}")
    if early and missing_specs:
        _stop_if_recorded_trials_end_alike(writer, so_far, err)
    try:
        with RunProgress(out, len(missing_specs), so_far) as progress:
            stopped = loop.run_whole(_run_until_signal(matrix, writer, progress, session, err, early=early))
    except EndpointError:
        writer.remove_if_empty()
        raise
    finally:
        writer.close()
    if stopped:
        err.print(f"stopped; what is recorded is kept in {writer.folder}: the same command goes on from there")
        raise typer.Exit(exit_code(stopped))
    if so_far.trials < len(missing_specs):
        recorded = f"{so_far.trials} of {len(missing_specs)} missing trials are recorded, and what else was answered is kept"
        advice = CONTINUE_ADVICE if early and so_far.endings.alike else "with this budget anew, a larger one or none"
        err.print(f"stopped: {session.ending}; {recorded}; the same command goes on, {advice}")
        raise typer.Exit(1)
    out.print(f"done: {so_far.outcomes_text or 'no trial was missing'}; {so_far.account}")
    for line in (*so_far.endings.summary(), *so_far.client_bound(), *so_far.unknown_words()):
        out.print(line)
    errors = list(so_far.errors())
    if errors:
        err.print("\n".join(errors))
    return not errors


def _stop_if_recorded_trials_end_alike(writer: RunWriter, so_far: SoFar, err: Terminal) -> None:
    """Exit if all recorded trials of an arm already end alike."""
    for record in read_trials(writer.folder):
        so_far.endings.add(record)
    if so_far.endings.alike:
        writer.close()
        err.print("\n".join(so_far.endings.news()))
        err.print(f"stopped: {EARLY_STOP_REASON}; nothing was asked; the same command goes on, {CONTINUE_ADVICE}")
        raise typer.Exit(1)


def concurrent_trials(workers: int | None, matrix: Matrix) -> int:
    """Return how many trials of commands run concurrently. Raises ConfigError if `workers` is given and no agent is a
    command."""
    if workers and not matrix.has_commands:
        raise ConfigError("--workers: no agent of this config is a command; a model's `concurrency` bounds the calls of others")
    return workers or DEFAULT_WORKERS


def print_process_count(out: Terminal, matrix: Matrix, workers: int) -> None:
    """Print in advance how many processes a run of commands starts."""
    trials = sum(matrix.architectures[spec.architecture].is_command for spec in matrix.specs) if matrix.has_commands else 0
    if not trials:
        return
    starts_per_trial = expected_starts(matrix)
    rate = (
        f"some {trials * starts_per_trial:,.0f} times ({starts_per_trial:.1f} a trial)"
        if starts_per_trial
        else "once a trial, and again after each kill"
    )
    out.print(
        f"Commands are started {rate}, {workers} trials at a time; a trial takes as long as they take to start and to work."
    )


async def _run_until_signal(
    matrix: Matrix, writer: RunWriter, progress: RunProgress, session: Session, err: Terminal, *, early: bool
) -> signal.Signals | None:
    """Run the missing trials until all have ended or a signal asks to stop. Return the signal, or None."""

    def stop_soon() -> None:
        """End the session, so that no further call begins and calls in flight are awaited."""
        progress.stop()  # a second signal ends the process at once: the terminal must be restored by then
        session.end("a signal asked for it")
        if not session.has_begun:
            running.cancel()
        elif calls_in_flight := session.in_flight:
            err.print(f"stopping: waiting for {calls_in_flight} calls in flight; Ctrl-C again ends at once and gives them up")

    def show_result(result: TrialResult) -> None:
        progress.show(result)
        if early and progress.ends_alike:
            session.end(EARLY_STOP_REASON)

    running = asyncio.create_task(run_matrix(matrix, writer, show_result, session))
    with Stop(asyncio.get_running_loop(), stop_soon) as stop, suppress(asyncio.CancelledError):
        await running
    return stop.by


def show_preview(out: Terminal, matrix: Matrix) -> None:
    """Print the estimated calls, tokens and cost of each arm and the total. The total is unknown if the number of any arm is
    unknown."""
    table = Table("scenario", "architecture", "model", "plan", "trials", "calls", "tokens", "cost, $", box=None)
    rows = list(preview(matrix))
    for row in rows:
        arm = (row.scenario, row.architecture, row.model, row.plan)
        table.add_row(*arm, f"{row.trials:,}", _count(row.calls), _count(row.tokens), _dollars(row.cost))
    calls, tokens = _total(row.calls for row in rows), _total(row.tokens for row in rows)
    cost = _total(row.cost for row in rows)
    table.add_row("total", "", "", "", f"{sum(row.trials for row in rows):,}", _count(calls), _count(tokens), _dollars(cost))
    out.show(table)
    out.print("This is an estimate: each reply that no fault changes is taken to be right. A model's own failures cost more.")


def _total(numbers: Iterable[float | None]) -> float | None:
    """Return the sum of the numbers; None if any number is unknown."""
    known = list(numbers)
    return None if None in known else sum(number or 0 for number in known)


def _count(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,.0f}"


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.2g}"
