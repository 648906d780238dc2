"""An address with a query: all of it is sent, and no secret of it is told."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scripted_server import ScriptedServer, Step, completion, status

from bench.common.errors import CallFailed
from bench.record.messages import Message
from bench.run.models.base import Reply, Request, RequestContext
from bench.run.openai.address import PUBLIC_PARAMETERS, EndpointAddress
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings, account_of

SECRET = "gateway-secret-0123456789"
REQUEST = Request((Message("user", "Hello"),), 41, RequestContext("pack", ("triage",), 0, 1))
NAMES = st.text("abcdeKEY-_.& =é", min_size=1, max_size=6)


def asked(server: ScriptedServer, query: str, path: str = "") -> Reply:
    async def ask() -> Reply:
        model = OpenAIModel("small", OpenAISettings(base_url=f"{server.base_url.removesuffix('/v1')}{path}?{query}"))
        try:
            return await model.reply(REQUEST, asyncio.sleep)
        finally:
            await model.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/openai/deployments/d", "api-version=2024-10-21"),
        ("/openai/deployments/d", f"api-version=2024-10-21&subscription-key={SECRET}"),
        ("/gateway/v1", f"key={SECRET}"),
        ("/v1", f"key={SECRET}&region=eu"),
        ("", "version=1"),
    ],
)
def test_the_endpoint_stands_between_the_path_and_the_query(path: str, query: str) -> None:
    with ScriptedServer(path=f"{path}/chat/completions?{query}") as server:
        assert asked(server, query, path).text == "OK"


def test_a_deployment_with_a_version_is_sent_the_key_as_azure_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    for path, header in (("/openai/deployments/d", "api-key"), ("/v1", "authorization")):
        with ScriptedServer(path=f"{path}/chat/completions?api-version=1") as server:
            asked(server, "api-version=1", path)
        [request] = server.requests
        assert [name for name in ("api-key", "authorization") if name in request.headers] == [header]


@pytest.mark.parametrize(
    "step", [status(401, body=f"bad key {SECRET}"), replace(status(302), headers={"Location": f"http://x/v1?key={SECRET}"})]
)
def test_no_failure_tells_the_secret(step: Step) -> None:
    with ScriptedServer([step], path=f"/v1/chat/completions?key={SECRET}") as server, pytest.raises(CallFailed) as caught:
        asked(server, f"key={SECRET}", "/v1")
    assert SECRET not in f"{caught.value} {vars(caught.value)}"


def test_no_reply_tells_the_secret() -> None:
    with ScriptedServer([completion(f"asked at ?key={SECRET}")], path=f"/v1/chat/completions?key={SECRET}") as server:
        assert asked(server, f"key={SECRET}", "/v1").text == "asked at ?key=***"


def test_what_is_told_and_written_down_has_the_names_and_the_version_alone() -> None:
    model = OpenAIModel("small", OpenAISettings(base_url=f"http://127.0.0.1:1/v1/?api-version=2&key={SECRET}"))
    assert model.parameters["base_url"] == model.endpoint == "http://127.0.0.1:1/v1?api-version=2&key=***"
    assert SECRET not in f"{model!r} {model.parameters} {model.settings!r} {model.settings.model_dump_json()}"
    travelled = pickle.loads(pickle.dumps(model.settings))
    assert travelled.address.query == {"api-version": "2", "key": SECRET}


@given(st.dictionaries(NAMES, st.text(min_size=1, max_size=20), max_size=4))
def test_any_query_is_kept_and_hidden(query: dict[str, str]) -> None:
    address = EndpointAddress(f"http://127.0.0.1:1/v1?{urlencode(query)}")
    assert address.query == query
    told = dict(parse_qsl(address.partition("?")[2]))
    assert told.keys() == query.keys() and {value for name, value in told.items() if name not in PUBLIC_PARAMETERS} <= {"***"}
    assert EndpointAddress(address) is address and pickle.loads(pickle.dumps(address)).query == query


def test_two_versions_or_two_values_are_refused() -> None:
    with pytest.raises(ValidationError, match="both name a version"):
        OpenAISettings(base_url="https://x.example/openai/deployments/d?api-version=1", api_version="2")
    with pytest.raises(ValidationError, match="a parameter of its query twice"):
        OpenAISettings(base_url="https://x.example/v1?key=a&key=b")


def test_an_address_with_a_key_in_its_query_needs_none_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = OpenAISettings(base_url=f"https://gateway.example/v1?key={SECRET}")
    assert account_of(settings).startswith("base_url ")


def test_an_account_is_told_by_its_key_and_by_where_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def account(key: str, url: str = "https://gateway.example/v1") -> str:
        monkeypatch.setenv("MY_KEY", key)
        told = account_of(OpenAISettings(base_url=url, api_key_env="MY_KEY"))
        assert not key or key not in told
        return told

    marks = {account("one-key-0123"), account("other-key-0123"), account("one-key-0123", "https://gateway.example/v1?key=a")}
    assert len(marks) == 3 and account("one-key-0123") in marks and account("") == ""
