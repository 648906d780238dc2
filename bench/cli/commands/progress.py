"""The progress of a run for a person: the progress bar, the time left, the tokens and cost so far, and failures."""

from __future__ import annotations

from datetime import timedelta
from time import perf_counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.run.experiment.so_far import SoFar
from bench.run.experiment.trial import TrialResult

MAX_LINES = 10
"""The most lines of progress that a run prints if the output is no terminal and so has no bar."""
MIN_INTERVAL_S = 10.0
"""The least seconds between two lines of progress."""


class RunProgress:
    """Shows the progress bar and the totals of a run as records arrive. Use it as a context manager."""

    def __init__(self, console: Console, total: int, so_far: SoFar):
        self._console, self._total, self._so_far = console, total, so_far
        self._started_at = self._printed_at = perf_counter()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[so_far]}"))
        self._bar = Progress(*columns, *left, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("trials", total=total, so_far="")

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()

    @property
    def ends_alike(self) -> bool:
        """Whether all trials of some arm end the same way without being solved."""
        return self._so_far.endings.alike

    def show(self, result: TrialResult) -> None:
        """Show a trial that has ended."""
        trials_before = self._so_far.trials
        self._so_far.add(result)
        so_far, done = f"{self._so_far.outcomes_text}; {self._so_far.account}", self._so_far.trials
        self._bar.update(self._task, completed=done, so_far=so_far)
        now, is_next_line = perf_counter(), (done * MAX_LINES // self._total) > (trials_before * MAX_LINES // self._total)
        if not self._console.is_terminal and is_next_line and now - self._printed_at >= MIN_INTERVAL_S:
            self._printed_at, seconds = now, now - self._started_at
            left = timedelta(seconds=round(seconds / done * (self._total - done)))
            self._console.print(f"{done} of {self._total} trials in {timedelta(seconds=round(seconds))}, left {left}: {so_far}")
        for line in self._so_far.endings.news():
            self._console.print(line)
