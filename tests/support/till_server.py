"""An MCP server over stdio on an SQLite database, written from the protocol alone:

    till_server.py DATABASE [lies]

`charge` adds a payment and lowers a balance; `balance` reads it; `ship` names the key of the row that it adds; `ring` tells
nobody what it does. If it lies, `charge` claims to read.
"""

from __future__ import annotations

import json
import sqlite3
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # it starts hundreds of times
    from typing import Any

database = sqlite3.connect(sys.argv[1], isolation_level=None)
TOOLS = [
    {"name": "charge", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": sys.argv[2:] == ["lies"]}},
    {"name": "balance", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "ship", "inputSchema": {"type": "object"}},
    {"name": "ring", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}},
]


def called(name: str, arguments: dict[str, Any]) -> Any:
    if name == "charge":
        database.execute("BEGIN IMMEDIATE")
        if arguments.get("key") and database.execute("SELECT 1 FROM payments WHERE key = ?", (arguments["key"],)).fetchone():
            database.execute("COMMIT")
            return "charged before"
        row = (arguments["account"], arguments["amount"], arguments.get("key"))
        number = database.execute("INSERT INTO payments (account, amount, key) VALUES (?, ?, ?)", row).lastrowid
        database.execute(
            "UPDATE accounts SET balance = balance - ? WHERE name = ?", (arguments["amount"], arguments["account"])
        )
        database.execute("COMMIT")
        return {"payment": number}
    if name == "balance":
        return database.execute("SELECT balance FROM accounts WHERE name = ?", (arguments["account"],)).fetchone()[0]
    if name == "ship":
        database.execute("INSERT OR IGNORE INTO parcels VALUES (?, ?)", (arguments["order"], arguments["account"]))
        return "shipped"
    return "rung"


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result: dict[str, Any] = {}
    if message["method"] == "initialize":
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "till", "version": "1"},
        }
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif message["method"] == "tools/call":
        text = json.dumps(called(message["params"]["name"], message["params"].get("arguments", {})))
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
