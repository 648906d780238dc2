"""The report of `bench import` on a run recorded elsewhere: the calls that were repeated with equal arguments, what preceded
each repetition, whether anything shows that the first call was not done, the cost after each error, and what the file cannot
say.

A recording is evidence. Nothing in it is run again.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from bench.common.errors import one_line
from bench.common.tokens import count_tokens
from bench.common.wording import plural
from bench.elsewhere.runs.steps import ImportedStep, OpenCall, StepCost, key_of, parse_arguments
from bench.elsewhere.trials import RecordedTrial

LogEntry = OpenCall | StepCost
MAX_SHOWN = 6
"""The most repeated calls, and the most errors, that a report describes in full."""
READING_TOOL = re.compile(
    r"^(get|list|search|find|read|fetch|query|look|lookup|show|describe|count|check|view|grep|glob|ls|think|calculate|"
    r"web_?search|web_?fetch|todo_?\w*)(_|$|(?-i:[A-Z]))",
    re.IGNORECASE,
)
"""The beginning of the name of a tool that only reads."""
COMMAND_TOOLS = frozenset(("bash", "shell", "exec_command", "execute_bash", "local_shell", "run_command", "terminal", "exec"))
"""Tools that run any command. Whether such a call writes is not known."""
KEY_ARGUMENT = re.compile(r"idempot", re.IGNORECASE)
REFUSAL_WORDS = re.compile(
    r"not found|no such|does not exist|invalid|denied|forbidden|unauthori[sz]ed|validation|missing|required|unknown|unexpected|"
    r"not (allowed|permitted|available|enough)|insufficient|already|\b4(00|01|03|04|09|22)\b",
    re.IGNORECASE,
)
"""Words of errors by which a tool refuses a call before it does anything."""
AMBIGUOUS_ERROR_WORDS = re.compile(
    r"timed?[- ]?out|\b50[0-9]\b|unavailable|connection|reset by peer|broken pipe|cancel+ed|interrupted|aborted|rate limit|"
    r"no response|internal (server )?error|deadline|try again|redacted",
    re.IGNORECASE,
)
"""Words of an error that can occur before the work is done as well as after."""
AnswerShows = Literal["done", "refused", "unclear", "open"]
"""What the answer of a call shows.

