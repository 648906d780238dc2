"""What an OpenAI-compatible endpoint answers: a body becomes a `Reply`, an exception becomes one `CallFailed`, here and nowhere
else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from pydantic import BaseModel, Field, ValidationError

from bench.errors import (
    BadAnswer,
    CallFailed,
    CutOff,
    NoCompletion,
    NoText,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLong,
    Unreachable,
    UsedUp,
    whole_text,
)
from bench.models.base import Reply, Usage
from bench.models.blotting import blotted
from bench.models.openai_advice import PROXY_ASKS, has_no_files, is_used_up, tls_of
from bench.models.openai_bodies import LARGEST, BrokeOff, NotUnpacked, TooLarge
from bench.models.openai_errors import ErrorSaid, error_in
from bench.models.openai_http import Refused
from bench.models.tool_calls import ToolCall
from bench.numbers import Count

EXCERPT_CHARACTERS = 120
LONGEST_ADDRESS = 300
"""Characters of the address that a redirect names."""


class UnreadableBody(Exception):
    """A 200 answer whose body is no chat completion; `broke_off` where it is the beginning of a JSON document, `lacks_text`
    where it is a completion that says nothing."""

    def __init__(self, body: str, *, broke_off: bool = False, lacks_text: bool = False):
        super().__init__("the body is no chat completion")
        self.body, self.broke_off, self.lacks_text = body, broke_off, lacks_text


class _Function(BaseModel):
    name: str
    arguments: str = ""


class _ToolCall(BaseModel):
    """Some servers give it no id."""

    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


class _Usage(BaseModel):
    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: Any = None


class _PromptDetails(BaseModel):
    cached_tokens: Count


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
    calls = tuple(
        ToolCall(one.id or f"call_{number}", one.function.name, one.function.arguments)
        for number, one in enumerate(message.tool_calls or (), start=1)
    )
    if message.content is None and not calls and finish != "length":  # all tokens may go into unseen reasoning: an empty reply
        raise UnreadableBody(body, lacks_text=True)
    return Reply(message.content or "", finish, usage, tool_calls=calls)


def usage_of(counted: object) -> Usage | None:
    """What the provider counted, or None where it says nothing usable: a good reply is not lost for that."""
    try:
        usage = _Usage.model_validate(counted)
    except ValidationError:
        return None
    return Usage(usage.prompt_tokens, usage.completion_tokens, _cached_of(usage))


def _cached_of(usage: _Usage) -> int | None:
    """Of a prompt's tokens those that were cached; None where that is not told, or cannot be."""
    try:
        cached = _PromptDetails.model_validate(usage.prompt_tokens_details).cached_tokens
    except ValidationError:
        return None
    return cached if cached <= usage.prompt_tokens else None


def _broke_off(error: ValidationError) -> bool:
    first = error.errors(include_url=False)[0]
    return first["type"] == "json_invalid" and "EOF" in first["ctx"]["error"]


EXPECTED = (aiohttp.ClientError, OSError, Refused, UnreadableBody, TooLarge, NotUnpacked, BrokeOff)
"""What may come out of a call; a TimeoutError is an OSError. Anything else is a bug, or a cancellation, and passes through."""

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
NO_PASSWORD = "the proxy asks for a name and a password, or for others: HTTP 407"
NEVER_USABLE = (aiohttp.InvalidURL, aiohttp.TooManyRedirects)


def failure_of(error: Exception, key: str = "") -> CallFailed:
    """The one place where an exception of EXPECTED becomes what the trial records; `key` is blotted out of its text."""
    if isinstance(error, Refused):
        return _status_failure(error, key)
    if isinstance(error, aiohttp.ClientError):
        return _connection_failure(error)
    if isinstance(error, TimeoutError):
        return TimedOut("no whole reply in time")
    if isinstance(error, OSError):
        return _unconnected(error, type(error).__name__)
    if isinstance(error, TooLarge):
        return TooLong(f"the reply is larger than {LARGEST / 2**20:g} MiB; set max_tokens, or see what the server sends")
    if isinstance(error, BrokeOff):
        return CutOff(f"the connection broke ({error})")
    if isinstance(error, NotUnpacked):
        return BadAnswer(f"the body cannot be read: {excerpt(str(error), key)}")
    if isinstance(error, UnreadableBody):
        return _body_failure(error, key)
    return BadAnswer(f"{type(error).__name__}: {excerpt(str(error), key)}")


