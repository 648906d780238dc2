"""A trial: it builds and owns all parts of one attempt at a task.

An architecture works on a trial through a workbench (`bench.run.trial.workbench`). What a task has besides its documents are
its surroundings: nothing, or a world.
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
from bench.run.trial.checks import Checks, Reference, no_output
from bench.run.trial.clock import TrialClock
from bench.run.trial.drafts import KNOWN_TAGS, Tags
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
from bench.run.trial.state import NO_DOCUMENTS, Source, State, Version
from bench.run.trial.turns import Turns
from bench.run.trial.verification import Unreadable
from bench.scenario import Answer, Json, Scenario, Subtask

Server = Callable[[Any], AbstractAsyncContextManager[str]]
"""Serves an `EndpointSession` over HTTP; opens with the root address, http://HOST:PORT."""


def no_server(_: object) -> AbstractAsyncContextManager[str]:
    """Raise RuntimeError: this trial has no server for sessions."""
    raise RuntimeError("nothing serves the sessions of this workbench")


@dataclass(frozen=True)
class Settings:
    """The settings of all trials of an experiment. `max_attempts` limits the attempts at one subtask in one trial;
    `answer_format` and `tags`, which surround a model's drafts, are the same for all its architectures."""

    max_attempts: int = 3
    repair: Repair = "reason"
    answer_format: AnswerFormat = DEFAULT
    tags: Tags = KNOWN_TAGS


class Surroundings:
    """What a task has besides its documents. This base class has nothing; a world derives its type from it. `actions` is the
    workbench's `world`; None if the task has no world."""

    actions: Any = None

    def before_call(self) -> None:
        """Prepare for a call of the model. A world can kill the agent's process here."""

    def broken_off(self, reply: Reply, call: int) -> CallFailed | None:
        """Return the failure with which the reply to the call of this number breaks off; None if the reply arrives whole."""
        del reply, call
        return None

    async def run_architecture(self, trial: Trial, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the architecture to its end. Raises what the architecture raises."""
        await trial.clock.run(work())

    def end(self, trial: Trial, stopped: bool) -> Any:
        """End the surroundings after the architecture has ended. Return the answer to grade; None if an output of the answer
        does not fit its schema, or if the trial was `stopped`: then nothing is graded."""
        return None if stopped else trial.answer()

    def close(self) -> None:
        """Release the resources of the surroundings."""


class Trial:
    """One attempt at a task, with all its parts."""

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
        self.checks = Checks(self.state, _reference_of(scenario), self.clock.run_in_thread, wait=scenario.checks_use_sandbox)
        self.cases = Cases(functools.partial(Causes, key, self.log, settings.max_attempts, model.name, settings.answer_format))
        self.causes = self.cases.of("")
        self.verifier = Verifier(self.state, self.cases, self.log, self.checks)
        self.accepted: set[Proposal] = set()
        self._last_decisions: dict[tuple[str, str], int] = {}
        """(subtask, state of the world) -> the number of the last version."""

    def add(self, subtask: Subtask, reference: Json = None) -> None:
        """Add a subtask at run time."""
        self.state.add(subtask)
        if reference is not None:
            self.causes.references[subtask.name] = reference

    def sources(self, subtasks: Sequence[Subtask], given: Mapping[str, str] = NO_DOCUMENTS) -> tuple[Source, ...]:
        """Return the sources that these subtasks read now. Raises RuntimeError if an input has no output yet: a prompt without
        the input would not be the pack's prompt, and nobody would notice."""
        joint = {subtask.name for subtask in subtasks}
        for subtask in subtasks:
            if missing := [name for name in self.state.missing_inputs(subtask, given) if name not in joint]:
                if missing[0] in self.state.given:
                    raise RuntimeError(f"'{subtask.name}' reads '{missing[0]}'; give it: propose(..., documents=...)")
                raise RuntimeError(f"'{subtask.name}' is asked for before '{missing[0]}', which it reads, has an output")
        return self.state.sources(subtasks, given)

    def turns(self) -> Turns:
        """Return a new, empty account of one proposer's turns."""
        return Turns(self.state, self.verifier, self.settings.answer_format, self.settings.tags)

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], purpose: CallPurpose, call: int) -> Corrupted:
        """Return a reply after the content faults that are due for it."""
        return self.injection.corrupt(reply, subtasks, purpose.context, call)

    async def run_checks_ahead(self, proposals: Iterable[Proposal]) -> None:
        """Run slow checks of proposals off the event loop, also for the texts that faults in the state will make of the
        proposals."""
        for proposal in proposals:
            if not self.verifier.can_be_slow(proposal.text):
                continue
            await self.verifier.run_ahead(proposal)
            struck = {}
            for subtask in proposal.subtasks:
                part = proposal.parts.get(subtask.name)
                if part and (text := self.injection.preview_write(subtask, part, proposal.attempt)) != part.text:
                    struck[subtask.name] = reread(text)
            if struck:
                await self.verifier.run_ahead(replace(proposal, parts={**proposal.parts, **struck}, undamaged={}))

    def write(self, proposal: Proposal, verified: bool) -> None:
        """Write each part of a proposal to the state, with the changes of the due faults at point `state`."""
        for subtask in proposal.subtasks:
            name = subtask.name
            part = proposal.parts.get(name) or ReplyPart("", Unreadable("empty", "the reply says nothing of it"))
            call = proposal.calls[-1] if proposal.calls else None
            text, receipts = self.injection.text_to_write(subtask, part, proposal.attempt, call)
            written = reread(text) if text != part.text else part
            undamaged = proposal.undamaged.get(name)
            version = self.state.put(name, written, proposal.calls, proposal.made_from, undamaged)
            self._last_decisions[name, proposal.case] = version.number
            self.verifier.receipts_by_output[name] = (*proposal.receipts, *receipts)
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

    def log_decisions(self) -> None:
        """Log the answer of a trial in a world: the last output of each judgment in each state of the world."""
        self.log.emit(Answered(tuple((name, number) for (name, _), number in self._last_decisions.items())))

    def drop_process_state(self, event: int) -> None:
        """Drop the state that the agent's process held in memory, because the process died at this event."""
        self.injection.end_attempts()
        self.state.forget()
        self.accepted.clear()
        self.verifier.receipts_by_output.clear()
        self.cases.note_crash(event)

    def close(self, answered: bool) -> None:
        """Record the end of each delivered fault."""
        self.injection.end_attempts()
        calls = Lineage(self.log.events).of_answer if answered and self.schedule.receipts else frozenset()
        self.schedule.close(answered, lambda receipt: receipt.call in calls or receipt.due.fault.point in WORLD_POINTS)


def _reference_of(scenario: Scenario) -> Reference:
    """Return the function that gives the pack's right output of a subtask."""
    if scenario.environment:
        return scenario.environment.right or no_output
    return lambda subtask, _: scenario.reference[subtask]