done      the call was done
refused   the call was refused
unclear   an error whose words do not say whether the call was done
open      no answer, or an error that can occur before the work is done as well as after
"""
ERRORS = re.compile(r"\berror\b|exception|traceback|fail(ed|ure)|refused|timed?[- ]?out|\b50[0-9]\b|unavailable", re.IGNORECASE)
"""The words by which an answer counts as an error, if the file does not say whether the call failed."""
MOST_SEVERE_FIRST: tuple[AnswerShows, ...] = ("open", "done", "unclear", "refused")
ERROR_SEARCH_LENGTH = 300
"""The number of first characters of an answer that are searched for words of an error."""


@dataclass(frozen=True)
class LoggedCall:
    """A tool call in a log.

    call    the tool call, with its arguments and its result
    step    the number of the model's call that asked for the tool call
    place   the index of the tool call in the log
    """

    call: OpenCall
    step: int
    place: int

    @cached_property
    def key(self) -> tuple[str, str]:
        """The tool and the arguments in a form in which two calls can be compared, without fields that differ between two
        attempts."""
        return key_of(self.call.tool, self.call.arguments)

    @property
    def is_keyed(self) -> bool:
        """Whether the arguments contain a key by which a tool can do the call only once."""
        return isinstance(self.arguments, dict) and any(KEY_ARGUMENT.search(name) for name in self.arguments)

    @cached_property
    def arguments(self) -> Any:
        return parse_arguments(self.call.arguments)

    @property
    def reads(self) -> bool:
        return self.call.reads or bool(READING_TOOL.match(self.call.tool.rpartition("__")[2]))

    @property
    def is_command(self) -> bool:
        return self.call.tool.lower() in COMMAND_TOOLS

    @property
    def failed(self) -> bool:
        """Whether the call had no answer, or failed according to the file, or, if the file does not say, was answered with
        words of an error."""
        if not self.call.answered or self.call.failed is not None:
            return self.call.failed is not False
        head = self.call.result[:ERROR_SEARCH_LENGTH]
        return bool(ERRORS.search(head))

    @property
    def answer_shows(self) -> AnswerShows:
        """What the answer shows about whether the call was done."""
        head = self.call.result[:ERROR_SEARCH_LENGTH]
        if not self.failed:
            return "done"
        if not self.call.answered or AMBIGUOUS_ERROR_WORDS.search(head):
            return "open"
        return "refused" if REFUSAL_WORDS.search(head) else "unclear"

    @property
    def line(self) -> str:
        return f"{self.call.tool}({one_line(self.call.arguments, 100)})"

    @property
    def answer(self) -> str:
        """The answer as a clause."""
        if not self.call.answered:
            return "has no answer in the file"
        words = one_line(self.call.result, 120) or "(nothing)"
        if not self.failed:
            return f"was answered: {words}"
        return f"{'failed' if self.call.failed else 'was answered by words of an error'}: {words}"


def calls_of(log: Sequence[LogEntry]) -> list[LoggedCall]:
    """Return the tool calls of a log, in order."""
    calls, step = list[LoggedCall](), 0
    for place, entry in enumerate(log):
        if isinstance(entry, StepCost):
            step += 1
        else:
            calls.append(LoggedCall(entry, step, place))
    return calls


def repeated_pairs(calls: Sequence[LoggedCall]) -> list[tuple[LoggedCall, LoggedCall]]:
    """Return the pairs of equal calls that may write, each with its next repetition. A command counts only if it is unclear
    whether the earlier call was done."""
    groups = defaultdict[tuple[str, str], list[LoggedCall]](list)
    for call in calls:
        if not call.reads:
            groups[call.key].append(call)
    pairs = (pair for group in groups.values() for pair in pairwise(group))
    return sorted(
        (pair for pair in pairs if not pair[0].is_command or pair[0].answer_shows == "open"),
        key=lambda pair: (pair[0].place, pair[1].place),
    )


def run_report_lines(log: Sequence[LogEntry]) -> Iterator[str]:
    """Yield the report on one run, a line for each fact."""
    calls = calls_of(log)
    pairs, failed = repeated_pairs(calls), [call for call in calls if call.failed]
    models = sum(isinstance(entry, StepCost) for entry in log)
    call_counts = f"{plural(len(calls), 'call')} of tools, asked for by {plural(models, 'call')} of a model"
    yield f"{call_counts}; failed or without an answer: {len(failed)}."
    if not pairs:
        yield "No call that may write was made again with equal arguments."
    for first_call, repeated_call in pairs[:MAX_SHOWN]:
        yield from _repetition_lines(calls, first_call, repeated_call)
    if (further := len(pairs) - MAX_SHOWN) > 0:
        yield f"and {plural(further, 'further repeated call')}"
    for call in failed[:MAX_SHOWN]:
        yield _cost_of_failure(log, calls, call)
    if (further := len(failed) - MAX_SHOWN) > 0:
        yield f"and {plural(further, 'further error')}"
    yield from _missing_facts(log, calls)


def _repetition_lines(calls: Sequence[LoggedCall], first_call: LoggedCall, repeat: LoggedCall) -> Iterator[str]:
    """Yield the lines about a repeated call."""
    exception = "" if first_call.arguments == repeat.arguments else ", but for what differs in two tries"
    steps = f"in step {first_call.step}, then in step {repeat.step}"
    yield f"{first_call.line} was called again with equal arguments{exception}: {steps}."
    yield f"  The first {first_call.answer}."
    yield f"  The second {repeat.answer}."
    calls_between = (call for call in calls if first_call.place < call.place < repeat.place and call.reads)
    reading_tools = list(
        dict.fromkeys(call.call.tool for call in calls_between if not re.match("think|calc|todo", call.call.tool))
    )
    if reading_tools:
        yield f"  Between them the agent looked: {', '.join(reading_tools[:3])}."
    yield f"  {_repetition_meaning(first_call, repeat)}"


def _repetition_meaning(first_call: LoggedCall, repeated_call: LoggedCall) -> str:
    """Say what the two answers show about the effect."""
    if first_call.is_keyed and first_call.arguments == repeated_call.arguments:
        return "Both carry one key: a tool that does each key once did it once. Whether this tool does, the file does not say."
    both_failed = first_call.failed and repeated_call.failed
    if both_failed and first_call.call.answered and first_call.call.result == repeated_call.call.result:
        return "Both failed in the same words, which speaks for an effect that was done by neither, and is no proof."
    match first_call.answer_shows:
        case "done":
            twice = "The first was answered as done" if repeated_call.failed else "Both were answered as done"
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


def _cost_of_failure(log: Sequence[LogEntry], calls: Sequence[LoggedCall], failed: LoggedCall) -> str:
    """Describe the cost from an error to the next success of the same tool, or else to the end of the run."""
    later = [call for call in calls if call.place > failed.place]
    success = next((call for call in later if call.call.tool == failed.call.tool and not call.failed), None)
    end = success.place if success else len(log)
    model_calls = [entry for entry in log[failed.place + 1 : end] if isinstance(entry, StepCost)]
    tool_calls = sum(call.place <= end for call in later)
    costs = [plural(tool_calls, "call") + " of tools", plural(len(model_calls), "call") + " of a model"]
    counts = [entry.tokens for entry in model_calls]
    if any(count is not None for count in counts):
        costs.append(f"{sum(filter(None, counts)):,} tokens, as the provider counted them")
    elif model_calls:
        costs.append(f"{sum(count_tokens(entry.words) for entry in model_calls):,} tokens, each text counted once by us")
    start = failed.call.ended or failed.call.began
    finish = success.call.ended if success else max((entry.ended for entry in log), default=0.0)
    if start and finish > start:
        costs.append(f"{finish - start:,.1f} s")
    if dollars := [entry.dollars for entry in model_calls if entry.dollars is not None]:
        costs.append(f"${sum(dollars):.4f}")
    until = (
        f"until {failed.call.tool} succeeded in step {success.step}"
        if success
        else f"to the end; {failed.call.tool} did not succeed"
    )
    return f"After the error of step {failed.step} ({failed.call.tool}): {', '.join(costs)} {until}."


def _missing_facts(log: Sequence[LogEntry], calls: Sequence[LoggedCall]) -> Iterator[str]:
    """Yield a line on the facts that the file does not contain, and a line on the tools that count as reading because of their
    names."""
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


def trials_report_lines(trials: Sequence[RecordedTrial]) -> Iterator[str]:
    """Yield the report on many recorded trials: how many repeat a call, what preceded the repetitions, and the first
    repetitions."""
    logs = [(trial, calls_of(log_of_trial(trial))) for trial in trials]
    pairs = [(trial, calls, pair) for trial, calls in logs for pair in repeated_pairs(calls)]
    if not pairs:
        yield "no call that may write was made again with equal arguments in any trial"
        return
    shown_counts = Counter(first_call.answer_shows for _, _, (first_call, _) in pairs)
    trials_with = len({(trial.task, trial.number) for trial, _, _ in pairs})
    yield (
        f"calls that may write, made again with equal arguments: {len(pairs)}, in {trials_with} of {len(trials)} trials; "
        f"{shown_counts['done']} after an answer, {shown_counts['refused']} after a refusal, "
        f"{shown_counts['unclear']} after another error, {shown_counts['open']} after a time-out or the like, which does not "
        "show whether the first was done"
    )
    by_severity = sorted(pairs, key=lambda entry: MOST_SEVERE_FIRST.index(entry[2][0].answer_shows))
    for trial, calls, (first_call, repeated_call) in by_severity[:3]:
        yield f"in task {one_line(trial.task, 60)}, trial {one_line(trial.number, 20)}:"
        yield from (f"  {line}" for line in _repetition_lines(calls, first_call, repeated_call))


def log_of_trial(trial: RecordedTrial) -> list[LogEntry]:
    """Return the tool calls and the agents' messages of a recorded trial, in order."""
    calls_by_turn = defaultdict[int, list[OpenCall]](list)
    for call in trial.calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        open_call = OpenCall("", call.tool, arguments, call.answer, failed=call.failed, answered=call.answered is not None)
        calls_by_turn[call.asked].append(open_call)
    log = list[LogEntry]()
    for place, turn in enumerate(trial.turns):
        if turn.role not in ("user", "system", "tool"):
            log.append(StepCost(sum(turn.provider) if turn.provider else None, words=turn.text))
        log += calls_by_turn[place]
    return log


def log_of_steps(steps: Sequence[ImportedStep]) -> list[LogEntry]:
    """Return the log of the steps of a pack."""
    log = list[LogEntry]()
    for step in steps:
        calls = (
            OpenCall("", call.tool, call.arguments, call.result, call.reads, answered=bool(call.result)) for call in step.calls
        )
        log += [StepCost(words=step.reply), *calls]
    return log
