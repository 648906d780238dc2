"""The same request is sent once, in a run or in several; all arms that make it are given the same reply, usage and seconds.

So arms of one repetition differ by what their structure and their faults do, not by a server's chance or its load at the time:
common random numbers, exactly (Law, Simulation Modeling and Analysis, 5th ed., section 11.2). Each arm's tokens count in full,
as each would have paid for them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from bench.models.base import Message, Model, Reply, Request, Sleep, Timing
from bench.models.recorded import Exchange

Sent = tuple[tuple[Message, ...], int, int]
"""Messages, seed, and how many replies the trial had to them before."""


class CachedModel:
    """Implements `bench.models.base.Model` on another model. Failed calls are made again whenever they are asked for.

    `runs`: name and digest of the earlier runs that `before` was answered in; they are among its parameters.
    """

    def __init__(self, model: Model, before: Iterable[Exchange] = (), runs: Sequence[Mapping[str, str]] = ()):
        self._model, self.runs = model, list(runs)
        self._known: dict[Sent, Reply] = {}
        self.name, self.endpoint, self.concurrency = model.name, model.endpoint, model.concurrency
        self.timing: Timing = model.timing
        self.know(before)

    @property
    def parameters(self) -> dict[str, object]:
        return {**self._model.parameters, **({"asked_in": self.runs} if self.runs else {})}

    def know(self, exchanges: Iterable[Exchange]) -> None:
        """Take over what was answered before, when a run goes on or follows others; the first reply to a request stays."""
        for one in exchanges:
            if isinstance(one.outcome, Reply):
                reply = replace(one.outcome, took=one.seconds, reused=True, by="")
                self._known.setdefault((one.messages, one.seed, one.answers), reply)

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        sent = (request.messages, request.seed, request.answers)
        if known := self._known.get(sent):
            return known
        began = perf_counter()
        reply = await self._model.reply(request, sleep)
        self._known.setdefault(sent, replace(reply, took=perf_counter() - began, reused=True))
        return reply

    async def prepare(self) -> None:
        await self._model.prepare()

    async def close(self) -> None:
        await self._model.close()
