"""Count the tool errors in trials that other people recorded, and the calls that repaired them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bench.rerun.elsewhere.trials import RecordedCall, RecordedTrial

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
