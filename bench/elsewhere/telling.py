"""What happened in a run that was recorded elsewhere: which calls were made again with equal arguments, after what, whether
anything shows that the first was not done, what was spent after each error, and what the file cannot say.

A recording is evidence, and no scenario: nothing here is run again.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from bench.common.errors import one_line
from bench.common.tokens import count_tokens
from bench.common.wording import plural
from bench.elsewhere.runs.steps import ImportedStep, OpenCall, StepCost
from bench.elsewhere.trials import RecordedTrial

LogEntry = OpenCall | StepCost
MOST_TOLD = 6
"""The most repeated calls, and errors, that are told in full."""
READING = re.compile(
    r"^(get|list|search|find|read|fetch|query|look|lookup|show|describe|count|check|view|grep|glob|ls|think|calculate|"
    r"web_?search|web_?fetch|todo_?\w*)(_|$|(?-i:[A-Z]))",
    re.IGNORECASE,
)
"""The beginnings of names of tools that only read."""
COMMANDS = frozenset(("bash", "shell", "exec_command", "execute_bash", "local_shell", "run_command", "terminal", "exec"))
"""Tools that run any command: whether it writes is not known."""
VARIES = re.compile(r"idempot|request_?id|nonce|timestamp|trace_?id|correlation", re.IGNORECASE)
"""Names of arguments that can differ in two tries of one call."""
KEYED = re.compile(r"idempot", re.IGNORECASE)
REFUSED = re.compile(
    r"not found|no such|does not exist|invalid|denied|forbidden|unauthori[sz]ed|validation|missing|required|unknown|unexpected|"
    r"not (allowed|permitted|available|enough)|insufficient|already|\b4(00|01|03|04|09|22)\b",
    re.IGNORECASE,
)
"""Words of errors by which a tool refuses a call before it does anything."""
OPEN = re.compile(
    r"timed?[- ]?out|\b50[0-9]\b|unavailable|connection|reset by peer|broken pipe|cancel+ed|interrupted|aborted|rate limit|"
    r"no response|internal (server )?error|deadline|try again|redacted",
    re.IGNORECASE,
)
"""Words of errors that come after the work was done as well as before."""
AnswerShows = Literal["done", "refused", "unclear", "open"]
"""What the answer of a call shows: that it was done; that it was refused; an error of which nothing is known; or an error, or
none at all, that comes whether it was done or not."""
ERROR = re.compile(r"\berror\b|exception|traceback|fail(ed|ure)|refused|timed?[- ]?out|\b50[0-9]\b|unavailable", re.IGNORECASE)
ORDER: tuple[AnswerShows, ...] = ("open", "done", "unclear", "refused")
"""The most severe first."""
HEAD = 300
"""Characters of an answer in which an error is looked for."""


@dataclass(frozen=True)
class ToldCall:
    """A call of a tool in a log. `step` is the number of the model's call that asked for it, `place` its place in the log."""

    call: OpenCall
    step: int
    place: int

    @cached_property
    def key(self) -> tuple[str, str]:
        """Its tool and arguments, in a form in which two calls can be compared, without what differs in two tries."""
        return key_of(self.call.tool, self.call.arguments)

    @property
    def is_keyed(self) -> bool:
        """Whether it carries a key by which a tool can do it once."""
        return isinstance(self.arguments, dict) and any(KEYED.search(name) for name in self.arguments)

    @cached_property
    def arguments(self) -> Any:
        return _read(self.call.arguments)

    @property
    def reads(self) -> bool:
        return self.call.reads or bool(READING.match(self.call.tool.rpartition("__")[2]))

    @property
    def is_command(self) -> bool:
        return self.call.tool.lower() in COMMANDS

    @property
    def failed(self) -> bool:
        """Whether it had no answer, failed as the file says, or where the file says nothing, was answered by words of an
        error."""
        if not self.call.answered or self.call.failed is not None:
            return self.call.failed is not False
        head = self.call.result[:HEAD]
        return bool(ERROR.search(head))

    @property
    def answer_shows(self) -> AnswerShows:
        """What its answer shows of whether it was done."""
        head = self.call.result[:HEAD]
        if not self.failed:
            return "done"
        if not self.call.answered or OPEN.search(head):
            return "open"
        return "refused" if REFUSED.search(head) else "unclear"

    @property
    def line(self) -> str:
        return f"{self.call.tool}({one_line(self.call.arguments, 100)})"

    @property
    def answer(self) -> str:
        """What came back, in a clause."""
        if not self.call.answered:
            return "has no answer in the file"
        words = one_line(self.call.result, 120) or "(nothing)"
        if not self.failed:
            return f"was answered: {words}"
        return f"{'failed' if self.call.failed else 'was answered by words of an error'}: {words}"


