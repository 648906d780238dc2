"""An agent and its MCP server, in whose instructions, descriptions, arguments, rows, results and words secrets stand.

leaky_agent.py CONFIG --api-key=KEY   pays once, and again after a death
leaky_agent.py DATABASE serve
"""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOiJvZiBhIHNlcnZlciJ9.c2lnbmF0dXJlLW9mLWEtY2FuYXJ5"


def dotenv() -> dict[str, str]:
    lines = Path(".env").read_text(encoding="utf-8").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def serve() -> None:
    database = sqlite3.connect(sys.argv[1], isolation_level=None)
    known = dotenv()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {
            "capabilities": {},
            "instructions": f"say {os.environ['OWNER_WORD']} {os.environ['SERVER_WORD']}",
        }
        if message["method"] == "tools/list":
            result = {"tools": [{"name": "pay", "description": f"with {known['WORD']}", "inputSchema": {"type": "object"}}]}
        if message["method"] == "tools/call":
            given: dict[str, Any] = message["params"]["arguments"]
            body = f"{given['note']} {given['login']['password']} {known['PASSWORD']}"
            database.execute("INSERT INTO payments (cents, body) VALUES (?, ?)", (given["cents"], body))
            answer = json.dumps({"paid": body, "session": JWT, "by": os.environ["SERVER_WORD"]})
            result = {"content": [{"type": "text", "text": answer}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    print(f"server knows {known['PASSWORD']} {os.environ['SERVER_WORD']}", file=sys.stderr)


def act() -> None:
    config: Any = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]["bank"]
    words = [config["command"], *config["args"]]
    variables = {**os.environ, **config["env"]}
    note = f"{os.environ['OWNER_WORD']} {dotenv()['STRIPE']}"
    login = {"user": "ann", "password": "canary-by-hand-1"}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, text=True) as process:
        assert process.stdin and process.stdout
        pay = {"name": "pay", "arguments": {"cents": 7, "note": note, "login": login}}
        requests: dict[str, Any] = {"initialize": {}, "tools/list": {}, "tools/call": pay}
        for number, (method, given) in enumerate(requests.items()):
            print(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": given}), file=process.stdin, flush=True
            )
            answer = process.stdout.readline()
        process.stdin.close()
    print(answer, note, login, sys.argv[2], os.environ["DSN"])
    print(config.get("env"), file=sys.stderr)
    sys.exit(0 if answer else 1)


if __name__ == "__main__":
    serve() if sys.argv[2:] == ["serve"] else act()
