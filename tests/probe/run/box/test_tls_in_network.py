"""TLS is ended in a box for the hosts that the owner named, by clients of many languages that verify, and for no others."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install 'recovery-bench[probe]'")

from bench.probe.run.box.authority import Authority
from bench.probe.run.gateway.subject import McpConfig, McpServer, ModelSource, ProbedAgent, Service, Subject
from tests.probe.run.box.test_agent_in_network import Shop, agent_of, agent_runs, printed

HOST = "shop.example"
CLIENTS = {
    "urllib": "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], b'{}').status)",
    "requests": "import sys, requests\nprint(requests.post(sys.argv[1], json={}).status_code)",
    "httpx2": "import sys, httpx2\nprint(httpx2.post(sys.argv[1], json={}).status_code)",
    "aiohttp": """
import aiohttp, asyncio, sys
async def post():
    async with aiohttp.ClientSession() as session, session.post(sys.argv[1], json={}) as answer:
        print(answer.status)
asyncio.run(post())
""",
    "certifi": """
import certifi, ssl, sys, urllib.request
context = ssl.create_default_context(cafile=certifi.where())
print(urllib.request.urlopen(sys.argv[1], b"{}", context=context).status)
""",
    "node": "const answer = await fetch(process.argv[2], {method: 'POST', body: '{}'}); console.log(answer.status)",
    "curl": "",
    "java": """
