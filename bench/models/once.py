"""The same request is sent once in a run; every arm that makes it is given the same reply, with its usage and its seconds.

So arms of one repetition differ by what their structure and their faults do, not by a server's chance or its load at the time:
common random numbers, exactly (Law, Simulation Modeling and Analysis, 5th ed., section 11.2). Each arm's tokens count in full,
as each would have paid for them alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter

from bench.models.base import Message, Model, Reply, Request, Sleep, Timing
from bench.models.recorded import Exchange

Sent = tuple[tuple[Message, ...], int, int]
"""Messages, seed, and how many replies the trial had to them before."""


class AskedOnce:
    """Implements `bench.models.base.Model` on another model. Failed calls are made again whenever they are asked for."""

    def __init__(self, model: Model):
        self._model = model
        self._known: dict[Sent, Reply] = {}
        self.name, self.endpoint, self.concurrency = model.name, model.endpoint, model.concurrency
        self.timing: Timing = model.timing

    @property
    def parameters(self) -> dict[str, object]:
        return self._model.parameters

    def know(self, exchanges: Iterable[Exchange]) -> None:
        """Take over what was answered before, when a run goes on; the first reply to a request stays."""
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
