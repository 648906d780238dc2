"""The page of `bench watch`: the state of a run that is still being written, with outcomes, rejections, tokens and cost by arm,
and the time left.

Only the run's folder is read. The run may have been stopped and resumed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.common.bounds import MIN_BYTES_PER_VALUE, excess_in, validate
from bench.common.errors import ResultsError
from bench.common.files import opened
from bench.read.render.cells import Cell, Number
from bench.read.render.html import render, source
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.archive import archive_of
from bench.record.chain import BrokenChain, unseal
from bench.record.cost import Tariff
from bench.record.events import Called, Judged, of_kind
from bench.record.files import LONGEST_LINE, TRIALS
from bench.record.reading import read_manifest
from bench.record.record import RECORD, FailedTrials, Outcome, SessionRecord, TrialRecord

OUTCOMES: dict[Outcome, str] = {
    "solved": "Solved",
    "wrong": "Wrong",
    "gave_up": "Gave up",
    "ungraded": "Not graded",
    "error": "Error",
}
MAX_REJECTION_ROWS = 30
ArmKey = tuple[str, str, str, str]
"""Scenario, architecture, model and fault plan."""
ARM_TITLES = ("Scenario", "Architecture", "Model", "Fault plan")


@dataclass
class ArmSoFar:
    """The counts of one arm over the trials recorded so far. `cost` is in dollars, with those of errors, and None if a price is
    unknown."""

    key: ArmKey
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0


class LiveRun:
    """A run that may still be written. `read` continues at the byte where it stopped before.

    Args:
        folder: The run's folder.

    Raises:
        ResultsError: The folder holds no run, or it is an archive.
    """

    def __init__(self, folder: Path):
        if archive_of(folder):
            raise ResultsError(f"{folder}: is an archive, which no run writes to; see: bench report {folder.name}")
        self.folder, self.manifest = folder, read_manifest(folder)
        self._tariff = Tariff(self.manifest.models)
        self._read_to, self._link, self._written = 0, "", 0.0
        self.arms: dict[ArmKey, ArmSoFar] = {}
        self.rejections: Counter[tuple[ArmKey, str, str]] = Counter()
        self._failed = FailedTrials()
        self.session: SessionRecord | None = None
        self.in_session = 0

    @property
    def trials(self) -> int:
        """How many trials have ended. A trial that ended in an error and was run again counts once."""
        return sum(arm.outcomes.total() for arm in self.arms.values())

    @property
    def planned(self) -> int | None:
        """The number of trials in the complete run. None for a portion of a run, since only the ids of all trials would tell
        its size."""
        config = self.manifest.config
        tasks = sum(len(pack.instances) * len(config.plans_on(name)) for name, pack in self.manifest.scenarios.items())
        trials_per_task = len(config.architectures) * len(config.models) * config.repetitions
        return None if self.manifest.portion else tasks * trials_per_task

    def read(self) -> None:
        """Read the lines that were written since the last call. An incomplete line is left for the next call.

        Raises:
            ResultsError: The file is damaged, or the folder now holds another run.
        """
        path = self.folder / TRIALS
        try:
            with opened(path) as file:
                state = os.fstat(file.fileno())
                self._written = state.st_mtime
                if state.st_size < self._read_to:
                    raise ResultsError(f"{path}: another run has taken its place; run bench watch again")
                file.seek(self._read_to)
                while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                    self._read_line(path, line)
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror}; run bench watch again") from error
        if len(line) == LONGEST_LINE:
            raise ResultsError(f"{path}: a line at byte {self._read_to} is longer than any that a run writes")

    def _read_line(self, path: Path, line: bytes) -> None:
        """Check a line and add its record. Raises ResultsError if the line is damaged."""
        try:
            content, link = unseal(line, self._link)
            record = None if excess_in(line, MIN_BYTES_PER_VALUE) else validate(RECORD, content)
        except BrokenChain as error:
            raise ResultsError(f"{path}: a line at byte {self._read_to} does not follow the one before it") from error
        except ValueError as error:
            raise ResultsError(
                f"{path}: a line at byte {self._read_to} is no record; see: bench verify {self.folder}"
            ) from error
        if record is None:
            raise ResultsError(f"{path}: a line at byte {self._read_to} holds more values than a run writes")
        self._read_to, self._link = self._read_to + len(line), link
        self._add(record) if isinstance(record, TrialRecord) else self._begin(record)

    def _begin(self, session: SessionRecord) -> None:
        """Note that a session began or ended."""
        self.session = session
        if session.what == "began":
            self.in_session = 0

    def _add(self, record: TrialRecord) -> None:
        """Add a trial to the counts of its arm. It replaces an earlier error of the same trial in the outcomes."""
        key = record.scenario, record.architecture, record.model, record.plan
        arm = self.arms.setdefault(key, ArmSoFar(key))
        if self._failed.replaced_by(record):
            arm.outcomes["error"] -= 1
        cost = self._tariff.cost(record)
        arm.outcomes[record.outcome] += 1
        arm.calls += len(of_kind(record.events, Called))
        arm.tokens += record.tokens
        arm.cost = None if arm.cost is None or cost is None else arm.cost + cost
        self.in_session += 1
        for verdict in of_kind(record.events, Judged):
            if not verdict.accepted and verdict.view != "undamaged":
                self.rejections[key, verdict.subtask, (verdict.violation or verdict.reason).replace("_", " ")] += 1

    def state(self, now: datetime) -> str:
        """Return in words whether trials are being run, how many are recorded, and how much time is left.

        Args:
            now: The present time, with its zone.
        """
        recorded = f"{self.trials:,} of {self.planned:,} trials" if self.planned else f"{self.trials:,} trials"
        if self.session is None:
            return "Nothing is recorded yet."
        if self.session.what == "ended":
            return f"No command is running the trials: the last one ended ({self.session.detail}). {recorded} are recorded."
        since = (now - datetime.fromisoformat(self.session.at)).total_seconds()
        since_last = now.timestamp() - self._written
        return f"{recorded} are recorded, the last one {_duration_text(since_last)} ago. {self._left(since)}"

    def _left(self, since: float) -> str:
        """Return in words how much time is left, by the pace of this session, which began `since` seconds ago."""
        if self.planned is None:
            return f"The time left is unknown: this run is {self.manifest.portion} of its experiment."
        if not self.in_session:
            return "The time left is unknown until a trial has ended."
        left = since / self.in_session * (self.planned - self.trials)
        return f"About {_duration_text(left)} are left, if the others take as long as those of this session."


def page(run: LiveRun, now: datetime, seconds: int) -> str:
    """Return the page of a run in its present state. The browser reloads it every `seconds` seconds."""
    simulated = any(model.is_simulated for model in run.manifest.models.values())
    tables = [_arms_table(run), *([_rejections_table(run)] if run.rejections else [])]
    return render(
        "live.html.j2",
        source("page.css"),
        folder=Path(__file__).parent,
        name=run.manifest.name,
        seconds=seconds,
        state=run.state(now),
        simulated=simulated,
        tables=tables,
        at=now.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


def _arms_table(run: LiveRun) -> Table:
    """Return a table of each arm's outcomes, calls, tokens and dollars so far, with their sums."""
    columns = (
        *_arm_columns(),
        *(TableColumn[ArmSoFar](title, _count_of(outcome)) for outcome, title in OUTCOMES.items()),
        TableColumn[ArmSoFar]("Trials", lambda arm: arm.outcomes.total()),
        TableColumn[ArmSoFar]("Calls", lambda arm: Number(arm.calls)),
        TableColumn[ArmSoFar]("Tokens", lambda arm: Number(arm.tokens)),
        TableColumn[ArmSoFar]("Dollars", lambda arm: "unknown" if arm.cost is None else Number(arm.cost, 4)),
    )
    arms = sorted(run.arms.values(), key=lambda arm: arm.key)
    notes = ("what a trial cost that ended in an error and was run again counts, too; the report leaves it out",)
    return table_of("arms", "By arm, of the trials that have ended", columns, [*arms, *_total_arm(run)], notes)


