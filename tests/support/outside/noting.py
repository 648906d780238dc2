"""An agent for the world `refunds` that keeps a log of what it asks and is told. `silent` leaves a call out of it, `twice`
notes a reply twice, `dear` notes more tokens than it was told, `torn` ends the log in the middle of a line."""

from __future__ import annotations

import http.client
import json
import os
import sys
from pathlib import Path
from typing import Any

HOW = sys.argv[1:]
LOG = Path(os.environ["AGENT_FOLDER"]) / "log.jsonl"
MODEL, TOOLS = (os.environ[name].removeprefix("http://") for name in ("OPENAI_BASE_URL", "TOOLS_URL"))


def note(**entry: Any) -> None:
    with LOG.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def post(address: str, body: Any) -> tuple[int, Any]:
    host, slash, path = address.partition("/")
    connection = http.client.HTTPConnection(host)
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    connection.request("POST", slash + path, json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def think(about: str) -> None:
    note(what="model", when="sent")
    status, body = post(f"{MODEL}/chat/completions", {"model": "any", "messages": [{"role": "user", "content": about}]})
    usage = body.get("usage") or {}
    more = 1 if "dear" in HOW else 0
    counts = {"prompt_tokens": usage.get("prompt_tokens", 0) + more, "completion_tokens": usage.get("completion_tokens", 0)}
    for _ in range(2 if "twice" in HOW else 1):
        note(what="model", when="got", status=status, **counts)


def call(tool: str, **arguments: Any) -> None:
    quiet = "silent" in HOW and tool == "refund"
    if not quiet:
        note(what="tool", when="sent", name=tool)
    status, _ = post(f"{TOOLS}/tools/{tool}", arguments)
    if not quiet:
        note(what="tool", when="got", name=tool, status=status)


think("What is to be done about order 1?")
call("read_order", order=1)
call("reserve", order=1)
think("And now?")
call("refund", order=1, amount=40)
call("wait", days=1)
call("notify", order=1, text="refunded")
if "torn" in HOW:
    with LOG.open("a") as file:
        file.write('{"what": "mo')