def key_of(tool: str, arguments: str) -> tuple[str, str]:
    """Return a tool and its arguments in a form in which two calls can be compared, without what differs in two tries."""
    return tool, json.dumps(_without(_read(arguments)), sort_keys=True)


def _read(arguments: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(arguments)
    return arguments


def _without(value: Any) -> Any:
    return {name: inner for name, inner in value.items() if not VARIES.search(name)} if isinstance(value, dict) else value


def calls_of(log: Sequence[LogEntry]) -> list[ToldCall]:
    """Return the calls of tools of a log, in order."""
    calls, step = list[ToldCall](), 0
    for place, entry in enumerate(log):
        if isinstance(entry, StepCost):
            step += 1
        else:
            calls.append(ToldCall(entry, step, place))
    return calls


def repeated(calls: Sequence[ToldCall]) -> list[tuple[ToldCall, ToldCall]]:
    """Return the pairs of equal calls that may write, the later next to the earlier. A command counts if the earlier failed."""
    groups = defaultdict[tuple[str, str], list[ToldCall]](list)
    for call in calls:
        if not call.reads:
            groups[call.key].append(call)
    pairs = (pair for group in groups.values() for pair in pairwise(group))
    return sorted(
        (pair for pair in pairs if not pair[0].is_command or pair[0].answer_shows == "open"),
        key=lambda pair: (pair[0].place, pair[1].place),
    )


def told_lines(log: Sequence[LogEntry]) -> Iterator[str]:
    """Yield what happened in one run, a line for each fact."""
    calls = calls_of(log)
    pairs, failed = repeated(calls), [call for call in calls if call.failed]
    models = sum(isinstance(entry, StepCost) for entry in log)
    asked = f"{plural(len(calls), 'call')} of tools, asked for by {plural(models, 'call')} of a model"
    yield f"{asked}; failed or without an answer: {len(failed)}."
    if not pairs:
        yield "No call that may write was made again with equal arguments."
    for first, again in pairs[:MOST_TOLD]:
        yield from _pair(calls, first, again)
    if more := len(pairs) - MOST_TOLD:
        yield from [f"and {plural(more, 'further repeated call')}"] if more > 0 else []
    for call in failed[:MOST_TOLD]:
        yield _cost_of_failure(log, calls, call)
    if (more := len(failed) - MOST_TOLD) > 0:
        yield f"and {plural(more, 'further error')}"
    yield from _unknown(log, calls)


def _pair(calls: Sequence[ToldCall], first: ToldCall, again: ToldCall) -> Iterator[str]:
    differs = "" if first.arguments == again.arguments else ", but for what differs in two tries"
    yield f"{first.line} was called again with equal arguments{differs}: in step {first.step}, then in step {again.step}."
    yield f"  The first {first.answer}."
    yield f"  The second {again.answer}."
    between = (call for call in calls if first.place < call.place < again.place and call.reads)
    looked = list(dict.fromkeys(call.call.tool for call in between if not re.match("think|calc|todo", call.call.tool)))
    if looked:
        yield f"  Between them the agent looked: {', '.join(looked[:3])}."
    yield f"  {_meaning(first, again)}"


def _meaning(first: ToldCall, again: ToldCall) -> str:
    if first.is_keyed and first.arguments == again.arguments:
        return "Both carry one key: a tool that does each key once did it once. Whether this tool does, the file does not say."
    if first.failed and again.failed and first.call.answered and first.call.result == again.call.result:
        return "Both failed in the same words, which speaks for an effect that was done by neither, and is no proof."
    match first.answer_shows:
        case "done":
            twice = "The first was answered as done" if again.failed else "Both were answered as done"
            return f"{twice}: unless the task wants two, or the tool does it once, its effect stands twice."
        case "refused":
            return "The first was refused in words, which speaks for an effect that was not done, and is no proof."
        case "unclear":
            return (
                "The words of that error do not say whether the first was done: ask who wrote the tool, and look at the rows."
            )
        case "open":
            return (
                "Nothing here shows that the first was not done: such an answer also comes when the work is done and only its "
                "answer is lost. If it was done, the effect stands twice: look at the rows, or ask the service."
            )


def _cost_of_failure(log: Sequence[LogEntry], calls: Sequence[ToldCall], failed: ToldCall) -> str:
    """Return what was spent from an error to the next success of the same tool, or else to the end."""
    later = [call for call in calls if call.place > failed.place]
    mended = next((call for call in later if call.call.tool == failed.call.tool and not call.failed), None)
    end = mended.place if mended else len(log)
    behind = [entry for entry in log[failed.place + 1 : end] if isinstance(entry, StepCost)]
    between = sum(call.place <= end for call in later)
    took = [plural(between, "call") + " of tools", plural(len(behind), "call") + " of a model"]
    counts = [entry.tokens for entry in behind]
    if any(count is not None for count in counts):
        took.append(f"{sum(filter(None, counts)):,} tokens, as the provider counted them")
    elif behind:
        took.append(f"{sum(count_tokens(entry.words) for entry in behind):,} tokens, each text counted once by us")
    began, ended = failed.call.ended or failed.call.began, _end(log, mended)
    if began and ended > began:
        took.append(f"{ended - began:,.1f} s")
    if dollars := [entry.dollars for entry in behind if entry.dollars is not None]:
        took.append(f"${sum(dollars):.4f}")
    until = (
        f"until {failed.call.tool} succeeded in step {mended.step}"
        if mended
        else f"to the end; {failed.call.tool} did not succeed"
    )
    return f"After the error of step {failed.step} ({failed.call.tool}): {', '.join(took)} {until}."


def _end(log: Sequence[LogEntry], mended: ToldCall | None) -> float:
    return mended.call.ended if mended else max((entry.ended for entry in log), default=0.0)


def _unknown(log: Sequence[LogEntry], calls: Sequence[ToldCall]) -> Iterator[str]:
    """Yield what the file cannot say, and what was taken for reading."""
    costs = [entry for entry in log if isinstance(entry, StepCost)]
    lacks = ["what stands in the database", "whether a call that failed was done"]
    lacks += ["dollars"] if all(cost.dollars is None for cost in costs) else []
    lacks += ["seconds"] if not any(entry.ended for entry in log) else []
    lacks += ["whether a tool failed, but by its words"] if calls and all(call.call.failed is None for call in calls) else []
    yield f"Not in this file: {', '.join(lacks)}."
    by_name = sorted({call.call.tool for call in calls if call.reads and not call.call.reads})
    if by_name:
        shown = f"{', '.join(by_name[:8])}{' and others' if len(by_name) > 8 else ''}"
        yield f"Taken for tools that only read, by their names: {shown}."


def trials_lines(trials: Sequence[RecordedTrial]) -> Iterator[str]:
    """Yield what happened in many recorded trials: how many repeat a call, after what, and the first of them."""
    logs = [(trial, calls_of(log_of(trial))) for trial in trials]
    pairs = [(trial, calls, pair) for trial, calls in logs for pair in repeated(calls)]
    if not pairs:
        yield "no call that may write was made again with equal arguments in any trial"
        return
    counted = Counter(first.answer_shows for _, _, (first, _) in pairs)
    trials_with = len({(trial.task, trial.number) for trial, _, _ in pairs})
    yield (
        f"calls that may write, made again with equal arguments: {len(pairs)}, in {trials_with} of {len(trials)} trials; "
        f"{counted['done']} after an answer, {counted['refused']} after a refusal, {counted['unclear']} after another error, "
        f"{counted['open']} after a time-out or the like, which does not show whether the first was done"
    )
    for trial, calls, (first, again) in sorted(pairs, key=lambda each: ORDER.index(each[2][0].answer_shows))[:3]:
        yield f"in task {one_line(trial.task, 60)}, trial {one_line(trial.number, 20)}:"
        yield from (f"  {line}" for line in _pair(calls, first, again))


def log_of(trial: RecordedTrial) -> list[LogEntry]:
    """Return the calls of a recorded trial, and its messages by agents, in order."""
    asked = defaultdict[int, list[OpenCall]](list)
    for call in trial.calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        made = OpenCall("", call.tool, arguments, call.answer, failed=call.failed, answered=call.answered is not None)
        asked[call.asked].append(made)
    log = list[LogEntry]()
    for place, turn in enumerate(trial.turns):
        if turn.role not in ("user", "system", "tool"):
            log.append(StepCost(sum(turn.provider) if turn.provider else None, words=turn.text))
        log += asked[place]
    return log


def log_of_steps(steps: Sequence[ImportedStep]) -> list[LogEntry]:
    """Return the log of the steps of a pack."""
    log = list[LogEntry]()
    for step in steps:
        made = (
            OpenCall("", each.tool, each.arguments, each.result, each.reads, answered=bool(each.result)) for each in step.calls
        )
        log += [StepCost(words=step.reply), *made]
    return log
