"""A response cache: a request that was answered before is not sent again, but gets the same reply, usage and seconds.

The cache has two uses. A run that was killed continues with the replies that it already has, so that no call is paid twice. And
with `cache = true` the same request is sent once in a run, or in several runs (`cache_from`), and all arms that make the
request get the same reply. The arms of one repetition then differ by their structure and their faults, not by a server's chance
or load. These are common random numbers (Law, Simulation Modeling and Analysis, 5th ed., section 11.2). The tokens of each arm
count in full, as if the arm alone had paid for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter_ns

from pydantic import BaseModel, ConfigDict, model_validator

from bench.common.bounds import Many
from bench.record.messages import Timing
from bench.run.models.base import Model, Reply, Request, RequestContent, Response, Sleep

CacheKey = tuple[tuple[str, ...], RequestContent, int]
"""(the trial's model and arm, empty if all arms share replies; the request; the number of earlier replies to it in the
trial)."""


class CacheSettings(BaseModel):
    """The keys of a config's model table that control the cache."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cache: bool = False
    """Send the same request (messages, seed) once in a run, and give its reply to every arm that makes it. An arm that makes it
    meanwhile waits for that reply."""
    cache_from: Many[Path] = ()
    """Earlier runs whose replies are reused: a model with the same settings, `base_url` and key gets its replies from there,
    with the seconds that they took. Needs `cache = true`."""

    @model_validator(mode="after")
    def _require_cache(self) -> CacheSettings:
        """Refuse `cache_from` without `cache`."""
        if self.cache_from and not self.cache:
            raise ValueError("cache_from needs cache = true: otherwise every request is sent")
        return self


@dataclass(frozen=True)
class ResponsesBefore:
    """The responses of earlier runs that a model can reuse.

    responses   the responses of models with the same parameters
    runs        the names and digests of the runs with these responses
    others      the other runs, each with the parameter or account that differs there
    """

    responses: list[Response] = field(default_factory=list)
    runs: list[dict[str, str]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


class CachedModel:
    """A model with a response cache. It implements `bench.run.models.base.Model`. Failed calls are not cached.

    shared   whether arms get each other's replies; if not, each arm gets only its own
    before   the responses of earlier runs; the names and digests of these runs are among the parameters
    account  a text that identifies the account that is asked; replies to other accounts are not reused
    """

    def __init__(self, model: Model, shared: bool, before: ResponsesBefore | None = None, account: str = ""):
        self._model, self.shared, self.before, self.account = model, shared, before or ResponsesBefore(), account
        self._replies: dict[CacheKey, Reply] = {}
        self._in_flight: dict[CacheKey, asyncio.Event] = {}
        self.name, self.endpoint, self.concurrency = model.name, model.endpoint, model.concurrency
        self.timing: Timing = model.timing
        self.add_responses(self.before.responses)

    @property
    def parameters(self) -> dict[str, object]:
        return {**self._model.parameters, **({"cache_from": self.before.runs} if self.before.runs else {})}

    def add_responses(self, responses: Iterable[Response]) -> None:
        """Add the replies of earlier responses to the cache. Only the first reply to a request is kept."""
        for response in responses:
            if isinstance(response.outcome, Reply):
                reply = replace(response.outcome, took=response.seconds, reused=True, by="")
                self._replies.setdefault(self._key(response.request), reply)

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Return the cached reply, or ask the model. A request that another arm has in flight is not sent again."""
        if not self.shared:
            return self._replies.get(self._key(request)) or await self._model.reply(request, sleep)
        key = self._key(request)
        while earlier := self._in_flight.get(key):
            await earlier.wait()
        return self._replies.get(key) or await self._send(key, request, sleep)

    async def _send(self, key: CacheKey, request: Request, sleep: Sleep) -> Reply:
        """Send the request and cache its reply. Arms that make the same request meanwhile wait. If the call fails, the next
        waiting arm sends the request."""
        ended = self._in_flight[key] = asyncio.Event()
        start = perf_counter_ns()
        try:
            reply = await self._model.reply(request, sleep)
            began, arrived = reply.flight or (start, perf_counter_ns())
            self._replies[key] = replace(reply, took=(arrived - began) / 1e9, reused=True, flight=None)
            return reply
        finally:
            del self._in_flight[key]
            ended.set()

    def _key(self, request: Request) -> CacheKey:
        arm = () if self.shared else (request.context.model, request.context.arm)
        return arm, request.content, request.answers

    async def prepare(self, patient: bool = True) -> None:
        await self._model.prepare(patient)

    async def close(self) -> None:
        await self._model.close()
