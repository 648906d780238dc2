"""The settings of a model behind an OpenAI-compatible endpoint, and the source of its key."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from bench.common.bounds import BoundedTable, Many
from bench.common.errors import ConfigError, EndpointError
from bench.common.numbers import Price
from bench.run.models.cached import CacheSettings
from bench.run.openai.address import API_VERSION, EndpointAddress
from bench.wire.blotting import MIN_KEY_CHARS, blot

OPENAI_URL = "https://api.openai.com/v1"

SETTING_FIELDS = frozenset({"model", "temperature", "max_tokens", "top_p", "response_format"})
RESERVED_FIELDS = SETTING_FIELDS | {"messages", "seed", "stream", "n"}
"""Fields that `extra_body` may not set: they have a setting, or would make replies unreadable."""
REQUIRED_FIELDS = frozenset({"messages", "role", "content", "tool_calls", "tool_call_id", "function", "name", "arguments"})
"""Fields that every request needs, so `omit` may not name them."""
SECRET_NAMES = frozenset({"apikey", "accesstoken", "authorization", "authtoken", "bearer", "password", "secret", "token"})
"""Names that no field of `extra_body` may have, in lower case and without punctuation."""


def check_extra_body(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return `extra` unchanged. Raises ValueError if it sets one of RESERVED_FIELDS, if a name in it means a secret, which
    would be recorded, or if JSON cannot hold it."""
    if reserved := sorted(RESERVED_FIELDS & set(extra or {})):
        raise ValueError(f"extra_body may not set {', '.join(reserved)}")
    if secret := next((name for name in _names_in(extra) if re.sub(r"[\W_]", "", name).lower() in SECRET_NAMES), ""):
        raise ValueError(f"extra_body may not hold '{secret}', since it is written down; keys come from the environment")
    try:
        json.dumps(extra, allow_nan=False)
    except (ValueError, TypeError):
        raise ValueError("extra_body must hold what JSON can: no date, no time, no infinite number") from None
    return extra


def check_omitted(omitted: tuple[str, ...]) -> tuple[str, ...]:
    """Return `omitted` unchanged. Raises ValueError for a field that every request needs, or that is sent only because the
    model's table sets it."""
    if required := sorted(REQUIRED_FIELDS & set(omitted)):
        raise ValueError(f"omit may not name {', '.join(required)}: without it nothing is asked")
    if table_fields := sorted((SETTING_FIELDS - {"model"}) & set(omitted)):
        raise ValueError(f"omit names {table_fields[0]}, which is sent only where the table has it: take it out there")
    return omitted


