"""Run the checks of one trial's outputs. Slow checks run off the event loop, and an output that breaks a check is rejected.

A check that runs a model's code takes as long as that code is given, and any check can take long on a large output, while other
trials share the event loop. So such checks run in a thread as soon as a reply is there (`run_ahead`), and their results are
ready when the output is verified.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from bench.common.digests import digest_of
from bench.common.errors import SandboxBroken, one_line
from bench.run.trial.state import State
from bench.run.trial.verification import AskCheck
from bench.scenario import LONGEST_NOTE, Check, Context, Json, Output, Subtask

Reference = Callable[[str, Mapping[str, str]], Json]
"""Returns the right output of a subtask, given the documents. Raises LookupError if the pack has none."""
InThread = Callable[[Callable[[], object]], Awaitable[object]]
"""Runs a function of the trial in a thread."""
CheckKey = tuple[Check, str, tuple[tuple[str, str], ...]]
MIN_CHARS_FOR_THREAD = 2**13
"""Every check of a reply with at least this many characters runs in a thread."""


def no_output(subtask: str, _: Mapping[str, str]) -> Json:
    """Raise LookupError: the pack gives no right output."""
    raise LookupError(subtask)


class _NotRun(Exception):
    """Raised for a check that has not run on this output yet."""


class Checks:
    """The checks of one trial. `reference` gives the pack's right outputs, by which a broken check is told from a wrong output.
    `wait` says whether checks can wait for the sandbox; verdicts are then cached from the start, else after a first
    `run_ahead` in a thread."""

    def __init__(self, state: State, reference: Reference = no_output, in_thread: InThread | None = None, wait: bool = False):
        self._state, self._reference, self._in_thread, self._wait = state, reference, in_thread, wait
        self._verdicts: dict[CheckKey, str | None] = {}
        self._is_caching = wait

    async def run_ahead(self, judge: Callable[[AskCheck], object]) -> None:
        """Run in a thread the checks that `judge` asks for, unless all results are known."""
        try:
            judge(self._known_verdict)
        except _NotRun:
            if self._in_thread:
                self._is_caching = True
                await self._in_thread(lambda: judge(self.ask))

    def can_be_slow(self, text: str) -> bool:
        """Return whether the checks of this reply can be slow."""
        return self._wait or (self._in_thread is not None and len(text) >= MIN_CHARS_FOR_THREAD)

    def ask(self, subtask: Subtask, check: Check, output: Any, context: Context) -> str | None:
        """Return why the check rejects the output; None if it accepts it. An output on which the check raises is rejected.

        Raises the check's exception if it also fails on the reference, and SandboxBroken if the sandbox cannot run here.
        """
        if not self._is_caching:
            return self._ask(subtask, check, output, context)
        key = _key(check, output, context)
        if key not in self._verdicts:
            self._verdicts[key] = self._ask(subtask, check, output, context)
        return self._verdicts[key]

    def skipped_output(self, subtask: Subtask, outputs: Mapping[str, Output]) -> Output | None:
        """Return the output of a subtask that its `skip` makes unnecessary, given these outputs; None if a model must be asked.
        If `skip` raises only on these outputs, return None; if it raises on the reference too, raise."""
        try:
            return subtask.skip(outputs) if subtask.skip else None
        except Exception:
            if not self._can_skip(subtask, outputs):
                raise
            return None

    def _known_verdict(self, subtask: Subtask, check: Check, output: Any, context: Context) -> str | None:
        """Return the verdict of an earlier run of this check. Raises _NotRun if it has not run."""
        del subtask
        key = _key(check, output, context)
        if key not in self._verdicts:
            raise _NotRun
        return self._verdicts[key]

    def _ask(self, subtask: Subtask, check: Check, output: Any, context: Context) -> str | None:
        """Run a check. Return its objection as one line; None if it has none."""
        try:
            objection = check(output, context)
        except SandboxBroken:
            raise
        except Exception as error:
            if not self._runs_on_reference(subtask, check, context.documents):
                raise
            objection = f"the check `{getattr(check, '__name__', check)}` fails on it: {type(error).__name__}: {error}"
        return objection if objection is None else one_line(objection, LONGEST_NOTE)

    def _runs_on_reference(self, subtask: Subtask, check: Check, documents: Mapping[str, str]) -> bool:
        """Return whether the check runs without an exception on the pack's right outputs."""
        names = [subtask.name, *(name for name in subtask.reads if not self._state.is_document(name))]
        try:
            outputs = self._reference_outputs(names, documents)
            check(outputs.pop(subtask.name), Context(documents, outputs))
        except Exception:
            return False
        return True

    def _can_skip(self, subtask: Subtask, names: Iterable[str]) -> bool:
        """Return whether `skip` runs without an exception on the pack's right outputs of these names."""
        try:
            assert subtask.skip
            subtask.skip(self._reference_outputs(names, self._state.documents))
        except Exception:
            return False
        return True

    def _reference_outputs(self, names: Iterable[str], documents: Mapping[str, str]) -> dict[str, Output]:
        """Return the pack's right outputs of these subtasks."""
        return {name: self._state.subtask(name).output.model_validate(self._reference(name, documents)) for name in names}


def _key(check: Check, output: Any, context: Context) -> CheckKey:
    """Return the cache key of a check on an output. Values are compared by their texts: directly, True would equal 1."""
    outputs = {name: output.model_dump() for name, output in context.outputs.items()}
    return check, digest_of(repr((output.model_dump(), outputs))), tuple(context.documents.items())
