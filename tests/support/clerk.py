"""An agent that uses all that a watched run can see:

    clerk.py CONFIG DATABASE

It charges an account by an MCP server, asks a model and a service at the addresses of two variables, and writes what stands in
its folder, in its home, in a cache, and into a database elsewhere.
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def refund(order: str) -> str:
    return order


def post(address: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    OPENER.open(request, timeout=5).close()


with closing(sqlite3.connect("thread.db")) as memory, memory:
    memory.executescript("CREATE TABLE checkpoints (checkpoint_ns); CREATE TABLE writes (checkpoint_ns)")
with closing(sqlite3.connect("mixed.db")) as mixed, mixed:
    mixed.executescript("INSERT INTO agent_sessions VALUES ('s'); INSERT INTO bills VALUES (7)")
with closing(sqlite3.connect("made.db")) as made, made:
    made.execute("CREATE TABLE bills (cents INTEGER)")
with closing(sqlite3.connect(sys.argv[2])) as far, far:
    far.execute("INSERT INTO bills VALUES (1)")
with closing(sqlite3.connect("read.db")) as read:
    read.execute("SELECT * FROM bills").fetchall()
Path("state.json").write_text(json.dumps({"type": "TeamState", "version": "1.0.0", "agent_states": {}}))
with Path("notes", "ledger.txt").open("a") as ledger:
    ledger.write("lamp 120\n")
Path("desk", "sent").mkdir()
Path("desk", "draft.txt").rename(Path("desk", "sent", "draft.txt"))
(Path.home() / ".clerk" / "state").mkdir(parents=True)
(Path.home() / ".clerk" / "state" / "known.txt").write_text("Ada")
(Path.home() / ".cache").mkdir(exist_ok=True)
(Path.home() / ".cache" / "page.html").write_text("a page")
Path("report.txt").write_text("paid")

server = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]["till"]
with subprocess.Popen([server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as till:
    assert till.stdin and till.stdout
    for number, (method, params) in enumerate(
        (
            ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}),
            ("tools/list", {}),
            ("tools/call", {"name": "balance", "arguments": {"account": "ada"}}),
            ("tools/call", {"name": "charge", "arguments": {"account": "ada", "amount": 30}}),
            ("tools/call", {"name": "ring", "arguments": {}}),
        )
    ):
        till.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
        till.stdin.flush()
        till.stdout.readline()
    till.stdin.close()

client = {"__name__": "mcp.client.stdio"}
exec("import subprocess\ndef start(words): subprocess.run(words)", client)  # as MCP's client starts a server
client["start"]([sys.executable, "-c", "'a server of its own'"])  # type: ignore[operator]
subprocess.run([sys.executable, "-c", "'no server'"], check=True)
tool = {"type": "function", "name": "refund", "parameters": {"type": "object"}}
post(os.environ["OPENAI_BASE_URL"] + "/responses", {"model": "m", "input": "go", "tools": [tool]})
post(os.environ["SHOP_URL"] + "/payments", {"amount": 30})
with suppress(OSError):
    socket.create_connection(("far.invalid", 443), timeout=5).close()
print("done")
