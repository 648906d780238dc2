"""An agent in a box, run whole: its calls pass through the gateway wherever its code sends them, and reach nothing else."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from till import desk

from bench.common.errors import ConfigError
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.clean import objection
from bench.probe.run.gateway.subject import OwnersCheck, ProbedAgent, Service, Subject
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores

POSTS = """
import json, sqlite3, sys, urllib.request
for url in sys.argv[1:]:
    asked = urllib.request.Request(url, json.dumps({"amount": 30}).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            print(answer.status)
    except OSError as error:
        print(error)
"""


class Shop(BaseHTTPRequestHandler):
    """A real service of the outside, which counts what it gets."""

    protocol_version = "HTTP/1.1"
    paths: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def real_shop() -> Iterator[tuple[int, list[str]]]:
    """Serve on loopback, and return the port and the paths that were asked for."""
    paths = list[str]()
    with ThreadingHTTPServer(("127.0.0.1", 0), type("OneShop", (Shop,), {"paths": paths})) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], paths
        finally:
            server.shutdown()
            thread.join()


def agent_of(folder: Path, *urls: str) -> ProbedAgent:
    (folder / "agent.py").write_text(POSTS)
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript("CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, amount INTEGER)")
    words = (sys.executable, str(folder / "agent.py"), *urls)
    return ProbedAgent(words, words, folder, limit=30.0)


def agent_runs(subject: Subject, folder: Path, times: int = 1) -> list[AgentRun]:
    async def run() -> list[AgentRun]:
        store = StoreSettings("shop", "sqlite", str(folder / "shop.db"))
        stores = Stores.of([store], folder.parent / "stores", subject.settle, subject.hide, b"", boxed=True)
        (folder.parent / "stores").mkdir()
        async with Worker(subject, stores, PrivateFolder(folder.parent, "agent"), Secrets(())) as worker:
            return [await worker.run(Masks()) for _ in range(times)]

    try:
        return asyncio.run(run())
    except ConfigError as error:
        if "put into a box" in str(error):
            pytest.skip(f"there is no box here: {error}")
        raise


def printed(agent_run: AgentRun) -> list[str]:
    return agent_run.texts[agent_run.printed or ""].split("\n")[:-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (made := tmp_path / "agent").mkdir()
    return made


def test_a_service_at_an_address_in_the_code_is_called_through_the_gateway_and_others_are_refused_and_told(
    folder: Path,
) -> None:
    with real_shop() as (port, paths), real_shop() as (other, others):
        agent = agent_of(folder, f"http://localhost:{port}/pay", f"http://127.0.0.1:{other}/pay", "http://shop.example/pay")
        subject = Subject("a", agent, services=(Service("shop", "", f"http://localhost:{port}"),), settle=0.02)
        first, second = agent_runs(subject, folder, 2)
        for agent_run in (first, second):
            assert [(call.door, call.tool, call.failed) for call in agent_run.calls] == [("shop", "POST /pay", False)]
            assert printed(agent_run) == ["200", *["<urlopen error [Errno 111] Connection refused>"] * 2]
            assert agent_run.refused == (f"127.0.0.1:{other}", "shop.example:80")
        why = objection(first, 1, has_check=True)
        assert not why, why
        assert paths == ["/pay", "/pay"] and not others


def test_an_agent_that_is_refused_all_is_told_what_to_write(folder: Path) -> None:
    [agent_run] = agent_runs(Subject("a", agent_of(folder, "http://shop.example/pay"), settle=0.02), folder)
    why = objection(agent_run, 1, has_check=False)
    assert (
        'the agent reached for shop.example:80, and was refused; if it may be called for real: remote = ["shop.example"]' in why
    )


def test_services_and_a_model_that_the_probe_starts_are_found_at_their_addresses_and_by_checks(folder: Path) -> None:
    subject = desk(folder)
    look = (
        "import json, os, urllib.request as u; print(len(json.load(u.urlopen(os.environ['SHOP'] + '/payments'))['payments']))"
    )
    url = subject.services[0].url.replace("{port}", "18734")
    words = tuple(word.replace("{port}", "18734") for word in subject.services[0].command)
    service = replace(subject.services[0], url=url, command=words)
    agent = replace(subject.agent, environment={"SHOP": url})
    subject = replace(
        subject, agent=agent, services=(service,), checks=(OwnersCheck(command=(sys.executable, "-c", look)),), functions=None
    )
    [agent_run] = agent_runs(subject, folder)
    assert [call.door for call in agent_run.calls] == ["model", "shop", "model"], printed(agent_run)
    assert agent_run.texts[agent_run.checks[0]] == "exit code 0\n1\n"  # the check asks the service itself, and is no call
    assert agent_run.code == 0 and not agent_run.refused


def test_what_a_service_reaches_for_is_refused_and_told_and_a_host_that_is_allowed_is_reached(folder: Path) -> None:
    asks = """
import socket, sys
for host, port in (("127.0.0.1", int(sys.argv[2])), ("bank.example", 443)):
    try:
        socket.create_connection((host, port), 5).close()
    except OSError as error:
        print(error, flush=True)
serving = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    serving.accept()[0].close()
"""
    with real_shop() as (port, paths):
        agent = agent_of(folder, f"http://127.0.0.1:{port}/pay")
        command = (sys.executable, "-c", asks, "{port}", str(port))
        services = (Service("s", "S_URL", "http://127.0.0.1:{port}", command),)
        [agent_run] = agent_runs(Subject("a", agent, services=services, passes=(("127.0.0.1", port),), settle=0.02), folder)
        assert printed(agent_run) == ["200"] and paths == ["/pay"] and not agent_run.calls
        assert agent_run.refused == ("bank.example:443",)
        assert any("a service or a check reached for bank.example:443" in json.dumps(vars(each)) for each in agent_run.lives)


def test_two_services_at_one_host_and_port_are_told_apart_by_their_paths(folder: Path) -> None:
    with real_shop() as (port, paths):
        agent = agent_of(
            folder, f"http://localhost:{port}/b/pay", f"http://127.0.0.1:{port}/a/pay", f"http://localhost:{port}/x"
        )
        services = (Service("a", "", f"http://127.0.0.1:{port}/a"), Service("b", "", f"http://localhost:{port}/b/"))
        [agent_run] = agent_runs(Subject("a", agent, services=services, settle=0.02), folder)
        assert [(call.door, call.tool) for call in agent_run.calls][:2] == [("b", "POST /b/pay"), ("a", "POST /a/pay")]
        assert paths == ["/b/pay", "/a/pay", "/x"]
