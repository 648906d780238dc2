"""Turn the exceptions of a call to an OpenAI-compatible endpoint into `CallFailed`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp

from bench.common.errors import BadAnswer, CallFailed, CutOff, RateLimited, ServerFailed, TimedOut, TooLong, Unreachable
from bench.run.openai.advice import PROXY_AUTHENTICATION_REQUIRED, is_out_of_files, tls_error_in
from bench.run.openai.bodies import MAX_REPLY_BYTES, BrokeOff, NotUnpacked, TooLarge
from bench.run.openai.errors import error_of
from bench.run.openai.replies import FAILURES, USED_UP, excerpt
from bench.run.openai.transport import ErrorStatus
from bench.run.openai.words import error_event

LONGEST_ADDRESS = 300
"""Characters of a redirect's address that a failure quotes."""
UNITS = (("ms", 0.001), ("seconds", 1.0), ("second", 1.0), ("sec", 1.0), ("s", 1.0))
"""Units of a delay, and their seconds; a delay without a unit is in seconds."""

CALL_ERRORS = (aiohttp.ClientError, OSError, CallFailed, ErrorStatus, TooLarge, NotUnpacked, BrokeOff)
"""The exceptions of a failed call; a TimeoutError is an OSError. Any other exception is a bug or a cancellation."""

NO_CONNECTION = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
NO_PASSWORD = "the proxy asks for a name and a password, or for others: HTTP 407"
BAD_EXCHANGE = (aiohttp.InvalidURL, aiohttp.TooManyRedirects)


def failure_of(error: Exception, key: str = "") -> CallFailed:
    """Return the failure that the trial records for an exception of CALL_ERRORS. `key` is removed from its text."""
    if isinstance(error, CallFailed):
        return error
    if isinstance(error, ErrorStatus):
        return _status_failure(error, key)
    if isinstance(error, aiohttp.ClientError):
        return _connection_failure(error)
    if isinstance(error, TimeoutError):
        return TimedOut("no whole reply in time")
    if isinstance(error, OSError):
        return _no_connection(error, type(error).__name__)
    if isinstance(error, TooLarge):
        size = f"{MAX_REPLY_BYTES / 2**20:g} MiB"
        return TooLong(f"the reply is larger than {size}; set max_tokens, or see what the server sends")
    if isinstance(error, BrokeOff):
        return CutOff(f"the connection broke ({error})")
    if isinstance(error, NotUnpacked):
        return BadAnswer(f"the body cannot be read: {excerpt(str(error), key)}")
    return BadAnswer(f"{type(error).__name__}: {excerpt(str(error), key)}")


def _status_failure(error: ErrorStatus, key: str) -> CallFailed:
    """Return the failure of an answer with an error status."""
    status, headers, details = error.status, error.headers, error_of(error.body)
    text = excerpt((details.message if details else "") or error.body, key)
    if 300 <= status < 400:
        return BadAnswer(
            f"HTTP {status}: it sends on to {excerpt(headers.get('Location', ''), key, LONGEST_ADDRESS) or 'nowhere'}"
        )
    if status == PROXY_AUTHENTICATION_REQUIRED:
        return BadAnswer(NO_PASSWORD)
    event = error_event(details.words if details else (), details.message if details else "", status)
    if event == "used_up":
        return FAILURES[event](f"HTTP {status}: {USED_UP}{text}")
    kind = FAILURES.get(event, BadAnswer)
    delay = retry_after_seconds(headers, datetime.now(UTC), details.retry_delay if details else "")
    return kind(f"HTTP {status}: {text}", retry_after=delay if kind in (RateLimited, ServerFailed) else None)


def _connection_failure(error: aiohttp.ClientError) -> CallFailed:
    """Return the failure of a broken or refused connection."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _proxy_failure(error)
    reason = type(error).__name__  # the text can quote a header, and so the key
    if isinstance(error, NO_CONNECTION):
        return _no_connection(error, reason)
    if isinstance(error, TimeoutError):
        return TimedOut(f"no reply in time ({reason})")
    if isinstance(error, BAD_EXCHANGE):
        return BadAnswer(f"no usable exchange ({reason})")
    return Unreachable(f"the connection ended before any answer came ({reason})")


def _proxy_failure(error: aiohttp.ClientHttpProxyError) -> CallFailed:
    """Return the failure of a proxy that did not connect to an encrypted endpoint. The endpoint got no request."""
    if error.status == PROXY_AUTHENTICATION_REQUIRED:
        return BadAnswer(NO_PASSWORD)
    if error.status >= 500 or error.status == 408:
        return Unreachable(f"the proxy finds no way to the endpoint: HTTP {error.status}")
    kind = RateLimited if error.status == 429 else BadAnswer
    return kind(f"the proxy refuses the way to the endpoint: HTTP {error.status}")


def _no_connection(error: Exception, reason: str) -> CallFailed:
    """Return the failure of a connection that was not made."""
    if is_out_of_files(error):
        return Unreachable("no connection: too many open files on this machine")
    if tls_error := tls_error_in(error):
        why = getattr(tls_error, "verify_message", "") or (tls_error.reason or reason).replace("_", " ").lower()
        return BadAnswer(f"no TLS connection: {why}")
    target = " to the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    return Unreachable(f"no connection{target} ({reason})")


def retry_after_seconds(headers: Mapping[str, str], now: datetime, text: str = "") -> float | None:
    """Return the seconds that the server asks to wait, >= 0 and finite; None if the server gives no readable wait.

    The wait is read in `retry-after-ms`; else in `retry-after`, as seconds (also as `3s`) or as an HTTP date, which is compared
    with `now`; else in `text`, the delay in the error. `headers` must ignore case in look-ups, or have lower-case names.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    retry_after = headers.get("retry-after", "")
    waits = (_seconds(retry_after), _seconds_until(retry_after, now), _seconds(text))
    return next((seconds for seconds in waits if seconds is not None), None)


def _seconds(text: str) -> float | None:
    """Return the seconds of a delay such as `3s`; None if it cannot be read."""
    text = text.strip().lower()
    unit, factor = next(((unit, factor) for unit, factor in UNITS if text.endswith(unit)), ("", 1.0))
    try:
        number = float(text.removesuffix(unit)) * factor
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _seconds_until(text: str, now: datetime) -> float | None:
    """Return the seconds from `now` until an HTTP date; None if the text is no date."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    if date.tzinfo is None:  # an HTTP date is in UTC, whether it says so or not
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())
