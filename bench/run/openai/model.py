"""A model behind an OpenAI-compatible chat endpoint: OpenAI's, another provider's, or a server on this machine.

A call is one HTTP request. The client retries nothing and follows no redirect, so that the caller makes and records every
attempt. Each failure becomes one `CallFailed` (`bench.run.openai.replies` for answers, `bench.run.openai.failures` for other
failures).

A reply is one JSON document, not a stream: if it breaks off, no text is recovered (`CallFailed.partial` is "").
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bench.common.errors import CallFailed, EndpointError, RateLimited, ServerFailed
from bench.record.messages import Message, Timing
from bench.run.models.base import Reply, Request, Sleep
from bench.run.models.cached import CachedModel
from bench.run.models.making import Making
from bench.run.models.options import options_in
from bench.run.openai.advice import advice_on
from bench.run.openai.client import Client
from bench.run.openai.failures import CALL_ERRORS, failure_of
from bench.run.openai.formats import PROBE_PROMPT, PROBE_SCHEMA, response_format
from bench.run.openai.replies import reply_in_error, reply_of
from bench.run.openai.requests import endpoint_options, message_fields, without_fields
from bench.run.openai.settings import OpenAISettings, account_of, key_of, refuse_key_in
from bench.run.openai.transport import ErrorStatus
from bench.wire.blotting import blot

MAX_CHARS_ON_LOOP = 2**18
"""An answer with more characters is read in a thread, and not on the event loop."""
OPTIONAL_PARAMETERS = ("api_version", "organization", "project", "price_cached")
"""Settings that are among a model's parameters only if the config gives them."""
PROBE_TIMEOUT_S = 60.0
PROBE_TOKENS = 8
PROBE_PAUSES_S = (1.0, 2.0, 4.0)
MAX_PROBE_PAUSE_S = 20.0


