"""What an architecture can do in its world, and what it keeps over a crash: `workbench.world.acting.world`.

act          call a tool, with an idempotency key and the versions that it expects, if they are given
wait         let world time pass
next_event   the next notice behind the ones that were read already
ask_person   ask somebody, and wait for the answer
verdict      what the policy says of a call that is not yet made
preview      what such a call would change, and what speaks against it
store        values and logs that survive a crash
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from bench.runtime.endpoint_session import Server
from bench.runtime.session_host import served
from bench.runtime.trial import Trial
from bench.worlds.environment import Acted, Arrival, Environment, Moment, PolicyVerdict, ProcedureStep
from bench.worlds.environment.preview import Preview
from bench.worlds.environment.procedure import AGENT
from bench.worlds.environment.scene import ToolArguments
from bench.worlds.runtime.acting import Acting
from bench.worlds.runtime.agent_session import AgentSession, session_of
from bench.worlds.runtime.effects import ClaimFate
from bench.worlds.runtime.lasting import Lasting
from bench.worlds.runtime.process import Store


@dataclass(frozen=True)
class Decision:
    """What a person said. Under the same ticket the contrary may arrive later.

    answer    `approved`, `denied`, or `late` where no answer came in time
    ticket    what the question was asked under
    arrival   the notice of the answer; None where none came in time
    """

    answer: Literal["approved", "denied", "late"]
    ticket: str
    arrival: Arrival | None = None


class WorldActions:
    """What an architecture can do in its world: `workbench.world`.

    acting      strikes and logs what is done
    lasting     holds what outlives a process of the agent
    exchanged   is given a pattern's boundary, and returns the one that it works with: a runner may exchange its parts
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
        """Return what survives a crash: `put`, `get`, `append`, `log`, `names`."""
        return self.acting.store

    @property
    def life(self) -> int:
        """Return which process of the agent this is: 1, and 1 more after each crash."""
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
        """Call a tool of the world. What goes wrong is data: `Acted.outcome` is done, replayed, refused or failed.

        Args:
            tool: The tool's name.
            arguments: An instance of its arguments, or JSON by name.
            key: The idempotency key: the same key again gives the stored result, and has no second effect.
            expect: Thing -> the version that it must have, else the call is refused.
            role: In which it is called: the world may have a contract for it.
            deadline: Minutes of world time after which a call is given up that has not reached its tool; None: never.

        Returns:
            What came of it.

        Raises:
            Crashed: The agent's process dies here. Let it pass.
            GaveUp: The trial's bound of steps is used up.
        """
        return await self.acting.act(tool, arguments, key, expect, role, deadline)

    async def wait(self, days: int = 0, minutes: int = 0, *, until: Moment | None = None) -> tuple[Arrival, ...]:
        """Let world time pass.

        Args:
            days: Days of world time.
            minutes: Minutes beside them.
            until: A moment in place of both.

        Returns:
            The notices that came meanwhile.
        """
        return await self.acting.wait(until if until is not None else self.now.after(days, minutes))

    async def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        """Wait for the next notice.

        The log of notices is never emptied: whoever keeps the last number misses none and reads none twice.

        Args:
            after: The number of the last notice that was read; 0 for none.
            until: How long to wait at most; None for as long as anything is still to come.

        Returns:
            The first notice whose number is above `after`; None where none comes.
        """
        return await self.acting.next_event(after, until)

    async def catch_up(self) -> tuple[Arrival, ...]:
        """Ask for the events that have happened and of which no notice came.

        Returns:
            Their notices, which stand in the log of notices from now on.
        """
        return await self.acting.catch_up()

    def arrivals(self, after: int = 0) -> tuple[Arrival, ...]:
        """Return the notices that have come by now.

        Args:
            after: The number of the last notice that was read; 0 for none.

        Returns:
            Those with a higher number, in order.
        """
        return self.acting.world.arrivals(after)

    async def ask(self, kind: str, about: str, question: Mapping[str, Any], key: str | None = None, *, shown: str = "") -> str:
        """Ask a person and go on.

        Args:
            kind: Who is asked, of `people`.
            about: The business key of what is asked for.
            question: What is asked, as JSON by name.
            key: An idempotency key: the same key again asks nobody a second time.
            shown: What the person is shown of the effect that is to be approved (`preview`). It stands in the event.

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
    ) -> Decision:
        """Ask a person and wait for the answer. Other notices that come meanwhile stand in the log of notices, as all do.

        Args:
            kind: Who is asked, of `people`.
            about: The business key of what is asked for.
            question: What is asked, as JSON by name.
            key: An idempotency key.
            shown: What the person is shown of the effect that is to be approved.
            days: How many days of world time to wait at most; 3 where neither is given.
            minutes: Minutes beside them.

        Returns:
            What the person said, or that it came late.
        """
        until = self.now.after(days or (0 if minutes else 3), minutes)
        ticket = await self.ask(kind, about, question, key, shown=shown)
        read = 0
        while arrival := await self.next_event(read, until):
            read = arrival.number
            if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
                return self._decided(kind, Decision("approved" if arrival.payload["approved"] else "denied", ticket, arrival))
        return self._decided(kind, Decision("late", ticket))

    def _decided(self, kind: str, decision: Decision) -> Decision:
        self.acting.decided(kind, decision.ticket, decision.answer)
        return decision

    async def claim(self, step: ProcedureStep) -> ClaimFate:
        """Say that one of several workers is about to claim a step.

        Args:
            step: A step of `procedure`.

        Returns:
            What befalls the claim: nothing, its worker's death, or a second worker who has read that the step is free.
        """
        return await self.acting.claim(step.name)

    def begin_step(self, step: ProcedureStep) -> None:
        """Say, for the record, that a step of the procedure is attempted.

        Args:
            step: A step of `procedure`.
        """
        self.acting.stepped(step.name, "began", "")

    def end_step(self, step: ProcedureStep, why: str) -> None:
        """Say, for the record, that a step has ended.

        Args:
            step: A step of `procedure`.
            why: Why it came to nothing; "" where it is done.
        """
        self.acting.stepped(step.name, "ended", why)

    def follow_plan(self, version: int) -> None:
        """Say, for the record, which version of a plan is followed from here on.

        Args:
            version: Its number, from 1.
        """
        self.acting.plan_version = version

    def verdict(self, tool: str, arguments: ToolArguments) -> PolicyVerdict:
        """Return what the policy, and the kill switch, say of a call that is not yet made.

        A gate asks it, and nothing else does.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.

        Returns:
            The verdict.
        """
        return self.acting.verdict(tool, arguments)

    def preview(self, tool: str, arguments: ToolArguments) -> Preview:
        """Return what a call that is not yet made would change, and what speaks against it. Nothing happens.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.

        Returns:
            The preview; its `text` is for a person who is to approve the call.
        """
        return self.acting.world.preview(tool, arguments)

    @property
    def policy_version(self) -> str:
        """Return the version of the policy in force; "" where there is none."""
        policy = self.environment.policy
        return policy.version if policy else ""

    def effect_of(self, tool: str, arguments: ToolArguments) -> str:
        """Return the business key of what a call means to do.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.

        Returns:
            The key; "" where there is no such tool, or its arguments do not fit.
        """
        return self.acting.world.effect_of(tool, arguments)

    @property
    def tools(self) -> Mapping[str, Any]:
        """Return what can be called, `bench.worlds.environment.Tool` by name."""
        return self.environment.by_name

    @property
    def undoes(self) -> Mapping[str, str]:
        """Return undo -> the tool whose effect it takes back."""
        return self.environment.undoes

    @property
    def procedure(self) -> tuple[ProcedureStep, ...]:
        """Return the steps of the pack's work; none where it declares no procedure."""
        return self.environment.procedure

    @property
    def people(self) -> tuple[str, ...]:
        """Return the kinds of people who can be asked."""
        return tuple(self.environment.people)

    @property
    def environment(self) -> Environment:
        """Return what the pack declares of the world."""
        return self.acting.world.environment

    @asynccontextmanager
    async def outside_agent(self, server: Server | None = None) -> AsyncIterator[AgentSession]:
        """Open the model's endpoint for an agent that is a process of its own, for all its lives.

        Open it once, and keep it open over crashes. `session.base_url()` and `session.api_key` are for the agent. What it asks
        for is the pseudo-subtask `agent`, which nobody verifies. At the end the calls that its last reply stands on are
        committed as its output, so that their tokens are in the answer.

        Args:
            server: Serves it elsewhere than at a port of its own.

        Yields:
            The session.

        Raises:
            GaveUp: The agent ended with an exception after the bound on its calls was used up.
            CallFailed: The agent ended with an exception after its last call had failed.
        """
        session = self.agent = session_of(self._trial)
        async with served(self._trial, session, server):
            yield session
        if proposal := session.output():
            self._trial.write(proposal, verified=False)