def _names_in(value: object) -> Iterator[str]:
    """Yield the names of all fields in a value, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _names_in(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _names_in(item)


def _address(url: object, read: ValidatorFunctionWrapHandler) -> EndpointAddress:
    """Parse an address. An `EndpointAddress` is returned as it is: parsed again from its text, it would lose the secrets."""
    return url if isinstance(url, EndpointAddress) else EndpointAddress(read(url))


BaseUrl = Annotated[str, WrapValidator(_address)]
ResponseFormat = Literal["json_schema", "json_object_schema", "json_object"]


class OpenAISettings(CacheSettings):
    """A model behind an OpenAI-compatible endpoint. A setting that is not given is not sent: the endpoint's default holds."""

    model: str | None = None
    """Its name at the provider; by default its name in the config."""
    base_url: BaseUrl = OPENAI_URL
    """The endpoint's address, up to `/chat/completions`. A query goes with every request; its values are told and written down
    nowhere, except a version."""
    api_version: str | None = None
    """The version of Azure's API, such as `2024-10-21`: the endpoint is then asked as Azure OpenAI. `base_url` is
    `https://RESOURCE.openai.azure.com`, and `model` names the deployment. A `base_url` that ends in
    `/openai/deployments/NAME?api-version=VERSION` says the same."""
    organization: str | None = None
    """The organization at OpenAI that pays; by default the key's."""
    project: str | None = None
    """The project at OpenAI that pays; by default the key's."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key; an endpoint on loopback needs none."""
    temperature: float | None = Field(default=None, ge=0)
    """Sent with every request."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Sent with every request: the longest reply."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Sent with every request."""
    response_format: ResponseFormat | None = None
    """How the endpoint is told the schema if the answer format is `schema`: as OpenAI is (`json_schema`, the default), as
    llama.cpp's Python server is (`json_object_schema`), or only to write a JSON object, if it knows no schemas
    (`json_object`)."""
    connect_timeout_seconds: float = Field(default=10.0, gt=0)
    """The longest time to connect, in seconds."""
    timeout_seconds: float = Field(default=120.0, gt=0)
    """The longest time for the whole reply, in seconds, from connecting to its last byte."""
    concurrency: int = Field(default=1, ge=1)
    """Calls in flight at the endpoint at a time. Models that share an endpoint share this bound."""
    usage: Literal["required", "optional"] = "required"
    """Whether an endpoint that reports no token counts is refused before the run."""
    price_in: Price | None = None
    """Dollars per million tokens read. Without both prices the cost is unknown, never 0."""
    price_out: Price | None = None
    """Dollars per million tokens written."""
    price_cached: Price | None = None
    """Dollars per million of the tokens read that the provider says its prompt cache held; by default `price_in`."""
    weights: str | None = None
    """The digest of the weights' file, if you serve them yourself. It is recorded but not checked, since no endpoint tells
    it."""
    extra_body: Annotated[BoundedTable[str, Any] | None, AfterValidator(check_extra_body)] = None
    """Further fields of every request, as the provider names them."""
    omit: Annotated[Many[str], AfterValidator(check_omitted)] = ()
    """Fields left out of every request, for an endpoint that refuses them: of the request (`seed`, or an agent's own such as
    `parallel_tool_calls`), of its messages and of their tool calls (`reasoning_content`)."""

    @model_validator(mode="after")
    def _refuse_two_versions(self) -> OpenAISettings:
        """Raise ValueError if both `api_version` and `base_url` name a version of Azure's API."""
        if self.api_version is not None and API_VERSION in self.address.query:
            raise ValueError(f"api_version and the query of base_url both name a version; leave out {API_VERSION} there")
        return self

    @property
    def address(self) -> EndpointAddress:
        """`base_url` with its query, whose values the text of `base_url` does not show."""
        return EndpointAddress(self.base_url)


def is_loopback(url: str) -> bool:
    """Return whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_key_in(name: str, settings: OpenAISettings) -> None:
    """Raise ConfigError if a setting holds the key: settings are recorded with every run."""
    key = os.environ.get(settings.api_key_env, "").strip()
    for field, value in settings.model_dump(mode="json", exclude={"api_key_env"}).items():
        text = json.dumps(value, ensure_ascii=False)
        if len(key) >= MIN_KEY_CHARS and blot(text, key) != text:
            problem = f"model '{name}': {field} holds the key of {settings.api_key_env}, and is written down with every run"
            raise ConfigError(f"{problem}; take it out: the key is sent by itself")


def key_of(settings: OpenAISettings) -> str:
    """Return the API key; "" if an endpoint on loopback needs none. Raises EndpointError, which names the variable and never
    its value."""
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key and not settings.address.secrets and not is_loopback(settings.base_url):
        raise EndpointError(f"no key for {settings.base_url}: set the environment variable {settings.api_key_env}")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EndpointError(f"the key in {settings.api_key_env} holds characters that no key has: copy it again")
    return key


def account_of(settings: OpenAISettings) -> str:
    """Return a text that identifies the account at an address: the name of the key's variable, and a short digest of the key
    and of the secrets in the address; "" without a key and secrets."""
    key = os.environ.get(settings.api_key_env, "").strip()
    secrets = settings.address.secrets
    name = settings.api_key_env if key else "base_url"
    return f"{name} {_short_digest(chr(0).join((key, *secrets)), settings.address.path)}" if key or secrets else ""


@lru_cache(maxsize=64)
def _short_digest(secret: str, address: str) -> str:
    """Return a digest of a secret. It is slow to compute, and too short to find the secret by."""
    return hashlib.scrypt(secret.encode(), salt=address.encode(), n=2**14, r=8, p=1, dklen=3).hex()