def _arm_columns() -> Iterator[TableColumn[ArmSoFar]]:
    """Yield the columns that name an arm."""
    for index, title in enumerate(ARM_TITLES):
        yield TableColumn(title, lambda arm, index=index: arm.key[index])  # type: ignore[misc]


def _count_of(outcome: Outcome) -> Callable[[ArmSoFar], Cell]:
    """Return a function from an arm to the number of its trials with this outcome."""
    return lambda arm: arm.outcomes[outcome]


def _total_arm(run: LiveRun) -> Iterator[ArmSoFar]:
    """Yield the sum over all arms as one more arm; nothing if there is a single arm."""
    arms = run.arms.values()
    if len(arms) < 2:
        return
    costs = [arm.cost for arm in arms]
    cost = None if None in costs else sum(cost or 0 for cost in costs)
    outcomes = sum((arm.outcomes for arm in arms), Counter[Outcome]())
    yield ArmSoFar(("all", "", "", ""), outcomes, sum(arm.calls for arm in arms), sum(arm.tokens for arm in arms), cost)


def _rejections_table(run: LiveRun) -> Table:
    """Return a table of the most frequent rejections, by arm, subtask and reason."""
    rows = tuple(
        (*key, subtask, reason, count) for (key, subtask, reason), count in run.rejections.most_common(MAX_REJECTION_ROWS)
    )
    others = len(run.rejections) - len(rows)
    notes = (f"{others} rarer rows are left out",) if others else ()
    return Table("rejections", "Rejected outputs, by reason", (*ARM_TITLES, "Subtask", "Reason", "Times"), rows, notes)


def _duration_text(seconds: float) -> str:
    """Return a duration as text: seconds, or hours, minutes and seconds from a minute on."""
    return str(timedelta(seconds=round(max(seconds, 0.0)))) if seconds >= 60 else f"{max(seconds, 0.0):.0f} s"