import java.net.*; import java.net.http.*;
class Post {
    public static void main(String[] words) throws Exception {
        var asked = HttpRequest.newBuilder(URI.create(words[0])).POST(HttpRequest.BodyPublishers.ofString("{}")).build();
        System.out.println(HttpClient.newHttpClient().send(asked, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
""",
}
PINNED = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cadata=open(sys.argv[2]).read())
try:
    urllib.request.urlopen(sys.argv[1], b"{}", context=context)
except OSError as error:
    print("CERTIFICATE_VERIFY_FAILED" in str(error))
"""
HTTP2_ALONE = """
import socket, ssl, sys
from urllib.parse import urlsplit
place = urlsplit(sys.argv[1])
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
try:
    context.wrap_socket(socket.create_connection((place.hostname, place.port)), server_hostname=place.hostname)
    print("a handshake")
except OSError as error:
    print("refused")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (made := tmp_path / "agent").mkdir()
    return made


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, list[str]]]:
    """A real shop of the outside with a certificate of its own authority. Yield its port, and the paths that were asked for."""
    authority, asked, real = Authority(), list[str](), socket.getaddrinfo
    (tmp_path / "real.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "real.pem"))

    def resolved(host: str, *more: Any, **named: Any) -> Any:
        return real("127.0.0.1" if host == HOST else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with serving(asked, authority.context(HOST)) as port:
        yield port, asked


@contextmanager
def serving(asked: list[str], tls: ssl.SSLContext) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("TlsShop", (Shop,), {"paths": asked})) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def client(folder: Path, name: str, url: str) -> ProbedAgent:
    """Return an agent that posts to a URL which stands in no variable."""
    agent, code = agent_of(folder), CLIENTS[name]
    if name in ("node", "curl", "java"):
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
        file = folder / {"node": "post.mjs", "java": "Post.java"}.get(name, "post")
        file.write_text(code)
        curl = ["--silent", "--show-error", "-o", "/dev/null", "-w", "%{http_code}\\n", "-d", "{}"]
        words = [name, *(curl if name == "curl" else [str(file)]), url]
    else:
        if not find_spec(name):
            pytest.skip(f"{name} is not installed")
        words = [sys.executable, "-c", code, url]
    return ProbedAgent(tuple(words), tuple(words), folder, limit=agent.limit)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name == "java" else name for name in CLIENTS])
def test_a_call_over_tls_to_a_named_host_passes_through_the_gateway(
    folder: Path, shop: tuple[int, list[str]], name: str
) -> None:
    port, asked = shop
    url = f"https://{HOST}:{port}"
    subject = Subject("a", client(folder, name, f"{url}/pay"), services=(Service("shop", "SHOP", url),), settle=0.02)
    [agent_run] = agent_runs(subject, folder)
    assert printed(agent_run)[-1] == "200", printed(agent_run)
    assert [(call.door, call.tool, call.failed) for call in agent_run.calls] == [("shop", "POST /pay", False)]
    assert asked == ["/pay"] and not agent_run.refused


@pytest.mark.parametrize(
    ("code", "says", "why"),
    [
        (PINNED, "True", "its client trusts fixed certificates alone: a pin, or roots that are compiled in"),
        (HTTP2_ALONE, "refused", "its client speaks h2 alone, as gRPC does"),
    ],
    ids=["pinned", "http2"],
)
def test_a_client_that_cannot_be_served_is_refused_by_name_and_nothing_is_sent(
    folder: Path, shop: tuple[int, list[str]], code: str, says: str, why: str
) -> None:
    port, asked = shop
    url, pin = f"https://{HOST}:{port}", folder / "pin.pem"
    pin.write_bytes((folder.parent / "real.pem").read_bytes())
    words = (sys.executable, "-c", code, f"{url}/pay", str(pin))
    agent_of(folder)
    subject = Subject("a", ProbedAgent(words, words, folder, limit=30.0), services=(Service("shop", "", url),), settle=0.02)
    [agent_run] = agent_runs(subject, folder)
    assert printed(agent_run) == [says] and not asked and not agent_run.calls
    assert agent_run.refused == (f"{HOST}:{port}",)
    line = f"the agent reached for {HOST}:{port}, and was refused: {why}; if it may be used for real, unread: remote"
    assert any(line in str(getattr(each, "what", "")) for each in agent_run.lives)


def test_a_server_whose_certificate_is_false_gets_nothing(folder: Path, shop: Any) -> None:
    del shop  # the name leads to loopback, and its authority is trusted
    asked = list[str]()
    with serving(asked, Authority().context(HOST)) as port:
        url = f"https://{HOST}:{port}"
        subject = Subject("a", client(folder, "urllib", f"{url}/pay"), services=(Service("shop", "", url),), settle=0.02)
        [agent_run] = agent_runs(subject, folder)
    assert agent_run.code != 0 and not asked
    assert any("cannot be reached: SSLCertVerificationError" in str(getattr(each, "what", "")) for each in agent_run.lives)


def test_an_mcp_server_by_url_is_found_at_its_own_address(folder: Path, shop: tuple[int, list[str]]) -> None:
    port, asked = shop
    url = f"https://{HOST}:{port}/mcp"
    config = folder / ".mcp.json"
    config.write_text(json.dumps({"mcpServers": {"bank": {"url": url}}}))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pay", "arguments": {}}}
    code = (
        "import json, sys, urllib.request as u; url = json.load(open('.mcp.json'))['mcpServers']['bank']['url']; print(url);"
        f"u.urlopen(u.Request(url, {json.dumps(call).encode()!r}, {{'Content-Type': 'application/json'}}))"
    )
    agent_of(folder)
    words = (sys.executable, "-c", code)
    agent = ProbedAgent(words, words, folder, limit=30.0)
    [agent_run] = agent_runs(Subject("a", agent, (McpConfig(config, (McpServer("bank", url=url),)),), settle=0.02), folder)
    assert printed(agent_run)[0] == url and asked == ["/mcp"]
    assert [(call.door, call.tool) for call in agent_run.calls] == [("bank", "pay")]


def test_a_script_stands_for_the_provider_that_the_code_names(folder: Path) -> None:
    asks = """
import json, urllib.request
asked = {"model": "m", "messages": [{"role": "user", "content": "pay 30"}]}
request = urllib.request.Request("https://api.openai.com/v1/chat/completions", json.dumps(asked).encode())
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""
    agent_of(folder)
    script = (sys.executable, str(Path(__file__).parents[3] / "support" / "desk_service.py"), "model", "{port}")
    model = ModelSource(script=script, stands_for="https://api.openai.com/v1")
    words = (sys.executable, "-c", asks)
    [agent_run] = agent_runs(Subject("a", ProbedAgent(words, words, folder, limit=30.0), model=model, settle=0.02), folder)
    assert printed(agent_run) == ["pay 30"] and [call.door for call in agent_run.calls] == ["model"]


def test_a_host_that_is_allowed_is_a_door_of_its_own(
    folder: Path, shop: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, asked = shop
    opened = asyncio.open_connection
    monkeypatch.setattr(asyncio, "open_connection", lambda host, at, **more: opened(host, {443: port}.get(at, at), **more))
    subject = Subject("a", client(folder, "urllib", f"https://{HOST}/pay"), hosts=(HOST,), settle=0.02)
    [agent_run] = agent_runs(subject, folder)
    assert [(call.door, call.tool) for call in agent_run.calls] == [(HOST, "POST /pay")] and asked == ["/pay"]
