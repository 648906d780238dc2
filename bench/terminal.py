"""What a person sees while a run goes on: how far it is, the time left, tokens and cost so far."""

from __future__ import annotations

from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.experiment.cost import Tariff
from bench.experiment.record import TrialRecord

LINES = 10
"""Where the output is no terminal, so many plain lines take the moving bar's place."""


class RunProgress:
    """Counts records as they come; use as a context manager. A cost is shown as unknown where a model has no prices."""

    def __init__(self, console: Console, total: int, tariff: Tariff):
        self._console, self._total, self._tariff = console, total, tariff
        self._tokens, self._cost = 0, 0.0
        self._priced = True
        self.outcomes: Counter[str] = Counter()
        self.first_error = ""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[account]}"))
        self._bar = Progress(*columns, *left, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("trials", total=total, account="")

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def saw(self, record: TrialRecord) -> None:
        cost = self._tariff.cost(record)
        self._tokens += record.tokens
        self._cost += cost or 0.0
        self._priced = self._priced and cost is not None
        self.outcomes[record.outcome] += 1
        self.first_error = self.first_error or (record.reason if record.outcome == "error" else "")
        self._bar.update(self._task, advance=1, account=self.account)
        done = sum(self.outcomes.values())
        if not self._console.is_terminal and (done * LINES // self._total) > ((done - 1) * LINES // self._total):
            self._console.print(f"{done} of {self._total} trials, {self.account}")

    @property
    def account(self) -> str:
        """Tokens and cost so far."""
        cost = f"{self._cost:,.2f} $" if self._priced else "cost unknown"
        return f"{self._tokens:,} tokens, {cost}"
