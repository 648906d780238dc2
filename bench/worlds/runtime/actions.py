"""What an architecture can do in its world, and what it keeps over a crash: `workbench.world.acting.world`.

act          call a tool, with an idempotency key and the versions that it expects, if they are given
wait         let world time pass
next_event   the next notice behind the ones that were read already
ask_person   ask somebody, and wait for the answer
verdict      what the policy says of a call that is not yet made
store        values and logs that survive a crash
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from bench.runtime.endpoint_session import Server
from bench.runtime.session_host import served
from bench.runtime.trial import Trial
from bench.worlds.environment import Acted, Arrival, Environment, Moment, PolicyVerdict, ProcedureStep
from bench.worlds.environment.procedure import AGENT
from bench.worlds.environment.scene import ToolArguments
from bench.worlds.runtime.acting import Acting
from bench.worlds.runtime.agent_session import AgentSession, session_of
from bench.worlds.runtime.lasting import Lasting
from bench.worlds.runtime.process import Store


@dataclass(frozen=True)
class Decision:
    """What a person said: `approved`, `denied`, or `late` where no answer came in time. Under the same ticket the contrary may
    arrive later."""

    answer: Literal["approved", "denied", "late"]
    ticket: str
    arrival: Arrival | None = None


class WorldActions:
    """`acting` strikes and logs what is done; `lasting` holds what outlives a process of the agent."""

    def __init__(self, acting: Acting, trial: Trial):
        self.acting, self._trial, self.lasting = acting, trial, Lasting()
        self.agent: AgentSession | None = None

    @property
    def now(self) -> Moment:
        """World time."""
        return self.acting.world.now

    @property
    def store(self) -> Store:
        """What survives a crash: `put`, `get`, `append`, `log`, `names`."""
        return self.acting.store

    @property
    def life(self) -> int:
        """Which process of the agent this is: 1, and 1 more after each crash."""
        return self.acting.world.life

    async def act(
        self,
        tool: str,
        arguments: ToolArguments,
        key: str | None = None,
        *,
        expect: Mapping[str, int] | None = None,
        role: str = AGENT,
    ) -> Acted:
        """Call a tool of the world. What goes wrong is data: `Acted.outcome` is done, replayed, refused or failed.

        key      idempotency key: the same key again gives the stored result, and has no second effect
        expect   thing -> the version that it must have, else the call is refused
        role     in which it is called: the world may have a contract for it
        """
        return await self.acting.act(tool, arguments, key, expect, role)

    async def wait(self, days: int = 0, minutes: int = 0, *, until: Moment | None = None) -> tuple[Arrival, ...]:
        """Let world time pass; the notices that came meanwhile."""
        return await self.acting.wait(until if until is not None else self.now.after(days, minutes))

    async def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        """The first notice whose number is above `after`: the log of notices is never emptied, so whoever keeps the last number
        misses none and reads none twice. It waits for one, up to a moment; None where none comes."""
        return await self.acting.next_event(after, until)

    def arrivals(self, after: int = 0) -> tuple[Arrival, ...]:
        """The notices that have come by now."""
        return self.acting.world.arrivals(after)

    async def ask(self, kind: str, about: str, question: Mapping[str, Any], key: str | None = None) -> str:
        """Ask a person and go on; the ticket, under which the answer arrives as an event of kind `answer`."""
        return await self.acting.ask(kind, about, question, key)

    async def ask_person(
        self,
        kind: str,
        about: str,
        question: Mapping[str, Any],
        key: str | None = None,
        *,
        days: int = 0,
        minutes: int = 0,
    ) -> Decision:
        """Ask a person and wait for the answer, for so long at most; 3 days where nothing is said. Other notices that come
        meanwhile stand in the log of notices, as all do."""
        until = self.now.after(days or (0 if minutes else 3), minutes)
        ticket = await self.ask(kind, about, question, key)
        read = 0
        while arrival := await self.next_event(read, until):
            read = arrival.number
            if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
                return self._decided(kind, Decision("approved" if arrival.payload["approved"] else "denied", ticket, arrival))
        return self._decided(kind, Decision("late", ticket))

    def _decided(self, kind: str, decision: Decision) -> Decision:
        self.acting.decided(kind, decision.ticket, decision.answer)
        return decision

    def begin_step(self, step: ProcedureStep) -> None:
        """Say, for the record, that a step of the procedure is attempted."""
        self.acting.stepped(step.name, "began", "")

    def end_step(self, step: ProcedureStep, why: str) -> None:
        """Say, for the record, that a step is done, or `why` it came to nothing."""
        self.acting.stepped(step.name, "ended", why)

    def verdict(self, tool: str, arguments: ToolArguments) -> PolicyVerdict:
        """What the policy, and the kill switch, say of a call that is not yet made: a gate asks it, and nothing else does."""
        return self.acting.verdict(tool, arguments)

    @property
    def policy_version(self) -> str:
        policy = self.environment.policy
        return policy.version if policy else ""

    def effect_of(self, tool: str, arguments: ToolArguments) -> str:
        """The business key of what a call means to do; "" where there is no such tool, or its arguments do not fit."""
        return self.acting.world.effect_of(tool, arguments)

    @property
    def tools(self) -> Mapping[str, Any]:
        """Name -> `bench.worlds.environment.Tool`: what can be called."""
        return self.environment.by_name

    @property
    def undoes(self) -> Mapping[str, str]:
        """Undo -> the tool whose effect it takes back."""
        return self.environment.undoes

    @property
    def procedure(self) -> tuple[ProcedureStep, ...]:
        """The steps of the pack's work; none where it declares no procedure."""
        return self.environment.procedure

    @property
    def people(self) -> tuple[str, ...]:
        """The kinds of people who can be asked."""
        return tuple(self.environment.people)

    @property
    def environment(self) -> Environment:
        """What the pack declares of the world."""
        return self.acting.world.environment

    @asynccontextmanager
    async def outside_agent(self, server: Server | None = None) -> AsyncIterator[AgentSession]:
        """The model's door of an agent that is a process of its own, for all its lives: open it once, and keep it open over
        crashes. `session.base_url()` and `session.api_key` are for the agent; `server` serves it elsewhere than at a port of
        its own.

        What the agent asks for is the pseudo-subtask `agent`, which nobody verifies. At the end the calls that its last reply
        stands on are committed as its output, so that their tokens are in the answer. Where it ends with an exception after
        its last call had failed, GaveUp or that CallFailed is raised in its place.
        """
        session = self.agent = session_of(self._trial)
        async with served(self._trial, session, server):
            yield session
        if proposal := session.output():
            self._trial.write(proposal, verified=False)