def _status_failure(error: Refused, key: str) -> CallFailed:
    status, headers, found = error.status, error.headers, error_in(error.body)
    said = excerpt(found.message if found else error.body, key)
    if status == 402 or (found and is_used_up(found.code, found.kind)):
        return UsedUp(f"HTTP {status}: the account's quota is used up: {said}")
    if 300 <= status < 400:
        return BadAnswer(
            f"HTTP {status}: it sends on to {excerpt(headers.get('Location', ''), key, LONGEST_ADDRESS) or 'nowhere'}"
        )
    if status == PROXY_ASKS:
        return BadAnswer(NO_PASSWORD)
    detail = f"HTTP {status}: {said}"
    if status == 429:
        return RateLimited(detail, retry_after=retry_after_seconds(headers, datetime.now(UTC)))
    if status >= 500 or status == 408:  # 408: the server did not get the whole request, so did no work
        return ServerFailed(detail, retry_after=retry_after_seconds(headers, datetime.now(UTC)))
    return BadAnswer(detail)


def _connection_failure(error: aiohttp.ClientError) -> CallFailed:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _no_way(error)
    reason = type(error).__name__  # its text may quote a header, and so the key
    if isinstance(error, NEVER_SENT):
        return _unconnected(error, reason)
    if isinstance(error, TimeoutError):
        return TimedOut(f"no reply in time ({reason})")
    if isinstance(error, NEVER_USABLE):
        return BadAnswer(f"no usable exchange ({reason})")
    return Unreachable(f"the connection ended before any answer came ({reason})")


def _no_way(error: aiohttp.ClientHttpProxyError) -> CallFailed:
    """A proxy did not open the way to an endpoint that encrypts, which was thus sent nothing."""
    if error.status == PROXY_ASKS:
        return BadAnswer(NO_PASSWORD)
    if error.status >= 500 or error.status == 408:
        return Unreachable(f"the proxy finds no way to the endpoint: HTTP {error.status}")
    kind = RateLimited if error.status == 429 else BadAnswer
    return kind(f"the proxy refuses the way to the endpoint: HTTP {error.status}")


def _unconnected(error: Exception, reason: str) -> CallFailed:
    if has_no_files(error):
        return Unreachable("no connection: too many open files on this machine")
    if refused := tls_of(error):
        why = getattr(refused, "verify_message", "") or (refused.reason or reason).replace("_", " ").lower()
        return BadAnswer(f"no TLS connection: {why}")
    to_whom = " to the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    return Unreachable(f"no connection{to_whom} ({reason})")


def _body_failure(error: UnreadableBody, key: str) -> CallFailed:
    if not error.body.strip():
        return ServerFailed("an answer without a body")
    if error.broke_off:
        return CutOff(f"the reply's JSON breaks off after {len(error.body)} characters")
    if error.lacks_text:
        return NoText(f"a completion without a text: {excerpt(error.body, key)}")
    if said := error_in(error.body):
        return _error_failure(said, key)
    kind = "an HTML page" if error.body.lstrip()[:1] == "<" else "no chat completion"
    return NoCompletion(f"{kind}: {excerpt(error.body, key)}")


def _error_failure(said: ErrorSaid, key: str) -> CallFailed:
    detail = f"HTTP 200, and an error in it: {excerpt(said.message, key)}"
    if is_used_up(said.code, said.kind):
        return UsedUp(f"the account's quota is used up: {detail}")
    if said.code in (429, "429", "rate_limit_exceeded"):
        return RateLimited(detail)
    is_for_good = isinstance(said.code, int) and 400 <= said.code < 500 and said.code != 408
    return BadAnswer(detail) if is_for_good else ServerFailed(detail)


def excerpt(text: str, key: str = "", longest: int = EXCERPT_CHARACTERS) -> str:
    """One short line of a server's words, without the key (blotted out first: a cut must not leave half of it)."""
    line = " ".join(whole_text(blotted(text, key)).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


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
