"""A run in its present state, read while the run is written: outcomes, rejections, tokens and cost by arm, and the time left.

Only the run's folder is read. The run may have been stopped in between.
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
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.html import render, source
from bench.record.archive import archive_of
from bench.record.chain import BrokenChain, unseal
from bench.record.cost import Tariff
from bench.record.events import Called, Judged, of_kind
from bench.record.files import LONGEST_LINE, TRIALS
from bench.record.reading import read_manifest
from bench.record.record import RECORD, Outcome, SessionRecord, TrialRecord

OUTCOMES: dict[Outcome, str] = {
    "solved": "Solved",
    "wrong": "Wrong",
    "gave_up": "Gave up",
    "ungraded": "Not graded",
    "error": "Error",
}
MOST_REJECTIONS = 30
"""The most rows of the table of rejections."""
ArmKey = tuple[str, str, str, str]
"""Scenario, architecture, model and fault plan."""
ARM_TITLES = ("Scenario", "Architecture", "Model", "Fault plan")


@dataclass
class ArmSoFar:
    """The records of one arm so far. `cost` is None if a price is unknown. It includes the cost of errors."""

    key: ArmKey
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0


class LiveRun:
    """A run that may still be written. `read` continues at the place where it stopped.

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
        self._errors: dict[str, ArmKey] = {}
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
        each = len(config.architectures) * len(config.models) * config.repetitions
        return None if self.manifest.portion else tasks * each

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
        self.session = session
        if session.what == "began":
            self.in_session = 0

    def _add(self, record: TrialRecord) -> None:
        key = record.scenario, record.architecture, record.model, record.plan
        arm = self.arms.setdefault(key, ArmSoFar(key))
        if record.id in self._errors:
            arm.outcomes["error"] -= 1
            del self._errors[record.id]
        if record.outcome == "error":
            self._errors[record.id] = key
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
        """Return in words whether the run is at work, and how much is left.

        Args:
            now: The present time, with its zone.
        """
        done = f"{self.trials:,} of {self.planned:,} trials" if self.planned else f"{self.trials:,} trials"
        if self.session is None:
            return "Nothing is recorded yet."
        if self.session.what == "ended":
            return f"No command is running the trials: the last one ended ({self.session.detail}). {done} are recorded."
        since = (now - datetime.fromisoformat(self.session.at)).total_seconds()
        quiet = now.timestamp() - self._written
        return f"{done} are recorded, the last one {_duration(quiet)} ago. {self._left(since)}"

    def _left(self, since: float) -> str:
        if self.planned is None:
            return f"The time left is unknown: this run is {self.manifest.portion} of its experiment."
        if not self.in_session:
            return "The time left is unknown until a trial has ended."
        left = since / self.in_session * (self.planned - self.trials)
        return f"About {_duration(left)} are left, if the others take as long as those of this session."


def page(run: LiveRun, now: datetime, seconds: int) -> str:
    """Return the page of a run in its present state. A browser reloads it every `seconds`."""
    simulated = any(model.is_simulated for model in run.manifest.models.values())
    tables = [_arms(run), *([_rejections(run)] if run.rejections else [])]
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


def _arms(run: LiveRun) -> Table:
    columns = (
        *_arm_columns(),
        *(TableColumn[ArmSoFar](title, _outcome(outcome)) for outcome, title in OUTCOMES.items()),
        TableColumn[ArmSoFar]("Trials", lambda arm: arm.outcomes.total()),
        TableColumn[ArmSoFar]("Calls", lambda arm: Number(arm.calls)),
        TableColumn[ArmSoFar]("Tokens", lambda arm: Number(arm.tokens)),
        TableColumn[ArmSoFar]("Dollars", lambda arm: "unknown" if arm.cost is None else Number(arm.cost, 4)),
    )
    arms = sorted(run.arms.values(), key=lambda arm: arm.key)
    notes = ("what a trial cost that ended in an error and was run again counts, too; the report leaves it out",)
    return table_of("arms", "By arm, of the trials that have ended", columns, [*arms, *_total(run)], notes)


def _arm_columns() -> Iterator[TableColumn[ArmSoFar]]:
    for place, title in enumerate(ARM_TITLES):
        yield TableColumn(title, lambda arm, place=place: arm.key[place])  # type: ignore[misc]


def _outcome(outcome: Outcome) -> Callable[[ArmSoFar], Cell]:
    return lambda arm: arm.outcomes[outcome]


def _total(run: LiveRun) -> Iterator[ArmSoFar]:
    if len(run.arms) < 2:
        return
    arms = run.arms.values()
    costs = [arm.cost for arm in arms]
    known = None if None in costs else sum(cost or 0 for cost in costs)
    outcomes = sum((arm.outcomes for arm in arms), Counter[Outcome]())
    yield ArmSoFar(("all", "", "", ""), outcomes, sum(arm.calls for arm in arms), sum(arm.tokens for arm in arms), known)


def _rejections(run: LiveRun) -> Table:
    rows = tuple(
        (*key, subtask, reason, count) for (key, subtask, reason), count in run.rejections.most_common(MOST_REJECTIONS)
    )
    others = len(run.rejections) - len(rows)
    notes = (f"{others} rarer rows are left out",) if others else ()
    return Table("rejections", "Rejected outputs, by reason", (*ARM_TITLES, "Subtask", "Reason", "Times"), rows, notes)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(max(seconds, 0.0)))) if seconds >= 60 else f"{max(seconds, 0.0):.0f} s"
