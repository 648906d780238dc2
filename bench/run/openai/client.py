"""OpenAI's client, or its form for Azure, made from a config: it knows addresses, credentials and headers.

It retries nothing. The environment variables that it reads are hidden from it: the config says all, and names the variable of
the key (`api_key_env`). It does not parse replies, since it would take any JSON for a completion: `bench.run.openai.replies`
parses them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx2
import openai

from bench.run.openai.address import VERSION
from bench.run.openai.proxies import Proxy
from bench.run.openai.settings import OpenAISettings
from bench.run.openai.transport import ANSWER, RawAnswer, Transport

PATH = "/chat/completions"
DEPLOYMENTS = "/deployments/"
"""Stands in the path of an address that names one of Azure's deployments."""
AMBIENT = ("OPENAI_", "AZURE_OPENAI_")
"""The prefixes of the variables that OpenAI's client reads."""
NO_KEY = "none"
"""Sent if an endpoint on loopback needs no key: the client demands one."""


class Client:
    """An OpenAI client that belongs to the event loop on which it was made, until it is closed. Raises EndpointError for an
    unusable proxy."""

    def __init__(self, settings: OpenAISettings, key: str, model: str):
        self._transport = Transport(settings)
        given: dict[str, Any] = {
            "api_key": key or NO_KEY,
            "organization": settings.organization,
            "project": settings.project,
            "max_retries": 0,
            "timeout": None,  # the caller limits the whole call
            "http_client": httpx2.AsyncClient(transport=self._transport, trust_env=False, timeout=None),
            "default_query": dict(settings.address.query),
        }
        address, named = settings.address.path, DEPLOYMENTS in settings.address.path
        version = settings.api_version or (settings.address.query.get(VERSION) if named else None)
        with _no_ambient_settings():
            if version is None:
                self._client: openai.AsyncOpenAI = openai.AsyncOpenAI(base_url=address, **given)
            else:
                address = address if named else f"{address}/openai/deployments/{quote(model, safe='')}"
                self._client = openai.AsyncAzureOpenAI(base_url=address, api_version=version, **given)

    @property
    def proxy(self) -> Proxy | None:
        """The proxy between this process and the endpoint."""
        return self._transport.proxy

    async def post(self, body: Mapping[str, object]) -> RawAnswer:
        """Send a request for one chat completion and return the answer. Raises what `Transport.handle_async_request` raises."""
        sent = json.dumps(body).encode()  # encoded here: the client cannot send half a surrogate pair
        try:
            response = await self._client.post(PATH, content=sent, cast_to=httpx2.Response)
        except openai.APIConnectionError as wrapped:
            failure = wrapped.__cause__ or wrapped
        else:
            answer: RawAnswer = response.extensions[ANSWER]
            return answer
        raise failure  # not within the handler: it would become its own context

    async def close(self) -> None:
        await self._client.close()


@contextmanager
def _no_ambient_settings() -> Iterator[None]:
    """Hide the variables that OpenAI's client reads while the block runs."""
    ambient = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(AMBIENT)}
    try:
        yield
    finally:
        os.environ.update(ambient)
