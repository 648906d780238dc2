"""What a person sees during a run and at its end: progress, time left, tokens and cost so far, and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from time import perf_counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.common.errors import NotRecorded, UnknownFinish
from bench.record.cost import Tariff
from bench.record.events import Called
from bench.record.record import TrialRecord
from bench.run.experiment.endings import Endings, outcomes_told
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.trial import TrialResult

CLIENT_BOUND = 0.25
"""A share of the calls' seconds in flight. If this process adds more, it bounds the calls at a time, not the endpoint."""
LINES = 10
"""Without a terminal, at most this many plain lines replace the moving bar."""
SELDOM = 10.0
"""The least seconds between two of these lines."""


class SoFar:
    """Sums over the records so far: `calls`, `tokens`, the number of each outcome, and the first error's reason."""

    def __init__(self, matrix: Matrix):
        self._tariff = Tariff.of(matrix.models)
        self._cost: float | None = 0.0
        self.calls = self.tokens = 0
        self.outcomes: Counter[str] = Counter()
        self.endings = Endings()
        self._first_error = ""
        self._in_flight = self._client = 0.0
        self._unknown: Counter[str] = Counter()

    def add(self, result: TrialResult) -> None:
        record = result.record
        cost = self._tariff.cost(record)
        self._cost = None if self._cost is None or cost is None else self._cost + cost
        self.calls += calls_of(record)
        self.tokens += record.tokens
        for call in (event for event in record.events if isinstance(event, Called)):
            self._in_flight += call.seconds
            self._client += call.client
            if call.failure == UnknownFinish.kind:
                self._unknown[call.detail] += 1
        self.outcomes[record.outcome] += 1
        self.endings.add(record)
        if record.outcome == "error":
            self._first_error = self._first_error or record.reason

    def join(self, other: SoFar) -> None:
        """Add the sums over trials that ran elsewhere."""
        self._cost = None if self._cost is None or other._cost is None else self._cost + other._cost
        self.calls += other.calls
        self.tokens += other.tokens
        self._in_flight += other._in_flight
        self._client += other._client
        self._unknown += other._unknown
        self.outcomes += other.outcomes
        self.endings.join(other.endings)
        self._first_error = self._first_error or other._first_error

    @property
    def trials(self) -> int:
        return self.outcomes.total()

    @property
    def account(self) -> str:
        """Tokens and cost. The cost is unknown if a model has no prices."""
        return f"{self.tokens:,} tokens, {'cost unknown' if self._cost is None else f'{self._cost:,.2f} $'}"

    @property
    def ends(self) -> str:
        """How the trials ended: `solved 3, wrong 1`; empty if there is none."""
        return outcomes_told(self.outcomes)

    def client_bound(self, here: bool = True) -> Iterator[str]:
        """Yield a line if this process delayed its calls. For trials that ran elsewhere, the way to this process and back took
        the time."""
        if self._client > CLIENT_BOUND * self._in_flight:
            share = f"{self._client / self._in_flight:.0%}"
            if here:
                line = f"client-bound: this process was busy for {share} of its calls' seconds while they stood ready"
                yield f"{line}; those are in no call's seconds, and a lower concurrency is no slower"
            else:
                line = f"calls took a further {share} of their seconds on the way from a worker to this process and back"
                yield f"{line}; those are in no call's seconds"

    def unknown_words(self) -> Iterator[str]:
        """Yield a line for each unknown finish reason, with the number of replies that had it."""
        for reason, count in self._unknown.most_common():
            yield f"{count} paid replies were not used: {reason}; docs/providers.md has the words that are known"

    def errors(self) -> Iterator[str]:
        """Yield lines on the trials that ended in an error, and what to do about them."""
        if self.outcomes["error"]:
            yield f"{self.outcomes['error']} trials ended in an error, the first: {self._first_error}"
            if NotRecorded.kind not in self._first_error:
                yield "the same command runs them again"


def calls_of(record: TrialRecord) -> int:
    return sum(isinstance(event, Called) for event in record.events)


class RunProgress:
    """Shows `so_far` as records come. Use it as a context manager."""

    def __init__(self, console: Console, total: int, so_far: SoFar):
        self._console, self._total, self._so_far = console, total, so_far
        self._began = self._told = perf_counter()
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
        """Whether all trials of an arm end the same way without being solved."""
        return self._so_far.endings.alike

    def saw(self, ended: TrialResult | SoFar) -> None:
        """Show a trial that ended, or the sums over trials that ran elsewhere."""
        before = self._so_far.trials
        if isinstance(ended, SoFar):
            self._so_far.join(ended)
        else:
            self._so_far.add(ended)
        so_far, done = f"{self._so_far.ends}; {self._so_far.account}", self._so_far.trials
        self._bar.update(self._task, completed=done, so_far=so_far)
        now, is_next = perf_counter(), (done * LINES // self._total) > (before * LINES // self._total)
        if not self._console.is_terminal and is_next and now - self._told >= SELDOM:
            self._told, seconds = now, now - self._began
            left = timedelta(seconds=round(seconds / done * (self._total - done)))
            self._console.print(f"{done} of {self._total} trials in {timedelta(seconds=round(seconds))}, left {left}: {so_far}")
        for line in self._so_far.endings.news():
            self._console.print(line)
