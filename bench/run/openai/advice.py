"""Advice to the user on a failure of an endpoint. It follows the failure's description in an error message."""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import aiohttp

from bench.common.errors import (
    BadAnswer,
    CallFailed,
    CutOff,
    NoCompletion,
    NoText,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLong,
    UnknownFinish,
    Unreachable,
    UsedUp,
)
from bench.run.models.options import OPTIONS
from bench.run.openai.address import EndpointAddress
from bench.run.openai.errors import error_of
from bench.run.openai.proxies import Proxy
from bench.run.openai.settings import REQUIRED_FIELDS, OpenAISettings
from bench.run.openai.transport import ErrorStatus

PROXY_AUTHENTICATION_REQUIRED = 407
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)
CHAT_PATH = "/chat/completions"

KEY_ADVICE = {
    401: "check the key in {settings.api_key_env}",
    403: "check that the key in {settings.api_key_env} may use this model",
}
REFUSED_REQUEST = (400, 422)
"""HTTP statuses of an endpoint that refuses a field of the request."""
_MENTION = r"""(?:(?<!\w)(?=\w*_|seed|temperature)|(?<=["'`]))(?P<field>{name})(?!\w)"""
"""The pattern of a field's name in a sentence. A name that is a common word must be quoted there."""
_MESSAGE_FIELD = re.compile(r"messages[.\[\]\w]{1,40}\.(?P<field>\w+)")
"""A field of a message, named by its path, such as `messages.2.assistant.reasoning_content`."""
PARAMETERS_ADVICE = "check the model's parameters in the config"
_NO_SYSTEM_MESSAGE = re.compile(
    r"system\W{0,3}(role|messages?) (is |are )?not supported|not support \W?system\b|roles must alternate", re.I
)
"""Texts with which a model, or a chat template, refuses a system message."""
KIND_ADVICE = {
    Unreachable.kind: "check base_url, and that the server is running",
    TimedOut.kind: "see whether the server is busy, or raise timeout_seconds",
    RateLimited.kind: "come back later, or with less load",
    ServerFailed.kind: "come back later, or see the server's log",
    CutOff.kind: "see the server's log",
    TooLong.kind: "set max_tokens, or see the server's log",
    NoText.kind: "check that this model answers in text",
    UnknownFinish.kind: "see what the server means by it: the words that are known stand in docs/providers.md",
    NoCompletion.kind: "check that base_url is an OpenAI-compatible endpoint (most end in /v1)",
    BadAnswer.kind: "check that base_url is an OpenAI-compatible endpoint (most end in /v1)",
}


def advice_on(error: Exception, failure: CallFailed, settings: OpenAISettings, proxy: Proxy | None = None) -> str:
    """Return what the user can do about `failure`, which was made from `error`. `proxy` is the proxy between this process and
    the endpoint."""
    if proxy and isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"check {proxy.variable}, and that the proxy is running"
    if proxy and getattr(error, "status", None) == PROXY_AUTHENTICATION_REQUIRED:
        return f"give both in {proxy.variable}, as http://NAME:PASSWORD@HOST:PORT"
    advice = _advice_on(error, failure, settings)
    return f"{advice}; it is asked through the proxy that {proxy.variable} names" if proxy else advice


def _advice_on(error: Exception, failure: CallFailed, settings: OpenAISettings) -> str:
    """Return what the user can do about a failed call."""
    if isinstance(failure, UsedUp):
        return f"see to the plan and the billing of the key in {settings.api_key_env}: waiting does not help"
    if is_out_of_files(error):
        return "raise the limit (ulimit -n), or lower concurrency"
    if tls_error := tls_error_in(error):
        return _on_tls(tls_error)
    if isinstance(error, ErrorStatus):
        return _on_status(error, failure, settings)
    if error is failure and isinstance(failure, BadAnswer):  # an error in an answer of status 200
        return PARAMETERS_ADVICE
    return KIND_ADVICE[failure.kind]


