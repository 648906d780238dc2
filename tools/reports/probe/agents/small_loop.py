"""A loop around a model with the tools of one MCP server, of the standard library alone: it starts in a tenth of a second.

--keep   each message is written down before anything is made of it; a new life goes on there, and makes a call without an
         answer again
--keys   each call carries its own id as its idempotency key
--retry  a call whose connection ends without an answer is made once more, over a new connection

python small_loop.py MCP_JSON CONVERSATION [--keep] [--keys] [--retry]
"""

import itertools
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

CONFIG, KEPT = map(Path, sys.argv[1:3])
FLAGS = set(sys.argv[3:])


class Server:
    """An MCP server, started over stdio."""

    def __init__(self):
        [server] = json.loads(CONFIG.read_text())["mcpServers"].values()
        words = [server["command"], *server.get("args", [])]
        environment = {**os.environ, **server.get("env", {})}
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self._numbers = itertools.count(1)
        client = {"name": "small_loop", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})

    def ask(self, method, parameters):
        """Return the result of a request. Raise ConnectionError where the server ends without an answer."""
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": parameters})
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer.get("result") or {"isError": True, "content": [{"text": json.dumps(answer["error"])}]}
        raise ConnectionError("the server ended")

    def _send(self, message):
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


def ask_model(messages, tools):
    body = json.dumps({"model": "gpt-5-mini", "messages": messages, "tools": tools}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


def call(asked):
    """Return what a tool says, errors too."""
    meta = {"_meta": {"idempotencyKey": asked["id"]}} if "--keys" in FLAGS else {}
    parameters = {"name": asked["function"]["name"], "arguments": json.loads(asked["function"]["arguments"]), **meta}
    try:
        result = servers[-1].ask("tools/call", parameters)
    except OSError:
        if "--retry" not in FLAGS:
            raise
        servers.append(Server())
        result = servers[-1].ask("tools/call", parameters)
    return "".join(part["text"] for part in result["content"])


def keep(message):
    messages.append(message)
    if "--keep" in FLAGS:
        with KEPT.open("a") as file:
            file.write(json.dumps(message) + "\n")


def unanswered():
    answered = {message.get("tool_call_id") for message in messages}
    asked = [each for message in messages for each in message.get("tool_calls") or []]
    return [each for each in asked if each["id"] not in answered]


messages = []
if "--keep" in FLAGS and KEPT.exists():
    messages = [json.loads(line) for line in KEPT.read_text().splitlines()]
servers = [Server()]
tools = [
    {"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]}}
    for t in servers[0].ask("tools/list", {})["tools"]
]
if not messages:
    keep({"role": "user", "content": "Do the work."})
while True:
    for asked in unanswered():
        keep({"role": "tool", "tool_call_id": asked["id"], "content": call(asked)})
    if messages[-1]["role"] == "assistant":
        break
    keep(ask_model(messages, tools))
print(messages[-1]["content"])
