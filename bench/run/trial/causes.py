"""Infer from a trial's events why a call is made, and which rejection or loss made it necessary.

A call is a retry or a rerun only if a rejection or the loss of a paid reply came after these subtasks were last asked for; the
call then names that event. Without such an event, the same question is a further sample, and another question a further step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Literal

from bench.common.errors import GaveUp
from bench.common.seeding import seed_of
from bench.common.values import dataclass
from bench.record.events import Cause, Judged
from bench.record.formats import DEFAULT, AnswerFormat
from bench.run.models.base import RequestContext
from bench.run.trial.key import TrialKey
from bench.run.trial.log import TrialLog
from bench.scenario import Json

MAX_CALLS_OF_AN_ATTEMPT = 100
"""The most calls in one attempt, steps and samples together. Without this limit, an agent that asks on without any output would
never end."""
CallLimit = Literal["attempts", "calls", "none"]
"""The limit on the calls for a subtask.

attempts   the trial's attempts at one subtask, and the calls of one attempt
calls      only the calls of one attempt: a framework limits its attempts itself
none       no limit: calls are only counted
"""


@dataclass(frozen=True)
class CallPurpose:
    """The purpose of a call: which attempt at which subtasks, and why it is made."""

    context: RequestContext
    cause: Cause
    seed: int
    caused_by: int | None = None
    inferred: bool = False


@dataclass
class _Attempt:
    """The latest attempt at some subtasks. `since` is the number of the first event after the attempt was asked for. `repeats`
    says whether its last call repeated an earlier question."""

    number: int
    cause: Cause
    caused_by: int | None
    since: int
    sample: int = 1
    samples: int = 1
    calls: int = 1
    repeats: bool = False
    questions: set[Hashable] = field(default_factory=set)


@lru_cache(maxsize=64)
def _seed_of(*parts: object) -> int:
    """Return the seed that all calls of an attempt share, whatever they are for."""
    return seed_of(*parts) % 2**31


class Causes:
    """The account of one trial's attempts. `model` is the name of the model, and `references` holds right outputs of subtasks
    that were added at run time. `state` is the state of the world in which judgments are asked for, and `life` the number of
    the agent's process."""

    def __init__(self, key: TrialKey, log: TrialLog, max_attempts: int, model: str = "", answer_format: AnswerFormat = DEFAULT):
        self._key, self._log, self._max_attempts, self._model = key, log, max_attempts, model
        self._format = answer_format
        self._last: dict[str, _Attempt] = {}
        self._failures: list[tuple[int, frozenset[str]]] = []
        self.references: dict[str, Json] = {}
        self.state, self.life = "", 1

    def note_failure(self, names: Sequence[str], event: int) -> None:
        """Note that this event rejected an output of these subtasks, or lost a paid reply for them."""
        self._failures.append((event, frozenset(names)))

    def note_crash(self, event: int) -> None:
        """Note that the agent's process died. The next attempt is not counted against the architecture: the limit rises by
        one."""
        self._failures.append((event, frozenset()))
        self._max_attempts += 1
        self.life += 1

    def note_late_reply(self, event: int) -> None:
        """Note that the reply that this event counted as lost has arrived: the event causes no further call."""
        self._failures = [failure for failure in self._failures if failure[0] != event]

    def attempts(self, names: Sequence[str]) -> int:
        """Return the number of attempts at these subtasks; the largest number if they differ."""
        return max((self._last[name].number for name in names if name in self._last), default=0)

    def next_purpose(
        self,
        names: Sequence[str],
        question: Hashable,
        *,
        inferred: bool = False,
        limit: CallLimit = "attempts",
        under_way: bool = False,
    ) -> CallPurpose:
        """Return the purpose of the next call for the outputs of some subtasks.

        Args:
            names: The subtasks.
            question: The prompt. If an equal prompt was sent in this attempt before, the call is a repeat.
            inferred: Whether the cause may have to be inferred, since the agent does not say why it calls.
            limit: Which bound holds for the number of calls.
            under_way: Whether the output is not complete yet. A failure of another subtask is then not the cause of the call.

        Returns:
            The purpose of the call, with its cause.

        Raises:
            GaveUp: The limit is reached.
        """
        attempt = self._next_attempt(names, question, under_way)
        self._check_limits(names, attempt, limit)
        attempt.since = self._log.next_number
        attempt.questions.add(question)
        self._last.update(dict.fromkeys(names, attempt))
        return self._purpose(names, attempt, self._cause_of_call(attempt), attempt.caused_by, inferred)

    def further_purpose(
        self, names: Sequence[str], last_purpose: CallPurpose, again: bool, rejected: int | None
    ) -> CallPurpose:
        """Return the purpose of a further call of the proposer whose last call had the purpose `last_purpose`. Only a rejection
        of that proposer's own reply begins another attempt: proposers that work at the same time do not disturb one another.

        again      whether the call asks a question that the proposer asked before
        rejected   the number of the verdict that rejected the proposer's last reply; None if no verdict did
        Raises GaveUp as `next_purpose` does.
        """
        context, cause, caused_by = last_purpose.context, last_purpose.cause, last_purpose.caused_by
        number, sample = context.attempt, context.sample
        last = self._last[names[0]]
        if rejected is not None:
            number, cause, caused_by = number + 1, "retry", rejected
            if number > last.number:
                last = _Attempt(number, cause, caused_by, 0, samples=max(last.samples, sample))
        else:
            last.calls += 1
            if again:
                last.samples += 1
                sample = last.samples
            if caused_by is None:
                cause = "sample" if again else "step"
        self._check_limits(names, last, "attempts")
        last.since = self._log.next_number
        self._last.update(dict.fromkeys(names, last))
        return self._purpose(names, _Attempt(number, cause, caused_by, 0, sample), cause, caused_by, inferred=True)

    def further_samples(self, names: Sequence[str], first: CallPurpose, count: int) -> list[CallPurpose]:
        """Return the purposes of `count` further samples in the attempt whose first call has this purpose."""
        attempt = self._last[names[0]]
        purposes = []
        for _ in range(count):
            attempt.samples += 1
            attempt.sample = attempt.samples
            cause: Cause = first.cause if first.caused_by is not None else "sample"
            purposes.append(self._purpose(names, attempt, cause, first.caused_by, first.inferred))
        return purposes

    def note_question(self, names: Sequence[str], question: Hashable) -> None:
        """Note the question of the last call for these subtasks."""
        for name in names:
            self._last[name].questions.add(question)

    def known_purpose(self, name: str, number: int, sample: int, cause: Cause, caused_by: int | None) -> CallPurpose:
        """Return the purpose of a call whose attempt, sample and cause are known."""
        return self._purpose((name,), _Attempt(number, cause, caused_by, 0, sample), cause, caused_by, inferred=False)

    def judge_purpose(self, names: Sequence[str]) -> CallPurpose:
        """Return the purpose of a judge's call about the latest attempt at these subtasks. If an output of these subtasks was
        rejected before, that rejection caused the call."""
        attempt = _Attempt(max(self.attempts(names), 1), "judge", self._own_failure(names, 0), self._log.next_number)
        return self._purpose(names, attempt, "judge", attempt.caused_by, inferred=False)

    def _check_limits(self, names: Sequence[str], attempt: _Attempt, limit: CallLimit) -> None:
        """Raise GaveUp if this attempt exceeds the limit on attempts or on calls."""
        if limit == "attempts" and attempt.number > self._max_attempts:
            raise GaveUp(names, f"no accepted output in {self._max_attempts} attempts")
        if limit != "none" and attempt.calls > MAX_CALLS_OF_AN_ATTEMPT:
            raise GaveUp(names, f"no end after {MAX_CALLS_OF_AN_ATTEMPT} calls in one attempt")

    def _next_attempt(self, names: Sequence[str], question: Hashable, under_way: bool) -> _Attempt:
        """Return the attempt that the next call for these subtasks belongs to: the latest one, or a new one after a failure."""
        earlier = [self._last[name] for name in names if name in self._last]
        if not earlier:
            return _Attempt(1, "first", None, 0)
        last, number = max(earlier, key=lambda attempt: attempt.since), self.attempts(names) + 1
        failure = self._own_failure(names, last.since)
        if failure is not None:
            return _Attempt(number, "retry", failure, 0)
        if not under_way and self._failures and self._failures[-1][0] >= last.since:
            return _Attempt(number, "rerun", self._failures[-1][0], 0)
        last.calls += 1
        last.repeats = question in last.questions
        if last.repeats:
            last.samples += 1
            last.sample = last.samples
        return last

    def _own_failure(self, names: Sequence[str], since: int) -> int | None:
        """Return the number of the latest event, from `since` on, that failed one of these subtasks; None if no event did."""
        return next((event for event, failed in reversed(self._failures) if event >= since and failed & set(names)), None)

    @staticmethod
    def _cause_of_call(attempt: _Attempt) -> Cause:
        """Return a call's cause: the attempt's cause for its first call, and for every call if a failure caused the attempt;
        else `sample` for a repeated question and `step` for a new one."""
        if attempt.calls == 1 or attempt.caused_by is not None:
            return attempt.cause
        return "sample" if attempt.repeats else "step"

    def _purpose(
        self, names: Sequence[str], attempt: _Attempt, cause: Cause, caused_by: int | None, inferred: bool
    ) -> CallPurpose:
        """Return the purpose of a call in this attempt, with the seed and context of the call."""
        key = self._key
        drawn_from = key.drawn_from
        sample_key = ("sample", attempt.sample) if attempt.sample > 1 else ()
        seed = _seed_of(*drawn_from, attempt.number, *sample_key)
        context = RequestContext(
            key.scenario,
            tuple(names),
            key.repetition,
            attempt.number,
            key.arm,
            cause == "judge",
            key.instance,
            attempt.sample,
            self._model,
            self._format,
            self.state,
            drawn_from,
            {name: self.references[name] for name in names if name in self.references},
            self.life,
        )
        return CallPurpose(context, cause, seed, caused_by, inferred and self._is_inferred(cause, caused_by))

    def _is_inferred(self, cause: Cause, caused_by: int | None) -> bool:
        """Return whether a cause is inferred. The cause is known for a first call, after a verdict that the proposer was told,
        and after a lost call."""
        event = None if caused_by is None else self._log.events[caused_by]
        return event.view == "shadow" if isinstance(event, Judged) else cause in ("step", "sample")