class OpenAIModel:
    """A model behind an endpoint. It implements `bench.run.models.base.Model`.

    The client and the key are made at the first `prepare` or `reply`: a dry run needs neither. The client belongs to the event
    loop that first used it; after `close` another loop can use the model.
    """

    timing: Timing = "live"

    def __init__(self, name: str, settings: OpenAISettings):
        refuse_key_in(name, settings)
        self.name = name
        self.settings = settings
        self.endpoint = settings.base_url
        self.concurrency = settings.concurrency
        self._key = ""
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, model={self._model!r}, endpoint={self.endpoint!r})"

    @property
    def parameters(self) -> dict[str, object]:
        """Return each setting that can change a reply, whether a reply comes, or what it costs."""
        unrelated = {"api_key_env", "connect_timeout_seconds", "concurrency", "usage", "cache_from"}
        unrelated |= {
            "answer_format",
            "draft_tags",
            "omit",
            *(name for name in OPTIONAL_PARAMETERS if getattr(self.settings, name) in (None, "")),
        }
        form = self.settings.response_format or "none"
        omitted = {"omit": sorted(self.settings.omit)} if self.settings.omit else {}
        return {**self.settings.model_dump(exclude=unrelated), "model": self._model, "response_format": form, **omitted}

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Send one HTTP request and return the reply. Raises CallFailed, or EndpointError if there is no key."""
        del sleep  # a real call takes its own time
        try:
            body = self._body(request.messages, request.seed, request.schema, options_in(request.options))
            reply = await self._ask(body, self.settings.timeout_seconds)
            return reply if request.schema is None else replace(reply, extra="")  # with a schema, no reply is sent back
        except CALL_ERRORS as error:
            raise self._failure_of(error) from None  # the cause's text can quote the key

    async def prepare(self, patient: bool = True) -> None:
        """Make one small test call with the real parameters. With `patient`, repeat it up to three times while the server is
        busy. Raises EndpointError if the model cannot be used."""
        reply = await self._probe(PROBE_PAUSES_S if patient else ())
        if reply.usage is None and self.settings.usage == "required":
            raise self._unusable("it does not say how many tokens it used", 'set usage = "optional" to go without')

    async def close(self) -> None:
        """Close the client's connections, if it has been used."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _model(self) -> str:
        return self.settings.model or self.name

    async def _ask(self, body: dict[str, object], seconds: float) -> Reply:
        """Send `body` and read the reply within `seconds`. A reply in the body of an error status is a reply. `flight` has the
        times of the request. Raises one of CALL_ERRORS."""
        try:
            async with asyncio.timeout(seconds):  # a limit per read would never stop an answer that comes byte by byte
                answer = await self._connect().post(body)
        except ErrorStatus as refused:
            if reply := reply_in_error(refused.body, self._key):
                return replace(reply, flight=refused.flight)
            raise
        try:
            is_long = len(answer.body) > MAX_CHARS_ON_LOOP
            reply = await asyncio.to_thread(reply_of, answer.body, self._key) if is_long else reply_of(answer.body, self._key)
            return replace(reply, flight=answer.flight)
        except CallFailed as failure:
            failure.flight = answer.flight
            raise

    def _connect(self) -> Client:
        """Return the client, which is made at its first use without I/O. Raises EndpointError."""
        if self._client is None:
            self._key = key_of(self.settings)
            self._client = Client(self.settings, self._key, self._model)
        return self._client

    def _body(
        self,
        messages: Sequence[Message],
        seed: int,
        schema: Mapping[str, Any] | None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, object]:
        """Return the body of a request. `options` are the request's options, which replace settings. Of two limits on the
        reply's length, the smaller one is sent."""
        settings = self.settings
        optional = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "response_format": response_format(settings.response_format, schema),
        }
        fields = {
            "model": self._model,
            "messages": [message_fields(message, settings.omit) for message in messages],
            "seed": seed,
            **{name: value for name, value in optional.items() if value is not None},
            **(settings.extra_body or {}),
            **endpoint_options(options, settings),
        }
        return without_fields(fields, settings.omit)

    def _probe_body(self) -> dict[str, object]:
        """Return the body of a test call. It resembles a real call's body, so that an endpoint that refuses a field of real
        calls also refuses the test call.

        The body has the same response format, and the word JSON if a JSON reply is wanted. It has `max_tokens` only if the
        config does, since some models refuse that field. It has no system message, since an agent may send none, and no tools.
        """
        prompt = PROBE_PROMPT if self.settings.response_format else "Reply with OK"
        body = self._body([Message("user", prompt)], 0, PROBE_SCHEMA)
        if self.settings.max_tokens is not None:
            body["max_tokens"] = min(self.settings.max_tokens, PROBE_TOKENS)
        return body

    async def _probe(self, pauses_in_seconds: Iterable[float]) -> Reply:
        """Make a test call, and repeat it after each of these pauses while the server is busy."""
        seconds = min(self.settings.timeout_seconds, PROBE_TIMEOUT_S)
        pauses = iter(pauses_in_seconds)
        while True:
            try:
                return await self._ask(self._probe_body(), seconds)
            except CALL_ERRORS as error:
                failure = self._failure_of(error)
                pause = next(pauses, None) if isinstance(failure, RateLimited | ServerFailed) else None
                if pause is None:
                    raise self._unusable(failure.detail, failure.advice) from None
            if failure.retry_after is not None:
                pause = failure.retry_after
            await asyncio.sleep(min(pause, MAX_PROBE_PAUSE_S))

    def _failure_of(self, error: Exception) -> CallFailed:
        """Return the failure for an exception, with advice to the user."""
        failure = failure_of(error, self._key)
        if isinstance(error, ErrorStatus):
            failure.flight = error.flight
        advice = advice_on(error, failure, self.settings, self._client.proxy if self._client else None)
        failure.advice = blot(advice, self._key)
        return failure

    def _unusable(self, problem: str, advice: str) -> EndpointError:
        """Return the error that this model cannot be used."""
        model = f"'{self.name}'" if self._model == self.name else f"'{self.name}' ({self._model})"
        return EndpointError(f"model {model} at {self.endpoint}: {problem}; {advice}")


def make_model(settings: OpenAISettings, making: Making) -> CachedModel:
    """Make a model behind an endpoint, with its cache of responses."""
    response_format = settings.response_format or "json_schema" if making.answer_format == "schema" else None
    model = OpenAIModel(making.name, settings.model_copy(update={"response_format": response_format}))
    account = account_of(settings)
    earlier_responses = making.answered_before(settings.cache_from, model.parameters, account, making.name)
    return CachedModel(model, settings.cache, earlier_responses, account)