def _on_status(error: ErrorStatus, failure: CallFailed, settings: OpenAISettings) -> str:
    """Return what the user can do about an answer with this status."""
    status = error.status
    if 300 <= status < 400:
        return f"set base_url to the address that answers itself{_suggestion(error.headers.get('Location', ''))}"
    if status in KEY_ADVICE:
        return KEY_ADVICE[status].format(settings=settings)
    if status == 404:
        return _on_missing(error, settings)
    return _on_refusal(error, settings) if status in REFUSED_REQUEST else KIND_ADVICE[failure.kind]


def _on_refusal(error: ErrorStatus, settings: OpenAISettings) -> str:
    """Return what the user can do about a request that the endpoint refuses, by the field that its error names."""
    if _NO_SYSTEM_MESSAGE.search(error.body):
        return "prompts begin with a system message: take a model, or give its server a chat template, that has one"
    field = _field_named(error.body, settings)
    if field == "max_tokens":
        return (
            "take max_tokens out of the model's table, and give extra_body = { max_completion_tokens = N } if it asks for that"
        )
    if field in (*settings.model_fields_set, *(settings.extra_body or ())):
        return f"change {field} in the model's table, or leave it out"
    if field:
        return f'leave {field} out: set omit = ["{field}"] in the model\'s table'
    form = settings.response_format
    format_advice = f'; it may not offer response_format = "{form}"' if form else ""
    return f"{PARAMETERS_ADVICE}{format_advice}"


def _field_named(text: str, settings: OpenAISettings) -> str:
    """Return the first field in an error's text that the request had, or a message of it; "" if the text names none."""
    fields = ["seed", *(name for name in OPTIONS if name not in ("tools", "response_format")), *(settings.extra_body or ())]
    fields += [name for name in ("temperature", "top_p", "max_tokens") if getattr(settings, name) is not None]
    matches = [match for name in fields if (match := re.search(_MENTION.format(name=re.escape(name)), text))]
    if matches:
        return min(matches, key=lambda match: match.start())["field"]
    match = _MESSAGE_FIELD.search(text)
    return match["field"] if match and match["field"] not in REQUIRED_FIELDS else ""


def _suggestion(location: str) -> str:
    """Return ": " and the base_url for a redirect's address; "" if that is no address of chat completions."""
    if not location.endswith(CHAT_PATH) or "?" in location:
        return ""
    try:
        return f": {EndpointAddress(location.removesuffix(CHAT_PATH))}"
    except ValueError:
        return ""


def _on_missing(error: ErrorStatus, settings: OpenAISettings) -> str:
    """Return what the user can do about a status 404."""
    refusal = error_of(error.body)
    if refusal and "model_not_found" in refusal.words:
        return "check the model's name"
    if urlsplit(settings.base_url).path.rstrip("/").endswith("/v1"):
        return "check the model's name, and that base_url has the right path (most end in /v1)"
    return f"check that base_url has the right path: most end in /v1, as {settings.address.path}/v1 does; and the model's name"


def _on_tls(tls_error: ssl.SSLError) -> str:
    """Return what the user can do about a TLS error."""
    if isinstance(tls_error, ssl.SSLCertVerificationError):
        return "check the host in base_url and this machine's clock, or name its authority's certificate in SSL_CERT_FILE"
    return "check whether base_url is http:// and not https://, and its port"


def is_out_of_files(error: BaseException) -> bool:
    """Return whether too many open files, of the process or of the machine, caused the error."""
    return any(isinstance(cause, OSError) and cause.errno in TOO_MANY_FILES for cause in _causes(error))


def tls_error_in(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error that caused `error`; None if no TLS error did."""
    passing = (ssl.SSLEOFError, ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    others = (cause for cause in _causes(error) if not isinstance(cause, (*passing, aiohttp.ClientError)))
    return next((cause for cause in others if isinstance(cause, ssl.SSLError)), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it."""
    while error:
        yield error
        if isinstance(error, BaseExceptionGroup):
            yield from error.exceptions
        error = error.__cause__ or error.__context__
