"""A model behind an OpenAI-compatible chat endpoint: OpenAI's own, another provider's, or a server on this machine.

A call is one HTTP request. The client retries nothing and follows no redirect, so every attempt is the caller's own and
stands in the trial's account. Whatever goes wrong becomes one `CallFailed`, in `failure_of` and nowhere else.

A reply is one JSON document, not a stream: of one that breaks off, no text is recovered (`CallFailed.partial` is "").
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from bench.errors import (
    BadAnswer,
    CallFailed,
    CutOff,
    EndpointError,
    RateLimited,
    ServerFailed,
    TimedOut,
    Unreachable,
)
from bench.models.base import Message, Reply, Request, Sleep, Usage

OPENAI_URL = "https://api.openai.com/v1"
EXCERPT_CHARACTERS = 120
PROBE_SECONDS = 60.0
PROBE_TOKENS = 8
PROBE_PAUSES = (1.0, 2.0, 4.0)
LONGEST_PROBE_PAUSE = 20.0

SETTING_FIELDS = frozenset({"model", "temperature", "max_tokens", "top_p", "response_format"})
OWN_FIELDS = SETTING_FIELDS | {"messages", "seed", "stream", "n"}
"""What `extra_body` may not say: it has a setting of its own, or a reply could no longer be read."""


# -- settings: the config's edge ---------------------------------------------------------------------------------------


def normal_url(url: str) -> str:
    """One spelling for one endpoint, since calls are bounded per endpoint; ValueError where it cannot be one."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url must be an http:// or https:// address")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("base_url may hold no user, key, query or fragment; keys come from the environment")
    path = parts.path.rstrip("/")
    if path.endswith("/chat/completions"):
        raise ValueError("base_url must end before /chat/completions")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{path}"


def own_fields_left_alone(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """ValueError where `extra` sets what has a setting of its own."""
    if taken := sorted(OWN_FIELDS & set(extra or {})):
        raise ValueError(f"extra_body may not set {', '.join(taken)}")
    return extra


class OpenAISettings(BaseModel):
    """The lines of a config that describe one endpoint's model. Prices are per million tokens.

    model             its name at the provider; by default its name in the config
    api_key_env       the environment variable that holds the key; a loopback endpoint may do without
    timeout_seconds   for the whole reply, from connecting to its last byte
    usage             whether an endpoint that counts no tokens is refused before a run
    extra_body        further fields of the request, as the provider names them
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    base_url: Annotated[str, AfterValidator(normal_url)] = OPENAI_URL
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    response_format: Literal["none", "json_object"] = "none"
    connect_timeout_seconds: float = Field(default=10.0, gt=0)
    timeout_seconds: float = Field(default=120.0, gt=0)
    concurrency: int = Field(default=1, ge=1)
    usage: Literal["required", "optional"] = "required"
    price_in: float | None = Field(default=None, ge=0)
    price_out: float | None = Field(default=None, ge=0)
    extra_body: Annotated[dict[str, Any] | None, AfterValidator(own_fields_left_alone)] = None


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def key_of(settings: OpenAISettings) -> str:
    """The key, or "" where a loopback endpoint needs none; EndpointError names the variable, never its value."""
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key and not is_loopback(settings.base_url):
        raise EndpointError(f"no key for {settings.base_url}: set the environment variable {settings.api_key_env}")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EndpointError(f"the key in {settings.api_key_env} holds characters that no key has: copy it again")
    return key


# -- a body becomes a reply --------------------------------------------------------------------------------------------


class UnreadableBody(Exception):
    """A 200 answer whose body is no chat completion; `broke_off` where it is the beginning of a JSON document."""

    def __init__(self, body: str, *, broke_off: bool = False):
        super().__init__("the body is no chat completion")
        self.body = body
        self.broke_off = broke_off


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt


def reply_of(body: str) -> Reply:
    """Read a chat completion; raises UnreadableBody."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        raise UnreadableBody(body, broke_off=_broke_off(error)) from None
    choice, usage = completion.choices[0], usage_of(completion.usage)
    message, finish = choice.message, choice.finish_reason or "stop"
    if message.refusal or finish == "content_filter":
        return Reply(message.refusal or message.content or "", "content_filter", usage)
    if message.content is None and finish != "length":  # all tokens may go into unseen reasoning: an empty reply
        raise UnreadableBody(body)
    return Reply(message.content or "", finish, usage)


def usage_of(counted: object) -> Usage | None:
    """What the provider counted, or None where it says nothing usable: a good reply is not lost for that."""
    try:
        usage = _Usage.model_validate(counted)
    except ValidationError:
        return None
    return Usage(usage.prompt_tokens, usage.completion_tokens)


def _broke_off(error: ValidationError) -> bool:
    first = error.errors(include_url=False)[0]
    return first["type"] == "json_invalid" and "EOF" in first["ctx"]["error"]


# -- an exception becomes a failure ------------------------------------------------------------------------------------

EXPECTED = (openai.APIError, TimeoutError, UnreadableBody)
"""What may come out of a call. Anything else is a bug, or a cancellation, and passes through."""

NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
NEVER_USABLE = (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.DecodingError, httpx2.TooManyRedirects)


def failure_of(error: Exception, key: str = "") -> CallFailed:
    """The one place where an exception of EXPECTED becomes what the trial records; `key` is blotted out of its text."""
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, key)
    if isinstance(error, openai.APIConnectionError):
        return _connection_failure(error)
    if isinstance(error, TimeoutError):
        return TimedOut("no whole reply in time")
    if isinstance(error, UnreadableBody):
        return _body_failure(error, key)
    return BadAnswer(f"{type(error).__name__}: {excerpt(str(error), key)}")


