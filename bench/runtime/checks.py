"""The checks of one trial's outputs: asked off the event loop where they wait for the sandbox, and never a way for an output to
break its trial.

A check that runs a model's code takes as long as that code is given, and other trials share the event loop. So such checks are
asked in a thread as soon as a reply is there (`foresee`), and what they said is at hand when the output is verified.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bench.digests import digest_of
from bench.errors import SandboxBroken, one_line
from bench.runtime.state import State
from bench.runtime.verification import Ask
from bench.scenario import LONGEST_NOTE, Check, Context, Json, Subtask

Reference = Callable[[str, Mapping[str, str]], Json]
"""What is right for a subtask, given the documents. Raises LookupError where the pack does not say."""
Apart = Callable[[Callable[[], object]], Awaitable[object]]
"""Does work of the trial's in a thread."""
Key = tuple[Check, str, tuple[tuple[str, str], ...]]


def unknown(subtask: str, _: Mapping[str, str]) -> Json:
    raise LookupError(subtask)


class _NotAsked(Exception):
    """A check was not asked of this output yet."""


class Checks:
    """`reference` tells an output that breaks a check from a check that is broken; `apart` is given where checks may wait."""

    def __init__(self, state: State, reference: Reference = unknown, apart: Apart | None = None):
        self._state, self._reference, self._apart = state, reference, apart
        self._said: dict[Key, str | None] = {}

    async def foresee(self, judge: Callable[[Ask], object]) -> None:
        """Ask in a thread what `judge` asks, unless all of that is known."""
        try:
            judge(self._known)
        except _NotAsked:
            if self._apart:
                await self._apart(lambda: judge(self.ask))

    @property
    def may_wait(self) -> bool:
        return self._apart is not None

    def ask(self, subtask: Subtask, check: Check, output: Any, context: Context) -> str | None:
        """Return why the check rejects the output, or None. An output that makes the check raise is rejected.

        Raises what the check raises on the reference, too, and SandboxBroken where this machine could not run the sandbox.
        """
        if not self.may_wait:
            return self._asked(subtask, check, output, context)
        key = _key(check, output, context)
        if key not in self._said:
            self._said[key] = self._asked(subtask, check, output, context)
        return self._said[key]

    def _known(self, subtask: Subtask, check: Check, output: Any, context: Context) -> str | None:
        del subtask
        key = _key(check, output, context)
        if key not in self._said:
            raise _NotAsked
        return self._said[key]

    def _asked(self, subtask: Subtask, check: Check, output: Any, context: Context) -> str | None:
        try:
            objection = check(output, context)
        except SandboxBroken:
            raise
        except Exception as error:
            if not self._holds_on_reference(subtask, check, context.documents):
                raise
            objection = f"the check `{getattr(check, '__name__', check)}` fails on it: {type(error).__name__}: {error}"
        return objection if objection is None else one_line(objection, LONGEST_NOTE)

    def _holds_on_reference(self, subtask: Subtask, check: Check, documents: Mapping[str, str]) -> bool:
        """Return whether the check comes to a verdict on what the pack says is right."""
        names = [subtask.name, *(name for name in subtask.reads if not self._state.is_document(name))]
        try:
            values = {name: self._reference(name, documents) for name in names}
            outputs = {name: self._state.subtask(name).output.model_validate(value) for name, value in values.items()}
            check(outputs.pop(subtask.name), Context(documents, outputs))
        except Exception:
            return False
        return True


def _key(check: Check, output: Any, context: Context) -> Key:
    """Of values by their texts: in a comparison, True would be 1."""
    outputs = {name: one.model_dump() for name, one in context.outputs.items()}
    return check, digest_of(repr((output.model_dump(), outputs))), tuple(context.documents.items())
