"""A trial: it owns all parts of one attempt at a task, and is built in one step.

An architecture sees it as a workbench (`bench.run.trial.workbench`). What a task has around it beside its documents are its
surroundings: nothing, or a world.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from bench.common.errors import CallFailed
from bench.common.values import dataclass
from bench.record.events import Answered, Committed
from bench.record.form import Repair
from bench.record.formats import DEFAULT, AnswerFormat
from bench.record.lineage import Lineage
from bench.run.models.base import Model, Reply
from bench.run.trial.call import BackOff
from bench.run.trial.caller import Caller
from bench.run.trial.cases import Cases
from bench.run.trial.causes import CallPurpose, Causes
from bench.run.trial.checks import Checks, Reference, unknown
from bench.run.trial.clock import TrialClock
from bench.run.trial.drafts import KNOWN, Tags
from bench.run.trial.effects import WORLD_POINTS
from bench.run.trial.faults import FaultPlan, FaultSchedule
from bench.run.trial.injection import Corrupted, Injection
from bench.run.trial.judging import Verifier
from bench.run.trial.key import TrialKey
from bench.run.trial.log import TrialLog
from bench.run.trial.proposal import Proposal
from bench.run.trial.reading import read_ahead
from bench.run.trial.reply import ReplyPart, reread
from bench.run.trial.slots import Slots
from bench.run.trial.state import NOTHING, Source, State, Version
from bench.run.trial.turns import Turns
from bench.run.trial.verification import Unreadable
from bench.scenario import Answer, Json, Scenario, Subtask

Server = Callable[[Any], AbstractAsyncContextManager[str]]
"""Serves an `EndpointSession` over HTTP; opens with the root address, http://HOST:PORT."""


def no_server(_: object) -> AbstractAsyncContextManager[str]:
    """Refuse to serve a session, for a trial without a server."""
    raise RuntimeError("nothing serves the sessions of this workbench")


@dataclass(frozen=True)
class Settings:
    """The settings of all trials of an experiment. `max_attempts` limits the attempts at one subtask in one trial;
    `answer_format` and `tags`, which surround a model's drafts, are the same for all its architectures."""

    max_attempts: int = 3
    repair: Repair = "reason"
    answer_format: AnswerFormat = DEFAULT
    tags: Tags = KNOWN


