"""The actions of an architecture in its world, and the values that it keeps over a crash: `workbench.world`.

act          call a tool, optionally with an idempotency key and expected versions
wait         let world time pass
next_event   the next notice after the notices that were read
ask_person   ask somebody, and wait for the answer
verdict      what the policy says about a call that is not made yet
preview      what a call would change, and its risks
store        values and logs that survive a crash
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from bench.record.world_events import AGENT
from bench.run.trial.trial import Server, Trial
from bench.worlds.run.environment import Acted, Arrival, Environment, Moment, PolicyVerdict, ProcedureStep
from bench.worlds.run.environment.people import ANSWER, MODEL
from bench.worlds.run.environment.preview import Preview
from bench.worlds.run.environment.world import ToolArguments
from bench.worlds.run.runtime.acting import Acting, ReceivedReports
from bench.worlds.run.runtime.agent_session import AgentSession, session_of
from bench.worlds.run.runtime.effects import ClaimFate, StepReport
from bench.worlds.run.runtime.lasting import Lasting
from bench.worlds.run.runtime.process import Store


@dataclass(frozen=True)
class Decision:
    """A person's answer. The contrary can arrive later under the same ticket.

    answer    `approved`, `denied`, or `late` if no answer came in time
    ticket    the ticket of the question
    arrival   the notice of the answer; None if none came in time
    """

    answer: Literal["approved", "denied", "late"]
    ticket: str
    arrival: Arrival | None = None


class WorldActions:
    """The actions of an architecture in its world: `workbench.world`.

    acting      carries out what is done, with faults, and logs it
    lasting     holds what outlives a process of the agent
    exchanged   takes a pattern's boundary and returns the boundary to use: a runner can exchange its parts
    """

    def __init__(self, acting: Acting, trial: Trial):
        self.acting, self._trial, self.lasting = acting, trial, Lasting()
        self.agent: AgentSession | None = None
        self.exchanged: Callable[[Any], Any] = lambda boundary: boundary

    @property
    def now(self) -> Moment:
        """Return the world's time."""
        return self.acting.world.now

    @property
    def store(self) -> Store:
        """Return the store, which survives a crash: `put`, `get`, `append`, `log`, `names`."""
        return self.acting.store

    @property
    def life(self) -> int:
        """Return the number of the agent's present process: 1, and 1 more after each crash."""
        return self.acting.world.life

    async def act(
        self,
        tool: str,
        arguments: ToolArguments,
        key: str | None = None,
        *,
        expect: Mapping[str, int] | None = None,
        role: str = AGENT,
        deadline: int | None = None,
    ) -> Acted:
        """Call a tool of the world. Failures are data: `Acted.outcome` is done, replayed, refused or failed.

        Args:
            tool: The tool's name.
            arguments: An instance of its arguments, or JSON by name.
            key: The idempotency key: the same key again returns the stored result, and has no second effect.
            expect: Thing -> the version that it must have, else the call is refused.
            role: The role of the caller: the world can have a contract for it.
            deadline: Minutes of world time after which a call that has not reached its tool is given up; None: never.

        Returns:
            The result of the call.

        Raises:
            Crashed: The agent's process dies here. Do not catch it.
            GaveUp: The trial's bound of steps is used up.
        """
        return await self.acting.act(tool, arguments, key, expect, role, deadline)

    async def wait(self, days: int = 0, minutes: int = 0, *, until: Moment | None = None) -> tuple[Arrival, ...]:
        """Let world time pass.

        Args:
            days: Days of world time.
            minutes: Minutes of world time, added to `days`.
            until: The moment to wait until, instead of `days` and `minutes`.

        Returns:
            The notices that came meanwhile.
        """
        return await self.acting.wait(until if until is not None else self.now.after(days, minutes))

    async def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        """Wait for the next notice.

        Reading never removes notices: an architecture that keeps the last number misses none and reads none twice.

        Args:
            after: The number of the last notice that was read; 0 for none.
            until: The moment to wait until; None: as long as anything is still to come.

        Returns:
            The first notice whose number is above `after`; None if none comes.
        """
        return await self.acting.next_event(after, until)

    async def catch_up(self) -> tuple[Arrival, ...]:
        """Ask for the events that happened without a notice.

        Returns:
            Their notices, which are in the log of notices from now on.
        """
        return await self.acting.catch_up()

    def arrivals(self, after: int = 0) -> tuple[Arrival, ...]:
        """Return the notices that have come by now.

        Args:
            after: The number of the last notice that was read; 0 for none.

        Returns:
            The notices with a higher number, in order.
        """
        return self.acting.world.arrivals(after)

    async def ask(self, kind: str, about: str, question: Mapping[str, Any], key: str | None = None, *, shown: str = "") -> str:
        """Ask a person without waiting for the answer.

        Args:
            kind: The person, one of `people`.
            about: The business key of the subject.
            question: The question, as JSON by name.
            key: An idempotency key: the same key again asks nobody a second time.
            shown: What the person sees of the effect to approve (`preview`). The event stores it.

        Returns:
            The ticket, under which the answer arrives as an event of kind `answer`.
        """
        return await self.acting.ask(kind, about, question, key, shown)

    async def ask_person(
        self,
        kind: str,
        about: str,
        question: Mapping[str, Any],
        key: str | None = None,
        *,
        shown: str = "",
        days: int = 0,
        minutes: int = 0,
        of_people: bool = False,
    ) -> Decision:
        """Ask a person and wait for the answer. Other notices that come meanwhile are in the log of notices.

        Args:
            kind: The person, one of `people`.
            about: The business key of the subject.
            question: The question, as JSON by name.
            key: An idempotency key.
            shown: What the person sees of the effect to approve.
            days: Most days of world time to wait; 3 if neither `days` nor `minutes` is given.
            minutes: Minutes in addition to the days.
            of_people: Whether to wait on where a model answers in the person's place.

        Returns:
            The person's answer, or that it came late.
        """
        until = self.now.after(days or (0 if minutes else 3), minutes)
        ticket = await self.ask(kind, about, question, key, shown=shown)
        read = 0
        while arrival := await self.next_event(read, until):
            read = arrival.number
            is_answer = arrival.kind == ANSWER and arrival.payload["ticket"] == ticket
            if is_answer and not (of_people and arrival.payload["who"] == MODEL):
                return self._record_decision(
                    kind, Decision("approved" if arrival.payload["approved"] else "denied", ticket, arrival)
                )
        return self._record_decision(kind, Decision("late", ticket))

    def _record_decision(self, kind: str, decision: Decision) -> Decision:
        """Log the end of the wait for an answer, and return the decision."""
        self.acting.log_decision(kind, decision.ticket, decision.answer)
        return decision

    async def claim(self, step: ProcedureStep) -> ClaimFate:
        """Declare that one of several workers is about to claim a step.

        Args:
            step: A step of `procedure`.

        Returns:
            What happens to the claim: nothing, its worker's death, or a second worker who has read that the step is free.
        """
        return await self.acting.claim(step.name)

    def report(self, step: ProcedureStep, report: StepReport) -> ReceivedReports:
        """Send a worker's report on a step to the sender of the worker.

        Args:
            step: A step of `procedure`.
            report: What the worker reports.

        Returns:
            What arrives: the report, and perhaps a second one that contradicts it.
        """
        return self.acting.report(step.name, report)

    def begin_step(self, step: ProcedureStep) -> None:
        """Record that a step of the procedure is attempted.

        Args:
            step: A step of `procedure`.
        """
        self.acting.log_step(step.name, "began", "")

    def end_step(self, step: ProcedureStep, why: str) -> None:
        """Record that a step has ended.

        Args:
            step: A step of `procedure`.
            why: Why it failed, or "".
        """
        self.acting.log_step(step.name, "ended", why)

    def follow_plan(self, version: int) -> None:
        """Record which version of a plan is followed from now on.

        Args:
            version: Its number, from 1.
        """
        self.acting.plan_version = version

    def verdict(self, tool: str, arguments: ToolArguments) -> PolicyVerdict:
        """Return the verdict of the policy and the kill switch on a call that is not made yet.

        Only a gate needs to ask this.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.

        Returns:
            The verdict.
        """
        return self.acting.verdict(tool, arguments)

    def preview(self, tool: str, arguments: ToolArguments) -> Preview:
        """Return what a call would change, and its risks. Nothing happens.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.

        Returns:
            The preview; its `text` is for a person who is to approve the call.
        """
        return self.acting.world.preview(tool, arguments)

    @property
    def policy_version(self) -> str:
        """Return the version of the policy in force; "" without a policy."""
        policy = self.environment.policy
        return policy.version if policy else ""

    def effect_of(self, tool: str, arguments: ToolArguments) -> str:
        """Return the business key of a call's intended effect.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.

        Returns:
            The key; "" if there is no such tool, or its arguments do not fit.
        """
        return self.acting.world.effect_of(tool, arguments)

    @property
    def tools(self) -> Mapping[str, Any]:
        """Return the tools, `bench.worlds.run.environment.Tool` by name."""
        return self.environment.by_name

    @property
    def undoes(self) -> Mapping[str, str]:
        """Return, for each undo tool, the tool whose effects it undoes."""
        return self.environment.undoes

    @property
    def procedure(self) -> tuple[ProcedureStep, ...]:
        """Return the steps of the pack's work, empty if it declares no procedure."""
        return self.environment.procedure

    @property
    def people(self) -> tuple[str, ...]:
        """Return the kinds of people who can be asked."""
        return tuple(self.environment.people)

    @property
    def environment(self) -> Environment:
        """Return the pack's declaration of the world."""
        return self.acting.world.environment

    @asynccontextmanager
    async def outside_agent(self, server: Server | None = None) -> AsyncIterator[AgentSession]:
        """Open the model's endpoint for an agent in a separate process, for all its restarts.

        Open it once, and keep it open over crashes. `session.base_url()` and `session.api_key` are for the agent. Its requests
        belong to the pseudo-subtask `agent`, which is not verified. At the end its last reply and the calls that lead to it are
        committed as its output, so that their tokens count in the answer.

        Args:
            server: Serves the endpoint; None: at a port of its own.

        Yields:
            The session.

        Raises:
            GaveUp: The agent ended with an exception after the bound on its calls was used up.
            CallFailed: The agent ended with an exception after its last call had failed.
        """
        session = self.agent = session_of(self._trial)
        async with session.serve(server):
            yield session
        if proposal := session.output():
            self._trial.write(proposal, verified=False)
