"""OpenAI's client, or its form for Azure, made from a config: it knows addresses, credentials and headers.

The client retries nothing. The environment variables that it reads by default are hidden from it, since the config says all and
names the variable of the key (`api_key_env`). The client does not parse replies, since it would accept any JSON as a
completion: `bench.run.openai.replies` parses them.
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

from bench.run.openai.address import API_VERSION
from bench.run.openai.proxies import Proxy
from bench.run.openai.settings import OpenAISettings
from bench.run.openai.transport import ANSWER, RawAnswer, Transport

PATH = "/chat/completions"
DEPLOYMENTS = "/deployments/"
"""A part of each address that names one of Azure's deployments."""
CLIENT_VARIABLES = ("OPENAI_", "AZURE_OPENAI_")
"""The prefixes of the environment variables that OpenAI's client reads."""
NO_KEY = "none"
"""The key that is sent to an endpoint on loopback that needs none, since the client demands a key."""


class Client:
    """An OpenAI client that belongs to the event loop on which it was made, until it is closed. Raises EndpointError for an
    unusable proxy."""

    def __init__(self, settings: OpenAISettings, key: str, model: str):
        """Make the client: Azure's if the settings or the address give an API version, or else OpenAI's."""
        self._transport = Transport(settings)
        arguments: dict[str, Any] = {
            "api_key": key or NO_KEY,
            "organization": settings.organization,
            "project": settings.project,
            "max_retries": 0,
            "timeout": None,  # the caller limits the whole call
            "http_client": httpx2.AsyncClient(transport=self._transport, trust_env=False, timeout=None),
            "default_query": dict(settings.address.query),
        }
        address, names_deployment = settings.address.path, DEPLOYMENTS in settings.address.path
        version = settings.api_version or (settings.address.query.get(API_VERSION) if names_deployment else None)
        with _without_client_variables():
            if version is None:
                self._client: openai.AsyncOpenAI = openai.AsyncOpenAI(base_url=address, **arguments)
            else:
                address = address if names_deployment else f"{address}/openai/deployments/{quote(model, safe='')}"
                self._client = openai.AsyncAzureOpenAI(base_url=address, api_version=version, **arguments)

    @property
    def proxy(self) -> Proxy | None:
        """The proxy between this process and the endpoint."""
        return self._transport.proxy

    async def post(self, body: Mapping[str, object]) -> RawAnswer:
        """Send a request for one chat completion and return the answer. Raises what `Transport.handle_async_request` raises."""
        content = json.dumps(body).encode()  # encoded here, since the client cannot encode half a surrogate pair
        try:
            response = await self._client.post(PATH, content=content, cast_to=httpx2.Response)
        except openai.APIConnectionError as wrapped:
            failure = wrapped.__cause__ or wrapped
        else:
            answer: RawAnswer = response.extensions[ANSWER]
            return answer
        raise failure  # outside of the handler, where the exception would become its own context

    async def close(self) -> None:
        await self._client.close()


@contextmanager
def _without_client_variables() -> Iterator[None]:
    """Remove the environment variables that OpenAI's client reads while the block runs."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(CLIENT_VARIABLES)}
    try:
        yield
    finally:
        os.environ.update(hidden)
