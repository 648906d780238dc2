"""The calls of a pack's functions: the functions of the subtasks, the grader and the baseline. The type of each returned
value is checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.raised import place_of, type_and_message
from bench.run.packs.code import unwrap
from bench.scenario import Answer, Check, Context, Finding, Grade, Inputs, Json, Output, Scenario, Subtask


class HookFailed(Exception):
    """A function of a pack raised an error or returned a wrong type. The text is one line."""


@dataclass(frozen=True)
class Hooks:
    """The functions of one scenario."""

    scenario: Scenario
    folder: Path

    def call(self, label: str, function: Callable[..., Any], *values: object) -> Any:
        """Call a function of the pack, or a function that calls functions of the pack. Raises HookFailed."""
        try:
            return function(*values)
        except (Exception, SystemExit) as error:
            place = place_of(error, self.folder)
            raise HookFailed(f"{f'{place}: ' if place else ''}{label} raises {type_and_message(error)}") from error


class TaskHooks(Hooks):
    """The functions of a task's subtasks, its grader and its baseline. Each method raises HookFailed."""

    def objection(self, subtask: Subtask, outputs: Answer) -> str | None:
        """Return the text of the first check that objects to a subtask's output. Every check is called."""
        context = self._context(subtask, outputs)
        objections = [self._check(check, subtask, outputs[subtask.name], context) for check in subtask.checks]
        return next((objection for objection in objections if objection is not None), None)

    def weakness(self, subtask: Subtask, output: Output) -> str | None:
        """Return the reason why `sufficient` rejects an output as too weak; None if it does not."""
        if subtask.sufficient is None:
            return None
        label = f"`sufficient` of '{subtask.name}'"
        return self._require_text(subtask.sufficient, label, self.call(label, subtask.sufficient, output))

    def skipped(self, subtask: Subtask, outputs: Answer) -> Output | None:
        """Return the output that `skip` commits without a model; None if it commits none."""
        if subtask.skip is None:
            return None
        label = f"`skip` of '{subtask.name}'"
        output = self.call(label, subtask.skip, self._context(subtask, outputs).outputs)
        if output is not None and not isinstance(output, subtask.output):
            raise self._type_error(subtask.skip, label, output, f"None, or the output to commit, a {subtask.output.__name__}")
        return output

    def finding(self, subtask: Subtask, output: Output) -> Finding | None:
        """Return the objection of `finds` to an earlier subtask, or None."""
        if subtask.finds is None:
            return None
        label = f"`finds` of '{subtask.name}'"
        finding = self.call(label, subtask.finds, output)
        names = [other.name for other in self.scenario.task.subtasks]
        earlier = names[: names.index(subtask.name)]
        if finding is None:
            return None
        if not isinstance(finding, Finding) or finding.subtask not in earlier or not isinstance(finding.reason, str):
            wanted = f"None, or a Finding against an earlier subtask ({', '.join(earlier) or 'there is none'})"
            raise self._type_error(subtask.finds, label, finding, wanted)
        return finding

    def grade(self, outputs: Mapping[str, Json]) -> Grade:
        """Grade an answer that fits the schemas."""
        grader = self.scenario.grade
        grade = self.call("the grader", grader, self.scenario.answer_of(outputs), self.scenario.truth)
        if not isinstance(grade, Grade):
            raise self._type_error(grader, "the grader", grade, "a bench.scenario.Grade")
        return grade

    def baseline(self) -> Mapping[str, Json]:
        """Return the answer of the baseline."""
        function = self.scenario.baseline
        answer = self.call("the baseline", function, Inputs(self.scenario.task.documents))
        if not isinstance(answer, Mapping):
            raise self._type_error(function, "the baseline", answer, "an output for each subtask, by its name")
        return answer

    def _check(self, check: Check, subtask: Subtask, output: Output, context: Context) -> str | None:
        """Return the objection of a check to an output."""
        label = f"the check `{getattr(check, '__name__', check)}` of '{subtask.name}'"
        return self._require_text(check, label, self.call(label, check, output, context))

    def _context(self, subtask: Subtask, outputs: Answer) -> Context:
        """Return the context that a subtask's functions get."""
        read = {name: outputs[name] for name in subtask.reads if name in outputs}
        return Context(self.scenario.task.documents, read)

    def _require_text(self, function: Callable[..., Any], label: str, value: Any) -> str | None:
        """Return a value that must be None or a text. Raises HookFailed for another type."""
        if value is not None and not isinstance(value, str):
            raise self._type_error(function, label, value, "None, or a text that says what is wrong")
        return value

    def _type_error(self, function: Callable[..., Any], label: str, value: Any, wanted: str) -> HookFailed:
        """Return the error for a function that returns a wrong type."""
        return HookFailed(f"{self._definition(function)}{label} returns {_short_repr(value)}; it must return {wanted}")

    def _definition(self, function: Callable[..., Any]) -> str:
        """Return `grader.py:12: ` for a function that the pack defines, else ""."""
        code = getattr(unwrap(function), "__code__", None)
        if not inspect.iscode(code):
            return ""
        path, root = Path(code.co_filename).resolve(), self.folder.resolve()
        return f"{path.relative_to(root).as_posix()}:{code.co_firstlineno}: " if path.is_relative_to(root) else ""


def _short_repr(value: object) -> str:
    """Return a value's text, cut to 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."
