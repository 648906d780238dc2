"""The functions of a task's subtasks, its grader and its baseline: what each returns is checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.cli.hooks import HookFailed, Hooks
from bench.run.packs.code import unwrap
from bench.scenario import Answer, Check, Context, Finding, Grade, Inputs, Json, Output, Subtask


class TaskHooks(Hooks):
    """The functions of a task's subtasks, its grader and its baseline. Each method raises HookFailed."""

    def objection(self, subtask: Subtask, outputs: Answer) -> str | None:
        """Return the text of the first check that objects to a subtask's output. Every check is called."""
        context = self._context(subtask, outputs)
        objections = [self._check(check, subtask, outputs[subtask.name], context) for check in subtask.checks]
        return next((objection for objection in objections if objection is not None), None)

    def weakness(self, subtask: Subtask, output: Output) -> str | None:
        """Return the reason why `sufficient` finds an output too weak; None if it does not."""
        if subtask.sufficient is None:
            return None
        what = f"`sufficient` of '{subtask.name}'"
        return self._text(subtask.sufficient, what, self.call(what, subtask.sufficient, output))

    def skipped(self, subtask: Subtask, outputs: Answer) -> Output | None:
        """Return the output that `skip` commits without a model; None if it commits none."""
        if subtask.skip is None:
            return None
        what = f"`skip` of '{subtask.name}'"
        output = self.call(what, subtask.skip, self._context(subtask, outputs).outputs)
        if output is not None and not isinstance(output, subtask.output):
            raise self._wrong(subtask.skip, what, output, f"None, or the output to commit, a {subtask.output.__name__}")
        return output

    def finding(self, subtask: Subtask, output: Output) -> Finding | None:
        """Return the objection of `finds` to an earlier subtask, or None."""
        if subtask.finds is None:
            return None
        what = f"`finds` of '{subtask.name}'"
        finding = self.call(what, subtask.finds, output)
        names = [other.name for other in self.scenario.task.subtasks]
        earlier = names[: names.index(subtask.name)]
        if finding is None:
            return None
        if not isinstance(finding, Finding) or finding.subtask not in earlier or not isinstance(finding.reason, str):
            wanted = f"None, or a Finding against an earlier subtask ({', '.join(earlier) or 'there is none'})"
            raise self._wrong(subtask.finds, what, finding, wanted)
        return finding

    def grade(self, outputs: Mapping[str, Json]) -> Grade:
        """Grade an answer that fits the schemas."""
        grader = self.scenario.grade
        grade = self.call("the grader", grader, self.scenario.answer_of(outputs), self.scenario.truth)
        if not isinstance(grade, Grade):
            raise self._wrong(grader, "the grader", grade, "a bench.scenario.Grade")
        return grade

    def baseline(self) -> Mapping[str, Json]:
        function = self.scenario.baseline
        answer = self.call("the baseline", function, Inputs(self.scenario.task.documents))
        if not isinstance(answer, Mapping):
            raise self._wrong(function, "the baseline", answer, "an output for each subtask, by its name")
        return answer

    def _check(self, check: Check, subtask: Subtask, output: Output, context: Context) -> str | None:
        what = f"the check `{getattr(check, '__name__', check)}` of '{subtask.name}'"
        return self._text(check, what, self.call(what, check, output, context))

    def _context(self, subtask: Subtask, outputs: Answer) -> Context:
        read = {name: outputs[name] for name in subtask.reads if name in outputs}
        return Context(self.scenario.task.documents, read)

    def _text(self, function: Callable[..., Any], what: str, value: Any) -> str | None:
        if value is not None and not isinstance(value, str):
            raise self._wrong(function, what, value, "None, or a text that says what is wrong")
        return value

    def _wrong(self, function: Callable[..., Any], what: str, value: Any, wanted: str) -> HookFailed:
        return HookFailed(f"{self._definition(function)}{what} returns {_show(value)}; it must return {wanted}")

    def _definition(self, function: Callable[..., Any]) -> str:
        """Return `grader.py:12: ` for a function that the pack defines, else ""."""
        code = getattr(unwrap(function), "__code__", None)
        if not inspect.iscode(code):
            return ""
        path, root = Path(code.co_filename).resolve(), self.folder.resolve()
        return f"{path.relative_to(root).as_posix()}:{code.co_firstlineno}: " if path.is_relative_to(root) else ""


def _show(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."
