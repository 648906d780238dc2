"""Agents that do what none should, one function each: `misbehaving.py NAME`."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HOST = os.environ["TOOLS_URL"].removeprefix("http://")
ORDER = {"order": 1}


def post(path: str, body: Any, token: str = os.environ["OPENAI_API_KEY"], **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(HOST)
    own_headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, body if isinstance(body, str) else json.dumps(body), {**own_headers, **headers})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def never_ends() -> None:
    print("thinking", flush=True)
    time.sleep(600)


def asks_without_end() -> None:
    for number in range(1000):
        where = os.environ.get("WHERE", "")
        post(f"{where}/v1/chat/completions", {"messages": [{"role": "user", "content": f"hello {number}"}]})


def tells_its_number() -> None:
    ready = Path(os.environ["TOLD"])
    ready.with_suffix(".new").write_text(str(os.getpid()))
    ready.with_suffix(".new").rename(ready)
    time.sleep(600)


def dies_at_start() -> None:
    sys.exit("my key is missing")


def ends_at_once() -> None:
    print("nothing to do")


def sends_settings() -> None:
    hello = {"messages": [{"role": "user", "content": "hello"}]}
    post("/v1/chat/completions", {**hello, "temperature": 0.2, "metadata": {"long": "x" * 1000}})
    post("/v1/responses", {"input": "hello", "text": {"verbosity": "low"}, "reasoning": {"effort": "none"}})
    post("/v1/messages", {**hello, "max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}})
    vendors = {f"vendor {number}": {"thinking_config": number} for number in range(200)}
    post("/v1/chat/completions", {**hello, "extra_body": vendors})


def dies_of_a_refusal() -> None:
    refused()
    sys.exit("Error code: 400")


def ends_after_a_refusal() -> None:
    refused()


def asks_again_after_a_refusal() -> None:
    refused()
    post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]})


def repeats_a_refused_request() -> None:
    while True:
        refused()


def asks_with_another_key() -> None:
    print(post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]}, token="mine"))


def asks_for_what_is_not_served() -> None:
    post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]})
    post("/v1/embeddings", {"input": "hello"})


def refused() -> None:
    post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "logprobs": True})


def dies_of_a_signal() -> None:
    os.kill(os.getpid(), 15)


def opens_200_connections() -> None:
    host, port = HOST.split(":")
    opened = [socket.create_connection((host, int(port))) for _ in range(200)]
    refused, until = 0, time.monotonic() + 5
    while refused < int(os.environ["TOO_MANY"]) and time.monotonic() < until:
        time.sleep(0.05)
        refused = sum(map(is_closed, opened))
    print(refused)


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def writes_1_gb() -> None:
    piece = b"x" * 2**20
    for _ in range(1000):
        os.write(1, piece)
    print("\nthe last line")


def fills_its_folder() -> None:
    for name in ("one", "two"):
        with Path(name).open("wb") as file:
            file.truncate(200 * 10**6)
    time.sleep(600)


def leaves_a_daemon() -> None:
    start = "import os, time; os.fork() and os._exit(0); print(os.getpid(), flush=True); time.sleep(600)"
    subprocess.run([sys.executable, "-c", start], start_new_session=True, env={}, check=True)
    time.sleep(0.2)


def nests_its_folders() -> None:
    for _ in range(1200):
        os.mkdir("a")  # noqa: PTH102  as deep as no path reaches
        os.chdir("a")
    post("/tools/list_events", {})
    time.sleep(0.1)


def makes_folders() -> None:
    for number in range(60):
        Path(f"folder {number}").mkdir()
    time.sleep(600)


def removes_its_folder() -> None:
    shutil.rmtree(os.environ["AGENT_FOLDER"])
    post("/tools/refund", {"order": 1, "amount": 40})


def links_its_log() -> None:
    Path("log.jsonl").symlink_to("/etc/passwd")
    post("/tools/list_events", {})


def stops_who_watches_over_it() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)


def kills_who_watches_over_it() -> None:
    sleeps = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", sleeps], start_new_session=True, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout
        os.write(1, daemon.stdout.readline())
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)


def sends_what_is_no_http() -> None:
    connection = http.client.HTTPConnection(HOST)
    connection.request("GET", "/tools", headers={"Idempotency-Key": "k" * 10**6})
    print(connection.getresponse().status)


def looks_for_signs_of_a_test() -> None:
    token = os.environ["OPENAI_API_KEY"]
    asked = {"messages": [{"role": "user", "content": "hello"}]}
    requests = [("GET", "/tools", ""), ("GET", "/openapi.json", ""), ("GET", "/v1/models", ""), ("POST", "/tools/none", "{}")]
    for _ in range(3):
        requests += [("POST", "/v1/chat/completions", json.dumps(asked)), ("POST", "/v1/responses", '{"input": "hello"}')]
    requests.append(("POST", "/v1/chat/completions", json.dumps(asked | {"stream": True})))
    print([f"{name}={value}" for name, value in os.environ.items() if name not in ("PATH", "MCP_COMMAND")])
    for (method, path, body), key in [*((request, token) for request in requests), (requests[-1], "another")]:
        connection = http.client.HTTPConnection(HOST)
        connection.request(method, path, body, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        print(answer.status, answer.getheaders(), answer.read().decode())


def answers_for_another_trial() -> None:
    print(json.dumps([post("/tools/read_order", ORDER, token="another")[0], post("/v1/chat/completions", {}, "another")[0]]))


def bad_requests() -> None:
    paid = {"order": 1, "amount": 40}
    key = {"Idempotency-Key": "one"}
    statuses = [
        post("/tools/refund", paid, **key),
        post("/tools/refund", paid, **key),
        post("/tools/refund", {"order": 2, "amount": 1}, **key),
        post("/tools/refnd", paid),
        post("/tools/refund", {"order": "x"}),
        post("/tools/read_order", {"order": 9}),
        post("/tools/refund", paid, **{"If-Match": "order 1=1"}),
        post("/tools/refund", paid, **{"If-Match": "order 1"}),
        post("/tools/refund", paid, **{"Idempotency-Key": "k" * 201}),
        post("/tools/refund", "[1]"),
        post("/tools/refund", "{"),
        post("/tools/refund", '{"order": NaN}'),
        post("/tools/refund", '{"order": "\\ud800"}'),
        post("/tools/wait", {"days": -1}),
        post("/tools/next_event", {"after": 10**30}),
        post("/tools/next_event", {"after": 10**12}),
    ]
    print(json.dumps([[status, body.get("error", {}).get("code", "")] for status, body in statuses]))


def asks_its_model_three_times_at_once() -> None:
    def ask(number: int) -> None:
        statuses.append(post("/v1/chat/completions", {"messages": [{"role": "user", "content": f"hello {number}"}]})[0])

    statuses: list[int] = []
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(statuses))


def one_tool_a_thousand_times() -> None:
    connection = http.client.HTTPConnection(HOST)
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    for _ in range(1000):
        connection.request("POST", "/tools/read_order", json.dumps(ORDER), headers)
        connection.getresponse().read()


globals()[sys.argv[1]]()
