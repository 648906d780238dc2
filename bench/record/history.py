"""The history of a recording: its sessions, machine and live seconds. The manifest of a replay keeps it, because the trials of
the replay do not show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.common.bounds import Many
from bench.record.events import Called
from bench.record.origin import Machine
from bench.record.record import SessionRecord, TrialRecord, latest


@dataclass(frozen=True)
class LiveSeconds:
    """The real seconds of one arm's live trials that did not end in an error. `latency` (API, waiting and framework time) and
    `framework` are sums; `least` and `most` are the lowest and the highest share of framework time in a trial's latency."""

    scenario: str
    architecture: str
    plan: str
    trials: int
    latency: float
    framework: float
    least: float
    most: float

    @classmethod
    def of(cls, scenario: str, architecture: str, plan: str, trials: Sequence[tuple[float, float]]) -> LiveSeconds:
        """Return the live seconds of an arm. `trials` has (latency, framework seconds) of each trial."""
        shares = [_share(*trial) for trial in trials]
        latency, framework = (sum(seconds) for seconds in zip(*trials, strict=True))
        return cls(scenario, architecture, plan, len(trials), latency, framework, min(shares), max(shares))

    @property
    def share(self) -> float:
        return _share(self.latency, self.framework)


def _share(latency: float, framework: float) -> float:
    return framework / latency if latency else 0.0


@dataclass(frozen=True)
class History:
    """The history of one recorded model. `name`, `digest`, sessions and machine are the recording's; all other fields concern
    this model.

    superseded  the number of records of errors that a later record of the same trial replaced
    calls       the number of calls in the last records of its trials; `reused` of them got a reply of another trial's call
    seconds     the live seconds by arm; empty if no trial ran live
    before      the history of the recording that this recording replays; None if it replays none
    """

    name: str
    digest: str
    sessions: Many[SessionRecord]
    machine: Machine
    superseded: int
    calls: int
    reused: int
    seconds: Many[LiveSeconds]
    before: History | None = None

    @classmethod
    def of(
        cls, name: str, digest: str, machine: Machine, before: History | None, records: Sequence[TrialRecord | SessionRecord]
    ) -> History:
        """Make the history of a model in a run.

        Args:
            name: The run's name.
            digest: The digest of the run.
            machine: The machine on which the run was made.
            before: The history of the recording that the run itself was made from, if it was.
            records: The sessions of the run, and the trials of the model.

        Returns:
            The history.
        """
        recorded = [record for record in records if isinstance(record, TrialRecord)]
        trials = latest(recorded)
        calls = [event for trial in trials for event in trial.events if isinstance(event, Called)]
        return cls(
            name=name,
            digest=digest,
            sessions=tuple(record for record in records if isinstance(record, SessionRecord)),
            machine=machine,
            superseded=len(recorded) - len(trials),
            calls=len(calls),
            reused=sum(call.reused for call in calls),
            seconds=_live_seconds(trials),
            before=before,
        )

    @property
    def live_seconds(self) -> tuple[LiveSeconds, ...]:
        """The live seconds of the run in which the replies were first given, even if they were replayed several times since."""
        return self.seconds or (self.before.live_seconds if self.before else ())


def _live_seconds(trials: Iterable[TrialRecord]) -> tuple[LiveSeconds, ...]:
    """Return the live seconds by arm, in the order of the trials."""
    arms: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for trial in trials:
        if trial.timing == "live" and trial.outcome != "error":
            latency = trial.api_seconds + trial.waiting_seconds + trial.framework_seconds
            arms.setdefault((trial.scenario, trial.architecture, trial.plan), []).append((latency, trial.framework_seconds))
    return tuple(LiveSeconds.of(*arm, seconds) for arm, seconds in arms.items())