class Surroundings:
    """What a task has around it beside its documents: here, nothing. A world derives its type from this.

    `actions` is the workbench's `world`; None if there is nothing to act on.
    """

    actions: Any = None

    def before_call(self) -> None:
        """Prepare for a call of the model. A process that is to die can die here."""

    def broken_off(self, reply: Reply, call: int) -> CallFailed | None:
        """Return how the reply to the call of this number breaks off; None if it arrives whole."""
        del reply, call
        return None

    async def live(self, trial: Trial, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let the architecture work to its end. Raises what it raises."""
        await trial.clock.run(work())

    def end(self, trial: Trial, stopped: bool) -> Any:
        """End the surroundings, however the architecture ended, and return what is graded. None if an output of the answer does
        not fit its schema, or if the trial was `stopped`: then nothing is graded."""
        return None if stopped else trial.answer()

    def close(self) -> None:
        """Release its resources."""


class Trial:
    def __init__(
        self,
        scenario: Scenario,
        model: Model,
        plan: FaultPlan,
        key: TrialKey,
        settings: Settings,
        *,
        slots: Slots,
        back_off: BackOff,
        server: Server = no_server,
        log: TrialLog | None = None,
        clock: TrialClock | None = None,
        around: Callable[[Trial], Surroundings] = lambda _: Surroundings(),
    ):
        """Build one trial of a scenario.

        Args:
            server: Serves the sessions of frameworks that make their own calls.
            log: Gets its events; a new log by default.
            clock: Its clock; by default one for the model's timing.
            around: Makes the surroundings. Only the trial's key, log, clock and schedule exist by then.
        """
        environment = scenario.environment
        self.task, self.key, self.settings, self.server = scenario.task, key, settings, server
        self.right = environment.right if environment else None
        self.log, self.clock = log or TrialLog(), clock or TrialClock(model.timing != "live")
        self.schedule = FaultSchedule(plan, key, self.log.emit)
        self.surroundings = around(self)
        self.caller = Caller(
            model,
            self.clock,
            self.schedule,
            slots,
            back_off,
            self.log,
            read_ahead=functools.partial(read_ahead, answer_format=settings.answer_format, tags=settings.tags),
            broken_off=self.surroundings.broken_off,
        )
        self.state = State(scenario.task, environment.given if environment else ())
        self.injection = Injection(self.state, self.schedule, scenario.wrong_outputs, settings.answer_format, settings.tags)
        self.checks = Checks(self.state, _reference_of(scenario), self.clock.apart, wait=scenario.checks_use_sandbox)
        self.cases = Cases(functools.partial(Causes, key, self.log, settings.max_attempts, model.name, settings.answer_format))
        self.causes = self.cases.of("")
        self.verifier = Verifier(self.state, self.cases, self.log, self.checks)
        self.accepted: set[Proposal] = set()
        self._in_cases: dict[tuple[str, str], int] = {}

    def add(self, subtask: Subtask, reference: Json = None) -> None:
        """Add a subtask at run time (`Workbench.add`)."""
        self.state.add(subtask)
        if reference is not None:
            self.causes.references[subtask.name] = reference

    def sources(self, subtasks: Sequence[Subtask], given: Mapping[str, str] = NOTHING) -> tuple[Source, ...]:
        """Return what these subtasks are about to read. Raises RuntimeError if an input has no output yet: a prompt without it
        would not be the pack's, and nobody would notice."""
        joint = {subtask.name for subtask in subtasks}
        for subtask in subtasks:
            if missing := [name for name in self.state.lacks(subtask, given) if name not in joint]:
                if missing[0] in self.state.given:
                    raise RuntimeError(f"'{subtask.name}' reads '{missing[0]}'; give it: propose(..., documents=...)")
                raise RuntimeError(f"'{subtask.name}' is asked for before '{missing[0]}', which it reads, has an output")
        return self.state.sources(subtasks, given)

    def turns(self) -> Turns:
        return Turns(self.state, self.verifier, self.settings.answer_format, self.settings.tags)

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], ask: CallPurpose, call: int) -> Corrupted:
        """Return a reply as the faults change it that are due for its content."""
        return self.injection.corrupt(reply, subtasks, ask.context, call)

    async def foresee(self, proposals: Iterable[Proposal]) -> None:
        """Run checks that can take long off the event loop, for proposals and for what a fault in the state will make of
        them."""
        for proposal in proposals:
            if not self.verifier.takes_long(proposal.text):
                continue
            await self.verifier.foresee(proposal)
            struck = {}
            for subtask in proposal.subtasks:
                part = proposal.parts.get(subtask.name)
                if part and (text := self.injection.foreseen(subtask, part, proposal.attempt)) != part.text:
                    struck[subtask.name] = reread(text)
            if struck:
                await self.verifier.foresee(replace(proposal, parts={**proposal.parts, **struck}, undamaged={}))

    def write(self, proposal: Proposal, verified: bool) -> None:
        """Write each part of a proposal to the state, after the due faults."""
        for subtask in proposal.subtasks:
            name = subtask.name
            part = proposal.parts.get(name) or ReplyPart("", Unreadable("empty", "the reply says nothing of it"))
            call = proposal.calls[-1] if proposal.calls else None
            text, receipts = self.injection.write(subtask, part, proposal.attempt, call)
            written = reread(text) if text != part.text else part
            undamaged = proposal.undamaged.get(name)
            version = self.state.put(name, written, proposal.calls, proposal.made_from, undamaged)
            self._in_cases[name, proposal.case] = version.number
            self.verifier.carried[name] = (*proposal.receipts, *receipts)
            self.log_commit(version, verified)

    def log_commit(self, version: Version, verified: bool) -> None:
        self.log.texts[version.digest] = version.text
        self.log.emit(Committed(version.subtask, version.number, version.calls, verified, version.digest, version.made_from))

    def answer(self) -> Answer | None:
        """Return the final answer; None if an output in the state does not fit its schema. Raises RuntimeError if an output is
        missing."""
        names = self.task.answer_names
        versions = [self.verifier.version(name) for name in names]
        self.log.emit(Answered(tuple((version.subtask, version.number) for version in versions)))
        outputs = self.verifier.outputs(names)
        return outputs if len(outputs) == len(names) else None

    def decisions(self) -> None:
        """Log the answer of a trial in a world: the last output of each judgment in each state of the world."""
        self.log.emit(Answered(tuple((name, number) for (name, _), number in self._in_cases.items())))

    def crashed(self, event: int) -> None:
        """Drop what the architecture's process held in memory: by this event it has died."""
        self.injection.settle()
        self.state.forget()
        self.accepted.clear()
        self.verifier.carried.clear()
        self.cases.crashed(event)

    def close(self, answered: bool) -> None:
        """Record how each delivered fault ended."""
        self.injection.settle()
        calls = Lineage(self.log.events).of_answer if answered and self.schedule.receipts else frozenset()
        self.schedule.close(answered, lambda receipt: receipt.call in calls or receipt.due.fault.point in WORLD_POINTS)


def _reference_of(scenario: Scenario) -> Reference:
    """Return the function that returns the pack's right output of a subtask."""
    if scenario.environment:
        return scenario.environment.right or unknown
    return lambda subtask, _: scenario.reference[subtask]
