"""What trials of other people repeat, in which decisions on effects they go wrong, and where two trials of a task part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

from bench.elsewhere.trials import RecordedCall, RecordedTrial, key_of


def repeated(trial: RecordedTrial) -> tuple[int, int]:
    """Return how many calls repeat an earlier call of the trial, and how many of these repeat a call whose last answer was an
    error."""
    last, again, after_error = dict[tuple[str, str], RecordedCall](), 0, 0
    for call in trial.calls:
        if (before := last.get(call.key)) is not None:
            again += 1
            after_error += bool(before.failed)
        last[call.key] = call
    return again, after_error


@dataclass(frozen=True)
class Parting:
    """The difference between two trials of a task. `first` is the number of the first call that differs, from 0; None if all
    calls are the same."""

    first: int | None
    same_effects: bool


def parting(this: RecordedTrial, that: RecordedTrial, reads: Container[str]) -> Parting:
    """Return how two trials of one task differ. Tools in `reads` have no effect, and calls that failed have none either."""
    these, those = ([call.key for call in trial.calls] for trial in (this, that))
    first = next((n for n, (a, b) in enumerate(zip(these, those, strict=False)) if a != b), None)
    if first is None and len(these) != len(those):
        first = min(len(these), len(those))
    return Parting(first, _effects(this, reads) == _effects(that, reads))


def _effects(trial: RecordedTrial, reads: Container[str]) -> list[tuple[str, str]]:
    return [call.key for call in trial.calls if call.tool not in reads and not call.failed]


DECISIONS = ("right", "other value", "extra", "left out")
"""Kinds of decisions on effects, beside those that a task's authors name: made as named; the named tool with other arguments;
an effect that they do not name; a named effect that was not made."""


def decisions(trial: RecordedTrial, reads: Container[str]) -> Counter[str]:
    """Return the decisions on effects in a trial, by kind. If the end is right, all decisions are right. A trial that rightly
    does nothing has made one decision."""
    named = Counter(key_of(tool, arguments) for tool, arguments in trial.expected or () if tool not in reads)
    if trial.state or (trial.state is None and trial.solved):
        return Counter({"right": max(1, named.total())})
    done = Counter(_effects(trial, reads))
    more, less = done - named, named - done
    other = (Counter(tool for tool, _ in more.elements()) & Counter(tool for tool, _ in less.elements())).total()
    counts = ((done & named).total(), other, more.total() - other, less.total() - other)
    return Counter(dict(zip(DECISIONS, counts, strict=True)) if any(counts) else {"right": 1})
