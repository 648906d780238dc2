"""The key stands in nothing that is written or said, whatever the endpoint does with it."""

from __future__ import annotations

import base64
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from commands import UNDRAWN, bench, start, workplace
from outside_system import OutsideSystem
from proxies import ProxyServer
from scripted_server import ScriptedServer, Step, completion, raw, status

from bench.cli.main import main

KEY = "sk-Marked/0123456789+WXYZ"
LEAKS = (
    KEY,
    f"Bearer {KEY}",
    base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    base64.b64encode(f"user:{KEY}".encode()).decode(),
    f"{KEY[:9]}********{KEY[-4:]}",
    KEY.encode().hex(),
)
TOLD = "; ".join(LEAKS)
CONFIG = """
name = "marked"
scenarios = ["demo"]
architectures = ["static", "runtime_structured"]
models = ["live"]
plans = ["none"]
repetitions = 2
seed = 1
[model.live]
kind = "openai"
base_url = "{url}"
"""


def marks(text: str) -> list[str]:
    return [leak for leak in (*LEAKS, KEY[:9], KEY[-4:]) if leak in text]


@pytest.mark.usefixtures("undrawn")
def test_a_marked_key_is_in_nothing_that_run_report_trace_and_serve_write_or_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = workplace(tmp_path)
    reference = json.loads((tmp_path / "scenarios" / "demo" / "reference" / "answer.json").read_text())
    at_once = {"Retry-After": "0"}
    failures = [status(code, body=json.dumps({"error": {"message": TOLD}}), headers=at_once) for code in (429, 500)]
    failures.append(raw(f"<{TOLD}>"))
    number = 0

    def answer(_: Any) -> Step:
        nonlocal number
        number += 1
        if number % 4 == 3 and failures:
            return failures.pop()
        return completion(f"{TOLD}\n{json.dumps(reference)}\n{TOLD}", finish=f"stop {TOLD}" if number == 2 else "stop")

    texts = list[str]()
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    with ScriptedServer(answer) as server:
        config.write_text(CONFIG.format(url=server.base_url))
        keyed = {"OPENAI_API_KEY": KEY}
        code, *words = bench(tmp_path, "run", str(config), "--name", "marked", **keyed)
        assert code == 0
        texts += words
        served = (
            "serve",
            str(config),
            "--port",
            str(port),
            "--name",
            "served",
            "--no-token",
            "--scenario",
            "demo",
            "--repetitions",
            "1",
        )
        with start(tmp_path, *served, **keyed) as process, httpx2.Client(trust_env=False, timeout=60) as client:
            process.wait_until_said("Ctrl-C stops")
            outside = OutsideSystem(f"http://127.0.0.1:{port}", client)
            outputs = outside.solve()
            texts += [json.dumps(outputs), outside.post("/trial/answer", outputs).text]
            assert outside.status_of("/trial") == 410
            texts += map(str, process.ended())
    assert any(f"Bearer {KEY}" == request.headers["authorization"] for request in server.requests), "the endpoint had the key"
    monkeypatch.chdir(tmp_path)
    for command in (["report", "marked"], ["trace", "marked", "retry.rca.static-to-monolithic"]):
        monkeypatch.setattr("sys.argv", ["bench", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    texts += capsys.readouterr()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"***" in path.read_bytes() for path in files), "its words are kept, without the key"
    assert (
        len(files) > 30 and {path.name: result for path in files if (result := marks(path.read_text(errors="replace")))} == {}
    )
    assert marks("\n".join(texts)) == []


PASSWORD = "Marked/proxy:password+0123"


def test_a_proxys_password_is_in_nothing_that_a_run_writes_or_says(tmp_path: Path) -> None:
    """A run through a proxy that asks for one, whose endpoint repeats it; and one that is refused with the wrong one."""
    config = workplace(tmp_path)
    config.write_text(CONFIG.format(url="http://model.example/v1"))
    reference = (tmp_path / "scenarios" / "demo" / "reference" / "answer.json").read_text()
    with ScriptedServer(lambda _: completion(f"{PASSWORD}\n{reference}")) as server:
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        with ProxyServer(port) as proxy, ProxyServer(answer=b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as other:
            named = [address.url.replace("://", f"://clerk:{quote(PASSWORD, safe='')}@") for address in (proxy, other)]
            run = ("run", str(config), "--report")
            code, *screens = bench(tmp_path, *run, OPENAI_API_KEY=KEY, HTTP_PROXY=named[0], **UNDRAWN)
            refused = bench(tmp_path, *run, "--name", "other", OPENAI_API_KEY=KEY, HTTP_PROXY=named[1], **UNDRAWN)
    assert code == 0 and len(server.requests) > 4 and len(proxy.heads) == len(server.requests)
    assert refused[0] == 2 and "asks for a name and a password" in " ".join(refused[2].split())
    credentials = base64.b64encode(f"clerk:{PASSWORD}".encode()).decode()
    assert all(f"Proxy-Authorization: Basic {credentials}" in head for head in proxy.heads)
    written = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    for secret in (PASSWORD, quote(PASSWORD, safe=""), credentials):
        assert not any(secret in text for text in (*written, *screens, refused[1], refused[2]))
    assert any("***" in text for text in written), "the reply is kept, without it"