def _status_failure(error: openai.APIStatusError, key: str) -> CallFailed:
    status, headers = error.status_code, error.response.headers
    detail = f"HTTP {status}: {excerpt(_said(error), key)}"
    if status == 429 and error.code != "insufficient_quota":  # an empty account does not fill up by waiting
        return RateLimited(detail, retry_after=retry_after_seconds(headers, datetime.now(UTC)))
    if status >= 500 or status == 408:  # 408: the server did not get the whole request, so did no work
        return ServerFailed(detail, retry_after=retry_after_seconds(headers, datetime.now(UTC)))
    return BadAnswer(detail)


def _said(error: openai.APIStatusError) -> str:
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return message if isinstance(message, str) else error.response.text


def _connection_failure(error: openai.APIConnectionError) -> CallFailed:
    cause = error.__cause__
    reason = type(cause or error).__name__  # the cause's text may quote a header, and so the key
    if isinstance(cause, NEVER_SENT):
        return Unreachable(f"no connection ({reason})")
    if isinstance(error, openai.APITimeoutError):
        return TimedOut(f"no reply in time ({reason})")
    if isinstance(cause, NEVER_USABLE):
        return BadAnswer(f"no usable exchange ({reason})")
    if cause is None:
        return Unreachable("no connection")
    return CutOff(f"the connection broke ({reason})")


def _body_failure(error: UnreadableBody, key: str) -> CallFailed:
    if error.broke_off:
        return CutOff(f"the reply's JSON breaks off after {len(error.body)} characters")
    kind = "an HTML page" if error.body.lstrip()[:1] == "<" else "no chat completion"
    return BadAnswer(f"{kind}: {excerpt(error.body, key)}")


def excerpt(text: str, key: str = "") -> str:
    """One short line of a server's words, without the key (blotted out first: a cut must not leave half of it)."""
    blotted = text.replace(key, "***") if key else text
    line = " ".join(blotted.split())
    return line if len(line) <= EXCERPT_CHARACTERS else f"{line[: EXCERPT_CHARACTERS - 1]}…"


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long the server asks to wait, >= 0 and finite, or None where it does not say so in a way that can be read.

    Understood are `retry-after-ms` and `retry-after` in seconds or as an HTTP date, which is compared with `now`.
    `headers` must look names up without regard to case, or hold them in lower case.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _seconds(said)
    return seconds if seconds is not None else _seconds_until(said, now)


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    if date.tzinfo is None:  # an HTTP date is in UTC, whether it says so or not
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


# -- the model ---------------------------------------------------------------------------------------------------------

ADVICE_BY_STATUS = {
    400: "check the model's parameters in the config",
    401: "check the key in {api_key_env}",
    403: "check that the key in {api_key_env} may use this model",
    404: "check the model's name, and that base_url has the right path (most end in /v1)",
    422: "check the model's parameters in the config",
}
ADVICE_BY_KIND = {
    Unreachable.kind: "check base_url, and that the server is running",
    TimedOut.kind: "see whether the server is busy, or raise timeout_seconds",
    RateLimited.kind: "come back later, or with less load",
    ServerFailed.kind: "come back later, or see the server's log",
    CutOff.kind: "see the server's log",
    BadAnswer.kind: "check that base_url is an OpenAI-compatible endpoint (most end in /v1)",
}


