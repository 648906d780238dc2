"""OpenAI's own client, as a config sets it: its address, its credentials and its headers, and nothing of the environment."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from scripted_server import Received, ScriptedServer, completion

from bench.record.messages import Message
from bench.run.models.base import Request, RequestContext
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings

KEY = "sk-very-secret-0123456789"
REQUEST = Request((Message("user", "Hello"),), 41, RequestContext("pack", ("triage",), 0, 1))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def model(url: str, **settings: Any) -> OpenAIModel:
    return OpenAIModel("small", OpenAISettings(base_url=url, **settings))


def received(server: ScriptedServer, url: str, **settings: Any) -> Received:
    """The one request that a reply takes."""

    async def ask() -> None:
        asked = model(url, **settings)
        try:
            await asked.reply(REQUEST, asyncio.sleep)
        finally:
            await asked.close()

    asyncio.run(ask())
    [request] = server.requests
    return request


def test_the_client_says_that_it_is_openais() -> None:
    with ScriptedServer() as server:
        request = received(server, server.base_url)
    assert request.headers["x-stainless-lang"] == "python"
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_the_organization_and_the_project_of_the_config_are_sent() -> None:
    with ScriptedServer() as server:
        headers = received(server, server.base_url, organization="org-1", project="proj-1").headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")


@pytest.mark.parametrize("settings", [{}, {"api_version": "2024-10-21"}])
def test_what_the_environment_tells_openais_client_is_not_sent(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ambient = {
        "OPENAI_ORG_ID": "org-of-another",
        "OPENAI_PROJECT_ID": "project-of-another",
        "OPENAI_CUSTOM_HEADERS": "x-of-another: 1",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_VERSION": "2020-01-01",
        "AZURE_OPENAI_API_KEY": "key-of-another",
        "AZURE_OPENAI_AD_TOKEN": "token-of-another",
        "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9",
    }
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    path = "/openai/deployments/small/chat/completions?api-version=2024-10-21" if settings else "/v1/chat/completions"
    with ScriptedServer(path=path) as server:
        request = received(server, server.base_url.removesuffix("/v1") if settings else server.base_url, **settings)
    assert not [header for header in request.headers.values() if "another" in header or "2020" in header]
    assert not {"openai-organization", "openai-project", "x-of-another"} & request.headers.keys()


def test_azure_is_asked_for_the_deployment_with_its_own_header_for_the_key() -> None:
    path = "/openai/deployments/gpt%204%2Feu/chat/completions?api-version=2024-10-21"
    with ScriptedServer(path=path) as server:
        url = server.base_url.removesuffix("/v1")
        request = received(server, url, model="gpt 4/eu", api_version="2024-10-21")
    assert (request.headers["api-key"], "authorization" in request.headers) == (KEY, False)
    assert request.body["messages"] == [{"role": "user", "content": "Hello"}]


def test_who_is_asked_stands_among_the_parameters_where_the_config_says_it() -> None:
    url = "http://127.0.0.1:9/v1"
    assert not {"organization", "project", "api_version"} & model(url).parameters.keys()
    given = {"organization": "org-1", "project": "proj-1", "api_version": "2024-10-21"}
    assert given.items() <= model(url, **given).parameters.items()


def test_cookies_of_an_endpoint_are_not_sent_back() -> None:
    async def ask(url: str) -> None:
        asked = model(url)
        for _ in range(2):
            await asked.reply(REQUEST, asyncio.sleep)
        await asked.close()

    step = replace(completion("hi"), headers={"Set-Cookie": "a=b; Path=/"})
    with ScriptedServer([step, step]) as server:
        asyncio.run(ask(server.base_url))
    assert ["cookie" in request.headers for request in server.requests] == [False, False]
