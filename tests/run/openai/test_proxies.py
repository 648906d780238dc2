"""Calls through a proxy, as the environment names it. The proxies are real ones, on loopback."""

from __future__ import annotations

import asyncio
import gc
import re
import shutil
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proxies import ProxyServer
from scripted_server import ScriptedServer, Step, completion, raw

from bench.common.errors import BadAnswer, CallFailed, EndpointError, RateLimited, ServerFailed, Unreachable
from bench.record.messages import Message
from bench.run.models.base import Reply, Request, RequestContext
from bench.run.openai.model import OpenAIModel
from bench.run.openai.proxies import ADDRESS_FORM, Proxy, proxy_to
from bench.run.openai.settings import OpenAISettings
from bench.run.openai.timed_sockets import TimedSocket

KEY = "sk-of-the-endpoint-0123456789"
REQUEST = Request((Message("user", "Hello"),), 41, RequestContext("pack", ("triage",), 0, 1))
PLAIN, SECURE = "http://model.example/v1", "https://model.example/v1"
PASSWORD = "p@ss:w/rd-of-the-proxy"
SPOKEN = "its address must begin with http:// or https://: SOCKS is not spoken here"
QUOTED = "p%40ss%3Aw%2Frd-of-the-proxy"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `cert` and `key`, for model.example and for this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("certificate")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=model.example", "-addext", "subjectAltName=DNS:model.example,IP:127.0.0.1"]
    subprocess.run([*made, *names, "-keyout", "key", "-out", "cert"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side of an encryption that this process's clients trust."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    return context


def ask(url: str, times: int = 1, **settings: Any) -> list[Reply]:
    async def work() -> list[Reply]:
        model = OpenAIModel("small", OpenAISettings(base_url=url, **settings))
        try:
            return [await model.reply(REQUEST, asyncio.sleep) for _ in range(times)]
        finally:
            await model.close()

    return asyncio.run(work())


def prepare(url: str) -> str:
    """The line with which an endpoint is refused."""
    model = OpenAIModel("small", OpenAISettings(base_url=url))

    async def work() -> None:
        try:
            await model.prepare()
        finally:
            await model.close()

    with pytest.raises(EndpointError) as caught:
        asyncio.run(work())
    line = str(caught.value)
    assert "\n" not in line and PASSWORD not in line and QUOTED not in line
    return line


def failed(url: str, **settings: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        ask(url, **settings)
    return caught.value


def port_of(server: ScriptedServer) -> int:
    return urlsplit(server.base_url).port or 0


def with_password(url: str) -> str:
    return url.replace("://", f"://clerk:{QUOTED}@")


# -- which proxy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "variables", "address"),
    [
        (PLAIN, {}, None),
        (PLAIN, {"HTTP_PROXY": "http://corner:3128"}, "http://corner:3128"),
        (PLAIN, {"http_proxy": "http://corner:3128/"}, "http://corner:3128"),
        (PLAIN, {"HTTP_PROXY": "corner:3128"}, "http://corner:3128"),
        (PLAIN, {"HTTP_PROXY": "https://[fd00::1]:8443"}, "https://[fd00::1]:8443"),
        (PLAIN, {"HTTPS_PROXY": "http://corner:3128"}, None),
        (SECURE, {"HTTPS_PROXY": "http://corner", "ALL_PROXY": "socks5://other:1080"}, "http://corner"),
        (SECURE, {"ALL_PROXY": "http://other:1"}, "http://other:1"),
        (SECURE, {"HTTPS_PROXY": ""}, None),
        (SECURE, {"HTTPS_PROXY": "http://corner:1", "NO_PROXY": "other,model.example"}, None),
        (SECURE, {"HTTPS_PROXY": "http://corner:1", "NO_PROXY": ".example"}, None),
        (SECURE, {"HTTPS_PROXY": "http://corner:1", "no_proxy": "*"}, None),
        (SECURE, {"HTTPS_PROXY": "http://corner:1", "NO_PROXY": "model.example:444, other"}, "http://corner:1"),
        ("http://10.1.2.3:8000/v1", {"ALL_PROXY": "http://corner:1", "NO_PROXY": "a/b, 10.0.0.0/8"}, None),
        ("http://10.1.2.3:8000/v1", {"ALL_PROXY": "http://corner:1", "NO_PROXY": "10.2.0.0/16"}, "http://corner:1"),
        ("http://model.example/v1", {"ALL_PROXY": "http://corner:1", "NO_PROXY": "10.2.0.0/16"}, "http://corner:1"),
        ("http://127.0.0.1:8080/v1", {"ALL_PROXY": "http://corner:1", "HTTP_PROXY": "socks5://other"}, None),
        ("http://localhost:8080/v1", {"HTTP_PROXY": "http://corner:1"}, None),
        ("http://[::1]:8080/v1", {"HTTP_PROXY": "http://corner:1"}, None),
    ],
)
def test_the_environment_names_the_proxy_and_none_leads_to_this_machine(
    url: str, variables: dict[str, str], address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_to(url)
    assert (proxy and proxy.address) == address


def test_a_proxys_name_and_password_are_told_it_alone_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", with_password("http://corner:3128"))
    authorization = f"Basic {b64encode(f'clerk:{PASSWORD}'.encode()).decode()}"
    proxy = proxy_to(PLAIN)
    assert proxy == Proxy("HTTP_PROXY", "http://corner:3128", PASSWORD, authorization)
    assert PASSWORD not in repr(proxy) and authorization not in repr(proxy)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("socks5://clerk:{}@corner:1080", SPOKEN),
        ("ftp://clerk:{}@corner", SPOKEN),
        ("clerk://{}@corner", SPOKEN),
        ("http://clerk:{}@corner:port", ADDRESS_FORM),
        ("http://clerk:{}@corner:99999", ADDRESS_FORM),
        ("http://clerk:{}@", ADDRESS_FORM),
        ("http://clerk:12/{}@corner", ADDRESS_FORM),
        ("http://clerk:{}@[corner", ADDRESS_FORM),
        ("http://clerk:{}@corner\u2100", ADDRESS_FORM),
    ],
)
@pytest.mark.parametrize("password", [QUOTED, "secret-in-a-proxy"])
def test_a_proxy_that_cannot_be_used_is_one_line_without_its_password(
    named: str, words: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", named.format(password))
    line = prepare(SECURE)
    assert line.startswith(f"HTTPS_PROXY names no proxy that can be used: {words}; or name")
    assert password not in line and line.endswith("or name model.example in NO_PROXY, if no proxy is needed")


WORDS = st.sampled_from(
    ["http://", "https://", "socks5://", "u:p", "@", "corner", ":", "3128", "[", "::1", "]", "/", "#", "%", "é"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=3)).map("".join), st.booleans())
def test_whatever_a_variable_holds_it_is_a_proxy_or_none_or_one_line(
    monkeypatch: pytest.MonkeyPatch, text: str, is_exception: bool
) -> None:
    with monkeypatch.context() as set_here:
        set_here.setenv("NO_PROXY" if is_exception else "HTTP_PROXY", text)
        if is_exception:
            set_here.setenv("HTTP_PROXY", "corner")
        try:
            proxy = proxy_to("http://10.1.2.3:8000/v1")
        except EndpointError as error:
            assert not is_exception and str(error).startswith("HTTP_PROXY names no proxy that can be used: its address must")
        else:
            assert proxy is None or re.fullmatch(r"https?://[^@/?#]+", proxy.address)


# -- through a proxy ---------------------------------------------------------------------------------------------------


def test_a_proxy_without_a_password_is_told_none_and_never_the_key_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer() as server, ProxyServer(port_of(server)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        ask(PLAIN)
    assert "proxy-authorization" not in proxy.heads[0].lower()


def test_a_plain_call_goes_through_the_proxy_which_is_told_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer() as server, ProxyServer(port_of(server)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", with_password(proxy.url))
        replies = ask(PLAIN, times=2)
    assert [reply.text for reply in replies] == ["OK", "OK"]
    assert all(reply.flight for reply in replies), "its seconds are those of the connection"
    (head, _) = proxy.heads
    assert head.startswith("POST http://model.example/v1/chat/completions HTTP/1.1\r\n")
    assert f"proxy-authorization: basic {b64encode(f'clerk:{PASSWORD}'.encode()).decode()}".lower() in head.lower()
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {KEY}"] * 2
    assert all("proxy-authorization" not in request.headers for request in server.requests)


@pytest.mark.parametrize("with_word", [False, True])
def test_of_an_encrypted_call_the_proxy_sees_the_host_and_neither_key_nor_words(
    with_word: bool, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(tls=tls) as server, ProxyServer(port_of(server)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", with_password(proxy.url) if with_word else proxy.url)
        (reply,) = ask(SECURE)
    assert reply.text == "OK" and reply.flight
    (head,) = proxy.heads
    assert head.startswith("CONNECT model.example:443 HTTP/1.1\r\n") and "Bearer" not in head and KEY not in head
    assert head.count("Basic ") == with_word
    (received,) = server.requests
    assert received.headers["authorization"] == f"Bearer {KEY}" and "proxy-authorization" not in received.headers


@pytest.mark.parametrize("url", [PLAIN, SECURE])
def test_the_way_to_the_proxy_may_be_encrypted_itself(url: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(tls=tls if url == SECURE else None) as server, ProxyServer(port_of(server), tls=tls) as proxy:
        monkeypatch.setenv("ALL_PROXY", with_password(proxy.url))
        assert ask(url)[0].text == "OK"
    assert len(proxy.heads) == len(server.requests) == 1


@pytest.mark.parametrize("way", ["direct", "through a proxy", "through an encrypted proxy"])
def test_a_closed_model_leaves_no_encrypted_connection_open(
    way: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def left_open(url: str) -> list[TimedSocket]:
        model = OpenAIModel("small", OpenAISettings(base_url=url))
        await model.reply(REQUEST, asyncio.sleep)
        await model.close()
        return [made for made in gc.get_objects() if isinstance(made, TimedSocket) and made.fileno() >= 0]

    with (
        ScriptedServer(tls=tls) as server,
        ProxyServer(port_of(server), tls=tls if "encrypted" in way else None) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert asyncio.run(left_open(SECURE if "proxy" in way else f"https://127.0.0.1:{port_of(server)}/v1")) == []


def test_a_netrc_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login clerk password other\ndefault login clerk password other\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with ScriptedServer() as server:
        ask(server.base_url)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


# -- a proxy that does not do its work ---------------------------------------------------------------------------------

PAGE = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: 26\r\nConnection: close\r\n\r\n<html>No clerk here</html>"
ANSWERS = {
    "asks": PAGE % b"407 Proxy Authentication Required",
    "refuses": PAGE % b"403 Forbidden",
    "is busy": PAGE % b"429 Too Many Requests",
    "fails": PAGE % b"502 Bad Gateway",
    "closes": b"",
    "babbles": b"220 smtp.example ready\r\n\r\n",
}


@pytest.mark.parametrize(
    ("does", "url", "kind", "words"),
    [
        ("asks", PLAIN, BadAnswer, "the proxy asks for a name and a password"),
        ("asks", SECURE, BadAnswer, "the proxy asks for a name and a password"),
        ("refuses", PLAIN, BadAnswer, "HTTP 403"),
        ("refuses", SECURE, BadAnswer, "the proxy refuses the way to the endpoint: HTTP 403"),
        ("is busy", SECURE, RateLimited, "the proxy refuses the way to the endpoint: HTTP 429"),
        ("fails", PLAIN, ServerFailed, "HTTP 502: <html>No clerk here</html>"),
        ("fails", SECURE, Unreachable, "the proxy finds no way to the endpoint: HTTP 502"),
        ("closes", PLAIN, Unreachable, "the connection ended before any answer came"),
        ("closes", SECURE, Unreachable, "the connection ended before any answer came"),
        ("babbles", PLAIN, Unreachable, "the connection ended before any answer came"),
        ("babbles", SECURE, Unreachable, "the connection ended before any answer came"),
    ],
)
def test_what_a_proxy_says_in_the_endpoints_place_is_a_failure_with_a_name(
    does: str, url: str, kind: type[CallFailed], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProxyServer(answer=ANSWERS[does]) as proxy:
        monkeypatch.setenv("ALL_PROXY", with_password(proxy.url))
        failure = failed(url)
    assert type(failure) is kind and failure.detail.startswith(words)
    assert not failure.paid, "nobody read the prompt"
    assert "ALL_PROXY" in failure.advice
    assert len(proxy.heads) == 1, "a call is one request"


def test_a_proxy_that_is_not_there_is_told_from_an_endpoint_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProxyServer() as proxy:
        gone = proxy.url
    monkeypatch.setenv("HTTP_PROXY", with_password(gone))
    assert re.search(r"no connection to the proxy \(\w+\); check HTTP_PROXY", prepare(PLAIN))
    assert type(failed(PLAIN)) is Unreachable


def test_a_proxy_that_never_opens_the_way_is_waited_for_as_for_any_connection_and_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ProxyServer(mute=True) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        failure = failed(SECURE, connect_timeout_seconds=0.2, timeout_seconds=20)
    assert type(failure) is Unreachable and not failure.paid


def test_a_proxys_password_is_blotted_out_of_what_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: Iterator[Step] = iter([completion(f"you are clerk:{PASSWORD}"), raw(f"no entry for {PASSWORD}", code=500)])
    with ScriptedServer(lambda _: next(steps)) as server, ProxyServer(port_of(server)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", with_password(proxy.url))
        assert ask(PLAIN)[0].text == "you are clerk:***"
        assert failed(PLAIN).detail == "HTTP 500: no entry for ***"
