"""Count the tool errors in trials that other people recorded, and the calls that repaired them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from bench.elsewhere.trials import RecordedCall, RecordedTrial

ERROR_KINDS = (
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
    return next((kind for kind, words in ERROR_KINDS if words.search(head)), "refused")


@dataclass(frozen=True)
class ErrorRepair:
    """The calls that followed a tool error.

    calls    the number of calls from the error to the next success of the same tool; None if the tool never succeeded again
    same     the number of calls from the error to the next success of the same call; None if the call never succeeded again
    tokens   the tokens that the error added: its own message and the messages up to the success, without the answer of the
             success; None if the tool never succeeded again
    whole    the tokens of the messages after the error, with the answer of the success; None if there is no success
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
    """Yield for each tool error of a trial, in order, after how many calls and tokens the tool, and the same call,
    succeeded."""
    next_success_of_tool, next_success_of_call = dict[str, int](), dict[tuple[str, str], int]()
    all_repairs = list[ErrorRepair]()
    tokens_before = (0, *accumulate(turn.tokens for turn in trial.turns))
    for place in reversed(range(len(trial.calls))):
        call = trial.calls[place]
        if call.failed and call.answered is not None:
            success, same_success = next_success_of_tool.get(call.tool), next_success_of_call.get(call.key)
            success_turn = None if success is None else trial.calls[success].answered
            tokens = tokens_with_answer = None
            if success_turn is not None:
                last_turn = max(success_turn, call.answered)
                tokens = tokens_before[last_turn] - tokens_before[call.answered]
                tokens_with_answer = tokens_before[last_turn + 1] - tokens_before[call.answered + 1]
            calls, same = (None if place_after is None else place_after - place for place_after in (success, same_success))
            is_repeated_next = place + 1 < len(trial.calls) and trial.calls[place + 1].key == call.key
            all_repairs.append(ErrorRepair(call, kind_of(call), calls, same, tokens, tokens_with_answer, is_repeated_next))
        elif call.failed is False:
            next_success_of_tool[call.tool] = next_success_of_call[call.key] = place
    yield from reversed(all_repairs)
