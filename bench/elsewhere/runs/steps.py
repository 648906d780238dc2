"""The common form of an imported run, and the builder with which a reader makes it.

The prompt grows with each step, so no step stores its whole prompt. The texts of a run are its *pieces*, in order: the
prompt of step 1, its reply, the new part of the prompt of step 2, its reply, and so on. A step stores its own piece, and the
ranges of the earlier pieces that its prompt repeats.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from bench.common.errors import ResultsError, one_line, whole_text

MAX_STEPS, MAX_CALLS = 500, 2_000
"""The most calls of a model, and the most calls of tools, in a run of which a pack is made."""
MAX_CHARS = 2**29
"""The most characters in all prompts of a run together."""
MAX_SHOWN_NAMES, MAX_NAME_LENGTH = 6, 80
"""The most names of unread attributes in an error, and the most characters of each name."""
MAX_LEFT_OUT_LINES = 12
"""The most lines about contents that were left out."""
Ranges = tuple[tuple[int, int], ...]
"""Ranges of numbers, each as (first number, number after the last)."""
RETRY_FIELD = re.compile(r"idempot|request_?id|nonce|timestamp|trace_?id|correlation", re.IGNORECASE)
"""The name of an argument that can differ in two tries of one call."""


@dataclass(frozen=True)
class ImportedCall:
    """A tool call. `reads` says whether the call changes nothing."""

    tool: str
    arguments: str
    result: str
    reads: bool


@dataclass(frozen=True)
class ImportedStep:
    """A call of the model.

    shown    the part of its prompt that is in no piece of `before`
    before   the ranges of the run's pieces that its prompt repeats
    reply    its text and its tool calls
    """

    shown: str
    before: Ranges
    reply: str
    calls: tuple[ImportedCall, ...] = ()


@dataclass(frozen=True)
class ImportedRun:
    """The steps of a run. `left_out` counts the contents of the file that were not read, or not read unchanged."""

    steps: tuple[ImportedStep, ...]
    left_out: Counter[str]

    def prompt(self, number: int) -> str:
        """Return the whole prompt of a step. Steps count from 1."""
        step = self.steps[number - 1]
        pieces = (self._piece(place) for begin, end in step.before for place in range(begin, end))
        return "\n\n".join(filter(None, (*pieces, step.shown)))

    def _piece(self, place: int) -> str:
        """Return the piece with this number."""
        step = self.steps[place // 2]
        return as_shown("assistant", step.reply) if place % 2 else step.shown


def as_shown(role: str, text: str) -> str:
    """Return a message as a part of a prompt."""
    return f"[{role}]\n{text}"


def summary_of(left_out: Counter[str]) -> list[str]:
    """Return a line for each kind of content that was left out, the most frequent first."""
    lines = [f"{count} × {one_line(content_kind, 160)}" for content_kind, count in left_out.most_common(MAX_LEFT_OUT_LINES)]
    further = len(left_out) - len(lines)
    return [*lines, f"{further} other things"] if further else lines


@dataclass
class OpenCall:
    """A tool call whose result may come later.

    ran            whether a separate record says that the call was executed
    failed         whether the file says that the call failed; None if it does not say
    began, ended   seconds since some time, 0 if not known
    answered       whether the call has a result, or a separate record
    """

    id: str
    tool: str
    arguments: str
    result: str = ""
    reads: bool = False
    ran: bool = False
    failed: bool | None = None
    began: float = 0.0
    ended: float = 0.0
    answered: bool = False


@dataclass(frozen=True)
class StepCost:
    """The cost of a call of the model.

    tokens         the tokens; None if the file has none
    dollars        the dollars; None if the file has none
    began, ended   the times, 0 if not known
    words          the new part of the prompt, and the reply
    """

    tokens: int | None = None
    dollars: float | None = None
    began: float = 0.0
    ended: float = 0.0
    words: str = ""


@dataclass
class RunBuilder:
    """A run to which a reader adds steps. `name` begins the messages of errors."""

    name: str
    limit_factor: int = 1
    """The limits on steps and tool calls are multiplied by this factor."""
    left_out: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    """Names of attributes that hold long texts, counted if no step was found."""
    steps: list[ImportedStep] = field(default_factory=list)
    calls: list[list[OpenCall]] = field(default_factory=list)
    log: list[OpenCall | StepCost] = field(default_factory=list)
    """Calls of tools and of models in order, including the calls without recorded words."""
    _piece_of_part: dict[tuple[str, int], int] = field(default_factory=dict)
    _part_counts: Counter[int] = field(default_factory=Counter)
    _reply_counts: Counter[str] = field(default_factory=Counter)
    _calls_by_id: dict[str, OpenCall] = field(default_factory=dict)
    _unanswered: defaultdict[str, deque[OpenCall]] = field(default_factory=lambda: defaultdict(deque))
    _calls_before_steps: list[OpenCall] = field(default_factory=list)
    _call_count: int = 0

    @property
    def next_piece(self) -> int:
        """The number of the piece that the new part of the next prompt becomes. The reply after it is the following piece."""
        return 2 * len(self.steps)

    def require_size(self, steps: int, calls: int = 0) -> None:
        """Raise ResultsError if there are too many steps or tool calls. A reader counts them before it adds the first."""
        for count, noun, limit in ((steps, "steps", MAX_STEPS), (calls, "calls of tools", MAX_CALLS)):
            limit_here = limit * self.limit_factor
            if count > limit_here:
                raise ResultsError(f"{self.name}: has {count} {noun}, and at most {limit_here:,} are read; shorten it")

    def find_repeated(self, prompt: Sequence[str]) -> tuple[Ranges, list[int]]:
        """Return the ranges of the pieces that a prompt repeats completely, and the indexes of its parts that are in none of
        these pieces. The latter become the piece of the next step.

        The second of two equal parts is a part of its own, so that no repetition is lost.
        """
        occurrences = Counter[str]()
        parts = list[tuple[str, int]]()
        for text in prompt:
            occurrences[text] += 1
            parts.append((text, occurrences[text]))
        counts = Counter(self._piece_of_part[part] for part in parts if part in self._piece_of_part)
        complete = {piece for piece, count in counts.items() if count == self._part_counts[piece]}
        new_places = [place for place, part in enumerate(parts) if self._piece_of_part.get(part) not in complete]
        self._part_counts[self.next_piece] = len(new_places)
        for place in new_places:
            self._piece_of_part.setdefault(parts[place], self.next_piece)
        return ranges_of(sorted(complete)), new_places

    def add(
        self,
        shown: Sequence[str],
        repeated_ranges: Ranges,
        reply: str,
        calls: Sequence[OpenCall] = (),
        cost: StepCost | None = None,
    ) -> None:
        """Add a step.

        Args:
            shown: The parts of its prompt that are in no repeated piece.
            repeated_ranges: The ranges of the pieces that its prompt repeats.
            reply: The text and the tool calls of the reply.
            calls: The tool calls of the reply. `answer` sets their results.
            cost: The tokens, dollars and times of the call.
        """
        self.log += [replace(cost or StepCost(), words="\n".join((*shown, reply))), *calls]
        text = as_shown("assistant", reply)
        self._reply_counts[text] += 1
        while (text, self._reply_counts[text]) in self._piece_of_part:  # an equal part of a prompt has this number
            self._reply_counts[text] += 1
        self._piece_of_part[text, self._reply_counts[text]] = self.next_piece + 1
        self._part_counts[self.next_piece + 1] = 1
        self.steps.append(ImportedStep(whole_text("\n\n".join(shown)), repeated_ranges, whole_text(reply)))
        self.calls.append([*self._calls_before_steps, *calls])
        self._calls_before_steps = []
        self._count_calls(len(calls))
        for call in calls:
            self._calls_by_id[call.id] = call
            self._unanswered[call.id].append(call)

    def _count_calls(self, calls: int) -> None:
        """Count tool calls. Raises ResultsError if there are too many."""
        self._call_count += calls
        self.require_size(0, self._call_count)

    def answer(self, id_: str, result: str, failed: bool | None = None, time: float = 0.0) -> None:
        """Set the result of the tool call with this id. If several calls have the id, the first call without a result gets
        it."""
        if self._unanswered[id_]:
            call = self._unanswered[id_].popleft()
            call.result, call.answered = call.result or result, True
            call.failed, call.ended = failed if call.failed is None else call.failed, call.ended or time

    def complete_call(self, call: OpenCall) -> None:
        """Complete a tool call by the separate record of its execution: the call with the record's id, or else the first call
        of the tool in the present step that has no such record. If there is none, add the record as a call of its own."""
        current = self.calls[-1] if self.calls else self._calls_before_steps
        asked_call = self._calls_by_id.get(call.id) if call.id else None
        if asked_call is None or asked_call.ran:
            asked_call = next((open_call for open_call in current if open_call.tool == call.tool and not open_call.ran), None)
        if asked_call is None:
            self.add_unasked_call(call)
        else:
            asked_call.arguments, asked_call.result = call.arguments or asked_call.arguments, call.result or asked_call.result
            asked_call.reads = call.reads
            asked_call.failed, asked_call.began, asked_call.ended = call.failed, call.began, call.ended
        (asked_call or call).ran = (asked_call or call).answered = True

    def add_unasked_call(self, call: OpenCall) -> None:
        """Add a tool call for which no reply asked to the last step, or to the first step if there is none yet."""
        (self.calls[-1] if self.calls else self._calls_before_steps).append(call)
        self.log.append(call)
        self._count_calls(1)

    def finish(self) -> ImportedRun:
        """Return the finished run. Raises ResultsError if the run has no step, or is too long."""
        if not self.steps:
            left_out_text = f" (found: {'; '.join(summary_of(self.left_out))})" if self.left_out else ""
            advice = "tell the recorder to keep the messages"
            if names := [one_line(name, MAX_NAME_LENGTH) for name, _ in self.unread.most_common(MAX_SHOWN_NAMES)]:
                advice = f"long texts stand in {', '.join(names)}, of which none is read as a reply"
            raise ResultsError(f"{self.name}: has no call of a model whose words were recorded; {advice}{left_out_text}")
        steps = tuple(
            ImportedStep(step.shown, step.before, step.reply, tuple(map(_finished_call, calls)))
            for step, calls in zip(self.steps, self.calls, strict=True)
        )
        sizes = [size for step in steps for size in (len(step.shown), len(step.reply))]
        sums = [0, *accumulate(sizes)]
        shown = sum(len(step.shown) + sum(sums[end] - sums[begin] for begin, end in step.before) for step in steps)
        if shown > MAX_CHARS:
            raise ResultsError(
                f"{self.name}: its prompts have {shown:,} characters together, and at most {MAX_CHARS:,} are read; shorten it"
            )
        return ImportedRun(steps, self.left_out)


def _finished_call(call: OpenCall) -> ImportedCall:
    """Return a finished tool call."""
    return ImportedCall(whole_text(call.tool), whole_text(call.arguments), whole_text(call.result), call.reads)


def ranges_of(places: Sequence[int]) -> Ranges:
    """Return ascending numbers as ranges: 0, 1, 2, 5 as (0, 3), (5, 6)."""
    ranges = list[tuple[int, int]]()
    for place in places:
        if ranges and ranges[-1][1] == place:
            ranges[-1] = (ranges[-1][0], place + 1)
        else:
            ranges.append((place, place + 1))
    return tuple(ranges)


def tool_names(steps: Sequence[ImportedStep]) -> Iterator[tuple[int, ImportedCall, str]]:
    """Yield each tool call with the number of its step and a unique name, such as `step_07_refund`."""
    for number, step in enumerate(steps, 1):
        used_names = set[str]()
        for place, call in enumerate(step.calls, 1):
            word = re.sub(r"[^a-z0-9]+", "_", call.tool.lower()).strip("_")[:40] or "tool"
            name = word if place == 1 else f"{word}_{place}"
            while name in used_names:
                name = f"{name}_{place}"
            used_names.add(name)
            yield number, call, f"{step_name(number)}_{name}"


def step_name(number: int) -> str:
    """Return the name of a step, for example `step_07`."""
    return f"step_{number:02}"


def key_of(tool: str, arguments: str) -> tuple[str, str]:
    """Return a tool and its arguments in a form in which two calls can be compared, without fields that differ between two
    attempts."""
    return tool, json.dumps(_without_retry_fields(parse_arguments(arguments)), sort_keys=True)


def parse_arguments(arguments: str) -> Any:
    """Return the JSON value of arguments; a text that is no JSON is returned unchanged."""
    with suppress(ValueError, RecursionError):
        return json.loads(arguments)
    return arguments


def _without_retry_fields(value: Any) -> Any:
    """Return arguments without fields that differ between two attempts."""
    return {name: inner for name, inner in value.items() if not RETRY_FIELD.search(name)} if isinstance(value, dict) else value
