"""Report, while a run continues, the arms whose trials all end the same way without an answer, and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.common.errors import one_line
from bench.record.events import Judged, of_kind
from bench.record.record import TrialRecord

ENOUGH = 20
"""This many trials of an arm that end the same way are no accident."""
WORDS = {"solved": "solved", "wrong": "wrong", "gave_up": "gave up", "ungraded": "not graded", "error": "error"}
"""Outcome -> its words on the terminal."""
ALIKE = {"wrong": "are wrong", "gave_up": "gave up", "error": "ended in an error"}
"""Outcomes that are news if all trials of an arm have them -> what all trials did."""
MOST_SHOWN = 120
"""The most characters of a reason."""


def outcomes_text(outcomes: Counter[str]) -> str:
    """Return the number of trials with each outcome, in words: `solved 12, gave up 3`."""
    return ", ".join(f"{words} {outcomes[outcome]:,}" for outcome, words in WORDS.items() if outcomes[outcome])


@dataclass
class _Arm:
    """The trials of one arm so far. `reasons` counts the reason of each trial: its last rejection, or the text of its end."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def ends_alike(self) -> bool:
        return self.outcomes.total() >= ENOUGH and len(self.outcomes) == 1 and self.outcomes.keys() <= ALIKE.keys()

    @property
    def summary_text(self) -> str:
        count = self.outcomes.total()
        [outcome] = self.outcomes
        reason = self.reasons.most_common(1)
        often = "".join(f"; most often: {text} ({times} of {count})" for text, times in reason)
        return f"all {count} trials so far {ALIKE[outcome]}{often}"


class Endings:
    """The outcomes of the trials of each arm.

    Attributes:
        alike: Whether an arm has at least ENOUGH trials that all ended the same way without being solved.
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
        of_subtask = [verdict for verdict in rejected if record.reason.startswith(f"{verdict.subtask}:")]
        last = (of_subtask or rejected)[-1]
        return one_line(f"{last.subtask}: {last.reason}{f', {last.detail}' if last.detail else ''}", MOST_SHOWN)
    return one_line(record.reason or (record.grade.note if record.grade else "") or "no reason is recorded", MOST_SHOWN)
