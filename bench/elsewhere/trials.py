"""The common form of trials that other people recorded: messages, tool calls with their answers, and the outcome.

A reader of a format makes `RecordedTurn`s. `trial_of` pairs the calls in the turns with their answers, by the same strict
rules for every format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.common.errors import ResultsError, one_line
from bench.common.tokens import count_tokens

MARK = "recorded elsewhere"
"""The words that stand beside every number of these trials."""
AGENT = "assistant"
"""The maker of a call, if the file does not name another."""


@dataclass(frozen=True)
class AskedCall:
    """A tool call in a message. `by` names the agent or user who asked for the call."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    by: str = AGENT


@dataclass(frozen=True)
class RecordedTurn:
    """A message of a trial.

    role       "assistant", "user", "system", "tool", or the name of an agent
    asked      the tool calls in the message
    answers    the id of the call that this message answers; None if it is no answer
    tool       the tool's name in an answer, if the message contains it
    failed     whether the tool failed; None if the file does not say
    provider   the tokens of the prompt and of the reply, as the provider counted them
    """

    role: str
    text: str = ""
    asked: tuple[AskedCall, ...] = ()
    answers: str | None = None
    tool: str | None = None
    by: str | None = None
    failed: bool | None = None
    provider: tuple[int, int] | None = None

    @cached_property
    def tokens(self) -> int:
        """The tokens of the text and of the tool calls, counted by this package."""
        calls_text = "".join(f"{call.tool}{json.dumps(call.arguments, ensure_ascii=False)}" for call in self.asked)
        return count_tokens(self.text + calls_text)


def key_of(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the tool of a call and its arguments in a canonical order."""
    return tool, json.dumps(arguments, sort_keys=True)


@dataclass(frozen=True)
class RecordedCall:
    """A tool call and its answer. `asked` and `answered` are indexes of turns of the trial. `answered` is None for a call
    without an answer."""

    tool: str
    arguments: Mapping[str, Any]
    by: str
    asked: int
    answered: int | None = None
    answer: str = ""
    failed: bool | None = None

    @cached_property
    def key(self) -> tuple[str, str]:
        """The tool and the arguments of the call, in a form in which two calls can be compared."""
        return key_of(self.tool, self.arguments)


@dataclass(frozen=True)
class RecordedTrial:
    """A trial that other people recorded.

    solved     whether the task was solved; None if the file does not say
    state      whether the final state was right according to the file; None if the file does not say
    expected   the calls that lead to the right state, if the file names them
    """

    task: str
    number: str
    turns: tuple[RecordedTurn, ...]
    calls: tuple[RecordedCall, ...]
    solved: bool | None = None
    state: bool | None = None
    expected: tuple[tuple[str, Mapping[str, Any]], ...] | None = None

    @property
    def tokens(self) -> int:
        """The tokens of all messages, each counted once."""
        return sum(turn.tokens for turn in self.turns)

    @property
    def provider_tokens(self) -> int | None:
        """The tokens of the prompts and of the replies as the provider counted them; None if the file has no counts or only
        zeros."""
        return sum(sum(turn.provider) for turn in self.turns if turn.provider) or None


@dataclass(frozen=True)
class RecordedRun:
    """The trials of one file. `model` is empty if the file names no model. `sha256` is the digest of the file's content."""

    form: str
    trials: tuple[RecordedTrial, ...]
    model: str = ""
    sha256: str = ""


def trial_of(file_name: str, turns: Sequence[RecordedTurn], task: str, number: str, **fields: Any) -> RecordedTrial:
    """Return a trial, with each call paired with its answer.

    Args:
        file_name: The file, named in messages of errors.
        turns: The messages, in order.
        task: The task's name.
        number: The trial's name among those of the task.
        fields: Other fields of `RecordedTrial`.

    Raises:
        ResultsError: An answer has no call, or names another tool or asker than its call, or an id is asked twice before it is
            answered.
    """
    calls, open_calls = list[RecordedCall](), dict[str, int]()
    for place, turn in enumerate(turns):
        place_name = f"{file_name}, task {one_line(task, 60)}, message {place}"
        if turn.answers is not None:
            index = open_calls.pop(turn.answers, None)
            if index is None:
                raise ResultsError(f"{place_name}: a tool's message without its call (id {one_line(turn.answers, 60)})")
            call = calls[index]
            if turn.tool not in (None, call.tool) or turn.by not in (None, call.by):
                answering = f"{turn.tool or call.tool} by {turn.by or call.by}"
                raise ResultsError(f"{place_name}: answers {one_line(answering, 80)}, but {call.tool} was called by {call.by}")
            calls[index] = RecordedCall(call.tool, call.arguments, call.by, call.asked, place, turn.text, turn.failed)
        elif open_calls and turn.role != "system":
            open_call = calls[next(iter(open_calls.values()))]
            raise ResultsError(f"{place_name}: comes before the answer of {open_call.tool} (message {open_call.asked})")
        for call_in_turn in turn.asked:
            if call_in_turn.id in open_calls:
                raise ResultsError(
                    f"{place_name}: the call's id {one_line(call_in_turn.id, 60)} stands twice before it is answered"
                )
            open_calls[call_in_turn.id] = len(calls)
            calls.append(RecordedCall(call_in_turn.tool, call_in_turn.arguments, call_in_turn.by, place))
    return RecordedTrial(task, number, tuple(turns), tuple(calls), **fields)


def require_unique(file_name: str, trials: Iterable[RecordedTrial]) -> tuple[RecordedTrial, ...]:
    """Return the trials. Raises ResultsError if two trials have the same task and number, because one trial would count
    twice."""
    seen_keys, unique = set[tuple[str, str]](), list[RecordedTrial]()
    for trial in trials:
        if (trial.task, trial.number) in seen_keys:
            raise ResultsError(f"{file_name}: task {one_line(trial.task, 60)}, trial {one_line(trial.number, 60)} stands twice")
        seen_keys.add((trial.task, trial.number))
        unique.append(trial)
    if not unique:
        raise ResultsError(f"{file_name}: holds no trial")
    return tuple(unique)
