"""Count the tool errors, repairs and repetitions in trials that other people recorded, and how far two trials of a task
differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass

from bench.rerun.elsewhere.trials import RecordedCall, RecordedTrial, key_of

KINDS = (
    ("unavailable", re.compile(r"\b50[0-9]\b|unavailable|time[d ]?-?out|connection|rate limit", re.IGNORECASE)),
    (
        "bad call",
        re.compile(r"argument|keyword|validation|unknown (action|tool)|no tool|attribute|\bkey\b|type", re.IGNORECASE),
    ),
    ("not found", re.compile(r"not found|no such|does not exist|unknown", re.IGNORECASE)),
)
"""Kinds of tool errors, by words in the answer; the first that fits. Any other error is a refusal."""


def kind_of(call: RecordedCall) -> str:
    """Return the kind of a failed call's error."""
    head = call.answer[:300]
    return next((kind for kind, words in KINDS if words.search(head)), "refused")


@dataclass(frozen=True)
class ErrorRepair:
    """The calls that followed a tool error.

    calls    from the error to the same tool's next success; None if the tool never succeeded again in the trial
    same     from the error to the next success of the same call; None if it never succeeded again
    tokens   what the error added: its own message and those up to that success, whose answer is not among them
    whole    of the messages behind the error, with that success's answer
    again    whether the next call is the same call
    """

    call: RecordedCall
    kind: str
    calls: int | None
    same: int | None
    tokens: int | None
    whole: int | None
    again: bool


def repairs(trial: RecordedTrial) -> Iterator[ErrorRepair]:
    """Yield what followed each tool error of a trial, in order."""
    for place, call in enumerate(trial.calls):
        if not call.failed or call.answered is None:
            continue
        later = trial.calls[place + 1 :]
        good = [(n, other) for n, other in enumerate(later, 1) if other.tool == call.tool and other.failed is False]
        steps, same = (next((n for n, other in good if not alike or other.key == call.key), None) for alike in (False, True))
        end = good[0][1].answered if good else None
        tokens = None if end is None else sum(turn.tokens for turn in trial.turns[call.answered : end])
        whole = None if end is None else sum(turn.tokens for turn in trial.turns[call.answered + 1 : end + 1])
        yield ErrorRepair(call, kind_of(call), steps, same, tokens, whole, bool(later) and later[0].key == call.key)


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