class OpenAIModel:
    """Implements `bench.models.base.Model`.

    The client, and with it the key, is first needed by `prepare` or `reply`: a dry run goes without. The client belongs
    to the event loop that first used it; after `close` another loop may use the model.
    """

    virtual = False

    def __init__(self, name: str, settings: OpenAISettings):
        self.name = name
        self.settings = settings
        self.endpoint = settings.base_url
        self.concurrency = settings.concurrency
        self._key = ""
        self._client: openai.AsyncOpenAI | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, model={self._model!r}, endpoint={self.endpoint!r})"

    @property
    def parameters(self) -> dict[str, object]:
        """Every setting that can change a reply, whether one comes, or what it costs."""
        unrelated = {"api_key_env", "connect_timeout_seconds", "concurrency", "usage"}
        return {**self.settings.model_dump(exclude=unrelated), "model": self._model}

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """One HTTP request; raises CallFailed, or EndpointError where there is no key."""
        del sleep  # a real call takes its own time
        try:
            return await self._ask(self._body(request.messages, request.seed), self.settings.timeout_seconds)
        except EXPECTED as error:
            raise failure_of(error, self._key) from None  # the cause's text may quote the key

    async def prepare(self) -> None:
        """One tiny call with the parameters of the real ones; up to three more while the server is only busy."""
        reply = await self._probe()
        if reply.usage is None and self.settings.usage == "required":
            raise self._unusable("it does not say how many tokens it used", 'set usage = "optional" to go without')

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _model(self) -> str:
        return self.settings.model or self.name

    async def _ask(self, body: dict[str, object], seconds: float) -> Reply:
        """Send `body` and read the reply within `seconds`; raises one of EXPECTED."""
        async with asyncio.timeout(seconds):  # the client's own limit is per read: a trickle would never reach it
            response = await self._connected().post("/chat/completions", body=body, cast_to=httpx2.Response)
        return reply_of(response.text)

    def _connected(self) -> openai.AsyncOpenAI:
        """The client, made at its first use, without I/O; raises EndpointError."""
        if self._client is None:
            settings = self.settings
            self._key = key_of(settings)
            timeout = httpx2.Timeout(settings.timeout_seconds, connect=settings.connect_timeout_seconds)
            self._client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=settings.base_url,
                max_retries=0,
                timeout=timeout,
                # No proxy of the environment leads to this machine, and a redirect would be a second request.
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False, trust_env=not is_loopback(settings.base_url), timeout=timeout
                ),
            )
        return self._client

    def _body(self, messages: Sequence[Message], seed: int) -> dict[str, object]:
        settings = self.settings
        as_json = {"type": "json_object"} if settings.response_format == "json_object" else None
        optional = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "response_format": as_json,
        }
        return {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "seed": seed,
            **{name: value for name, value in optional.items() if value is not None},
            **(settings.extra_body or {}),
        }

    def _probe_body(self) -> dict[str, object]:
        """Like a real call: what the endpoint refuses there it must refuse here.

        So the word JSON where a JSON reply is asked for, and `max_tokens` only where the config has it: some models
        refuse that field.
        """
        wanted = 'Reply with this JSON: {"ok": true}' if self.settings.response_format == "json_object" else None
        body = self._body([Message("user", wanted or "Reply with OK")], seed=0)
        if self.settings.max_tokens is not None:
            body["max_tokens"] = min(self.settings.max_tokens, PROBE_TOKENS)
        return body

    async def _probe(self) -> Reply:
        seconds = min(self.settings.timeout_seconds, PROBE_SECONDS)
        pauses = iter(PROBE_PAUSES)
        while True:
            try:
                return await self._ask(self._probe_body(), seconds)
            except EXPECTED as error:
                failure = failure_of(error, self._key)
                pause = next(pauses, None) if isinstance(failure, RateLimited | ServerFailed) else None
                if pause is None:
                    raise self._unusable(failure.detail, self._advice(error, failure)) from None
            asked = failure.retry_after
            await asyncio.sleep(min(pause if asked is None else asked, LONGEST_PROBE_PAUSE))

    def _advice(self, error: Exception, failure: CallFailed) -> str:
        status = getattr(error, "status_code", 0)
        return ADVICE_BY_STATUS.get(status, ADVICE_BY_KIND[failure.kind]).format(api_key_env=self.settings.api_key_env)

    def _unusable(self, wrong: str, advice: str) -> EndpointError:
        called = f"'{self.name}'" if self._model == self.name else f"'{self.name}' ({self._model})"
        return EndpointError(f"model {called} at {self.endpoint}: {wrong}; {advice}")
