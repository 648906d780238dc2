"""What a web page in a real browser can do to `bench serve` on its user's machine: nothing, be there a token or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from chromium import IN_A_BROWSER, launched
from commands import Started, free_port, start, workplace
from outside_system import OutsideSystem

pytestmark = IN_A_BROWSER

FOREIGN, REBOUND = "page.example", "rebound.example"
TOKEN = "the-token-of-these-tests"
PAGE = """
async ([root, reached]) => {
  const call = JSON.stringify({model: "any", messages: [{role: "user", content: "spend"}]});
  const url = root + "/v1/chat/completions";
  const json = {"Content-Type": "application/json"};
  const read = async (response) => {
    const answer = await response;
    if (answer.ok) reached.push(await answer.text());
  };
  const tries = {
    "a call": () => read(fetch(url, {method: "POST", headers: json, body: call})),
    "a guessed key": () => read(fetch(url, {method: "POST", headers: {...json, Authorization: "Bearer x"}, body: call})),
    "a simple call": () => read(fetch(url, {method: "POST", headers: {"Content-Type": "text/plain"}, body: call})),
    "a call unread": () => fetch(url, {method: "POST", mode: "no-cors", body: call}),
    "a form's call": () => fetch(url, {method: "POST", mode: "no-cors", body: new URLSearchParams(JSON.parse(call))}),
    "a beacon": async () => navigator.sendBeacon(url, new Blob([call], {type: "text/plain"})),
    "the trial": () => read(fetch(root + "/trial")),
    "the trial given up": () => fetch(root + "/trial/give-up", {method: "POST", mode: "no-cors"}),
    "the trial answered": () => fetch(root + "/trial/answer", {method: "POST", mode: "no-cors", body: "{}"}),
    "the models": () => read(fetch(root + "/v1/models")),
    "a script": () => new Promise((done, failed) => {
      const script = document.createElement("script");
      script.onload = done;
      script.onerror = failed;
      script.src = root + "/trial";
      document.body.append(script);
    }),
    "a form": () => new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.name = "target";
      frame.onload = done;
      document.body.append(frame);
      const form = document.createElement("form");
      Object.assign(form, {method: "POST", enctype: "text/plain", action: url, target: "target"});
      const field = document.createElement("input");
      Object.assign(field, {name: call.slice(0, -1) + ', "x": "', value: '"}'});
      form.append(field);
      document.body.append(form);
      form.submit();
    }),
    "a stream": () => new Promise((done, failed) => {
      const source = new EventSource(root + "/trial");
      source.onmessage = (event) => { reached.push(event.data); done(); };
      source.onerror = failed;
    }),
    "a socket": () => new Promise((done, failed) => {
      const socket = new WebSocket(root.replace("http", "ws") + "/trial");
      socket.onopen = () => { reached.push("a socket"); done(); };
      socket.onerror = failed;
    }),
  };
  for (const one of Object.values(tries)) await one().catch(() => undefined);
  return [Object.keys(tries).length, reached];
}
"""


@pytest.fixture(params=[True, False], ids=["with a token", "without"])
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[int, Started]]:
    """A port with one trial, which waits for an agent."""
    port = free_port()
    words = ("--scenario", "demo", "--plan", "none", "--repetitions", "1", *(() if request.param else ("--no-token",)))
    with start(tmp_path, "serve", str(workplace(tmp_path)), "--port", str(port), *words, BENCH_SERVE_TOKEN=TOKEN) as process:
        process.wait_until_said("Ctrl-C stops")
        yield port, process


def tried(host: str, port: int) -> tuple[int, list[str]]:
    """What a page of this host tries on the port, and what it came to read. The host's own name is led to this machine, as an
    attacker's name server does once the page is there."""
    hosts = f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"
    with launched(hosts, "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests") as browser:
        tab = browser.new_page()
        address = f"http://{host}:{port if host == REBOUND else 80}"
        tab.route(f"{address}/page", lambda route: route.fulfill(body="<body>", content_type="text/html"))
        tab.goto(f"{address}/page")
        root = address if host == REBOUND else f"http://127.0.0.1:{port}"
        count, reached = tab.evaluate(PAGE, [root, []])
        return int(count), list(reached)


@pytest.mark.parametrize("host", [FOREIGN, REBOUND])
def test_a_page_reads_nothing_spends_nothing_and_ends_no_trial(served: tuple[int, Started], host: str) -> None:
    port, process = served
    count, reached = tried(host, port)
    assert (count, reached) == (14, [])
    with httpx2.Client(trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        outside = OutsideSystem(f"http://127.0.0.1:{port}", client)
        account: Any = outside.hand_in(outside.solve())
        assert outside.status_of("/trial") == 410
    assert account["outcome"] == "solved"
    _, out, _ = process.ended()
    assert f"{account['calls']} requests taken, {account['calls']} calls recorded" in out
    assert "requests turned away" in out, "it was asked"
