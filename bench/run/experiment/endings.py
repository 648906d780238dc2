"""Report, while a run continues, the arms whose trials all end the same way without an answer, and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.common.errors import one_line
from bench.record.events import Judged, of_kind
from bench.record.record import TrialRecord

MIN_TRIALS = 20
"""The number of trials of an arm that must all end the same way before it is reported."""
OUTCOME_WORDS = {"solved": "solved", "wrong": "wrong", "gave_up": "gave up", "ungraded": "not graded", "error": "error"}
"""Outcome -> its words on the terminal."""
BAD_OUTCOMES = {"wrong": "are wrong", "gave_up": "gave up", "error": "ended in an error"}
"""Outcome that is reported if all trials of an arm have it -> what all trials did."""
MAX_REASON_CHARS = 120
"""Characters of a reason that are shown."""


def outcomes_text(outcomes: Counter[str]) -> str:
    """Return the number of trials with each outcome, in words: `solved 12, gave up 3`."""
    return ", ".join(f"{words} {outcomes[outcome]:,}" for outcome, words in OUTCOME_WORDS.items() if outcomes[outcome])


@dataclass
class _Arm:
    """The trials of one arm so far. `reasons` counts the reason of each trial: its last rejection, or the text of its end."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def ends_alike(self) -> bool:
        """Whether at least MIN_TRIALS trials have ended, all with the same one of BAD_OUTCOMES."""
        return self.outcomes.total() >= MIN_TRIALS and len(self.outcomes) == 1 and self.outcomes.keys() <= BAD_OUTCOMES.keys()

    @property
    def summary_text(self) -> str:
        """How all trials ended, and the most frequent reason."""
        count = self.outcomes.total()
        [outcome] = self.outcomes
        [(reason, times)] = self.reasons.most_common(1)
        return f"all {count} trials so far {BAD_OUTCOMES[outcome]}; most often: {reason} ({times} of {count})"


class Endings:
    """The outcomes of the trials of each arm.

    Attributes:
        alike: Whether an arm has at least MIN_TRIALS trials that all ended the same way without being solved.
    """

    def __init__(self) -> None:
        self._arms: dict[str, _Arm] = {}
        self._reported: set[str] = set()

    @property
    def alike(self) -> bool:
        return any(arm.ends_alike for arm in self._arms.values())

    def add(self, record: TrialRecord) -> None:
        """Count a trial, which may have ended before this invocation."""
        arm = self._arms.setdefault(f"{record.architecture} on {record.scenario}, plan {record.plan}", _Arm())
        arm.outcomes[record.outcome] += 1
        arm.reasons.update([_reason(record)])

    def news(self) -> Iterator[str]:
        """Yield a line for each arm whose trials all end alike, once per arm."""
        for name, arm in self._arms.items():
            if arm.ends_alike and name not in self._reported:
                self._reported.add(name)
                yield f"{name}: {arm.summary_text}"

    def summary(self) -> Iterator[str]:
        """Yield a line for each arm whose trials have all ended alike."""
        return (f"{name}: {arm.summary_text}" for name, arm in self._arms.items() if arm.ends_alike)


def _reason(record: TrialRecord) -> str:
    """Return why a trial has no right answer: the last rejection of the subtask at which it gave up, else the reason in its
    record."""
    rejected = [verdict for verdict in of_kind(record.events, Judged) if not verdict.accepted and verdict.view != "undamaged"]
    if record.outcome == "gave_up" and rejected:
        at_subtask = [verdict for verdict in rejected if record.reason.startswith(f"{verdict.subtask}:")]
        last = (at_subtask or rejected)[-1]
        return one_line(f"{last.subtask}: {last.reason}{f', {last.detail}' if last.detail else ''}", MAX_REASON_CHARS)
    return one_line(record.reason or (record.grade.note if record.grade else "") or "no reason is recorded", MAX_REASON_CHARS)
