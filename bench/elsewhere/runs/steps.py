"""The common form of an imported run, and how a reader makes it.

What a step was shown grows with each step, so no step holds the whole of it. The texts of a run are its *pieces*, in order:
what step 1 was shown, its reply, what step 2 was shown that no step before was, its reply, and so on. A step holds its own
piece, and the ranges of the earlier pieces that it was shown again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from bench.common.errors import ResultsError, one_line, whole_text

MOST_STEPS = 500
MOST_CALLS = 2_000
"""Calls of tools in a run."""
MOST_SHOWN = 2**29
"""Characters in all prompts of a run together."""
MOST_NAMES, MOST_NAME = 6, 80
MOST_LINES = 12
"""Lines about what was left out."""
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ImportedCall:
    """A tool call. `reads`: it changes nothing."""

    tool: str
    arguments: str
    result: str
    reads: bool


@dataclass(frozen=True)
class ImportedStep:
    """A call of the model.

    shown    the part of its prompt that stands in no piece of `before`
    before   the ranges of the run's pieces that it was shown again
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
        """Return all that a step was shown. Steps count from 1."""
        step = self.steps[number - 1]
        pieces = (self._piece(place) for begin, end in step.before for place in range(begin, end))
        return "\n\n".join(filter(None, (*pieces, step.shown)))

    def _piece(self, place: int) -> str:
        step = self.steps[place // 2]
        return as_shown("assistant", step.reply) if place % 2 else step.shown


def as_shown(role: str, text: str) -> str:
    """Return a message as a part of a prompt."""
    return f"[{role}]\n{text}"


def summary_of(left_out: Counter[str]) -> list[str]:
    """Return a line for each kind of content that was left out, the most frequent first."""
    lines = [f"{count} × {one_line(what, 160)}" for what, count in left_out.most_common(MOST_LINES)]
    more = len(left_out) - len(lines)
    return [*lines, f"{more} other things"] if more else lines


@dataclass
class OpenCall:
    """A tool call whose result may come later.

    ran      whether a record of its own says that it ran
    failed   whether the file says that it failed; None if it says nothing
    began, ended   seconds since some time, 0 if not known; `answered` whether it has a result, or a record of its own
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
    """What a call of a model took: its tokens and dollars, None where the file has none, and when it began and ended, 0 if not
    known. `words` are those that it was the first to be shown, and its reply."""

    tokens: int | None = None
    dollars: float | None = None
    began: float = 0.0
    ended: float = 0.0
    words: str = ""


@dataclass
class RunInMaking:
    """A run that a reader adds to, step by step. `name` begins the lines of errors."""

    name: str
    most: int = 1
    """How many times the steps of a pack may be read."""
    left_out: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    """Attributes that hold long texts, where no step was found."""
    steps: list[ImportedStep] = field(default_factory=list)
    calls: list[list[OpenCall]] = field(default_factory=list)
    log: list[OpenCall | StepCost] = field(default_factory=list)
    """Calls of tools and of models in order, those without words too."""
    _homes: dict[tuple[str, int], int] = field(default_factory=dict)
    _sizes: Counter[int] = field(default_factory=Counter)
    _replies: Counter[str] = field(default_factory=Counter)
    _asked: dict[str, OpenCall] = field(default_factory=dict)
    _waiting: defaultdict[str, deque[OpenCall]] = field(default_factory=lambda: defaultdict(deque))
    _early: list[OpenCall] = field(default_factory=list)
    _calls: int = 0

    def expect(self, steps: int, calls: int = 0) -> None:
        """Raise ResultsError if there are too many steps or tool calls. A reader counts them before it makes any."""
        for count, what, most in ((steps, "steps", MOST_STEPS), (calls, "calls of tools", MOST_CALLS)):
            if count > most * self.most:
                raise ResultsError(f"{self.name}: has {count} {what}, and at most {most * self.most:,} are read; shorten it")

    def repeated(self, prompt: Sequence[str]) -> tuple[Ranges, list[int]]:
        """Return the pieces that a prompt repeats as a whole, and the places of its parts that stand in none of these.

        The second of two equal parts is a part of its own, so that no repetition is lost.
        """
        again = Counter[str]()
        parts = list[tuple[str, int]]()
        for text in prompt:
            again[text] += 1
            parts.append((text, again[text]))
        counts = Counter(self._homes[part] for part in parts if part in self._homes)
        whole = {piece for piece, count in counts.items() if count == self._sizes[piece]}
        new = [place for place, part in enumerate(parts) if self._homes.get(part) not in whole]
        piece = 2 * len(self.steps)
        self._sizes[piece] = len(new)
        for place in new:
            self._homes.setdefault(parts[place], piece)
        return ranges_of(sorted(whole)), new

    def add(
        self, shown: Sequence[str], before: Ranges, reply: str, calls: Sequence[OpenCall] = (), cost: StepCost | None = None
    ) -> None:
        """Add a step.

        Args:
            shown: The parts of its prompt that `before` does not cover.
            calls: The tool calls of the reply. `answer` gives them their results.
            cost: What it took.
        """
        self.log += [replace(cost or StepCost(), words="\n".join((*shown, reply))), *calls]
        text = as_shown("assistant", reply)
        self._replies[text] += 1
        while (text, self._replies[text]) in self._homes:
            self._replies[text] += 1
        self._homes[text, self._replies[text]] = 2 * len(self.steps) + 1
        self._sizes[2 * len(self.steps) + 1] = 1
        self.steps.append(ImportedStep(whole_text("\n\n".join(shown)), before, whole_text(reply)))
        self.calls.append([*self._early, *calls])
        self._early = []
        self._count(len(calls))
        for call in calls:
            self._asked[call.id] = call
            self._waiting[call.id].append(call)

    def _count(self, calls: int) -> None:
        self._calls += calls
        self.expect(0, self._calls)

    def answer(self, id_: str, result: str, failed: bool | None = None, at: float = 0.0) -> None:
        """Give the result to the tool call with this id. If several calls have it, the first call without a result gets it."""
        if self._waiting[id_]:
            call = self._waiting[id_].popleft()
            call.result, call.answered = call.result or result, True
            call.failed, call.ended = failed if call.failed is None else call.failed, call.ended or at

    def ran(self, call: OpenCall) -> None:
        """Complete a tool call by the record of its execution. If no reply asked for the call, add it to the present step."""
        current = self.calls[-1] if self.calls else self._early
        asked = self._asked.get(call.id) if call.id else None
        if asked is None or asked.ran:
            asked = next((other for other in current if other.tool == call.tool and not other.ran), None)
        if asked is None:
            self.happened(call)
        else:
            asked.arguments, asked.result = call.arguments or asked.arguments, call.result or asked.result
            asked.reads = call.reads
            asked.failed, asked.began, asked.ended = call.failed, call.began, call.ended
        (asked or call).ran = (asked or call).answered = True

    def happened(self, call: OpenCall) -> None:
        """Add a tool call that no reply asked for: to the last step, or else to the first."""
        (self.calls[-1] if self.calls else self._early).append(call)
        self.log.append(call)
        self._count(1)

    def ended(self) -> ImportedRun:
        """Return the run. Raises ResultsError if it has no step, or more than can be read."""
        if not self.steps:
            known = f" (found: {'; '.join(summary_of(self.left_out))})" if self.left_out else ""
            todo = "tell the recorder to keep the messages"
            if names := [one_line(name, MOST_NAME) for name, _ in self.unread.most_common(MOST_NAMES)]:
                todo = f"long texts stand in {', '.join(names)}, of which none is read as a reply"
            raise ResultsError(f"{self.name}: has no call of a model whose words were recorded; {todo}{known}")
        steps = tuple(
            ImportedStep(step.shown, step.before, step.reply, tuple(map(_end_call, calls)))
            for step, calls in zip(self.steps, self.calls, strict=True)
        )
        sizes = [size for step in steps for size in (len(step.shown), len(step.reply))]
        sums = [0, *accumulate(sizes)]
        shown = sum(len(step.shown) + sum(sums[end] - sums[begin] for begin, end in step.before) for step in steps)
        if shown > MOST_SHOWN:
            raise ResultsError(
                f"{self.name}: its prompts have {shown:,} characters together, and at most {MOST_SHOWN:,} are read; shorten it"
            )
        return ImportedRun(steps, self.left_out)


def _end_call(call: OpenCall) -> ImportedCall:
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
        given = set[str]()
        for place, call in enumerate(step.calls, 1):
            word = re.sub(r"[^a-z0-9]+", "_", call.tool.lower()).strip("_")[:40] or "tool"
            name = word if place == 1 else f"{word}_{place}"
            while name in given:
                name = f"{name}_{place}"
            given.add(name)
            yield number, call, f"{step_name(number)}_{name}"


def step_name(number: int) -> str:
    return f"step_{number:02}"
