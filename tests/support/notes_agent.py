"""An agent and its MCP server, which know what is secret and say it wherever they can.

notes_agent.py CONFIG       adds a note, and prints what it knows
notes_agent.py DATABASE serve
"""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any


def serve() -> None:
    database = sqlite3.connect(sys.argv[1], isolation_level=None)
    told = f"{os.environ['SERVER_WORD']} {os.environ['OWNER_WORD']}"
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "tools/call":
            given = message["params"]["arguments"]
            database.execute("INSERT INTO notes (body, pin) VALUES (?, ?)", (given["body"], given["pin"]))
        result = {"content": [{"type": "text", "text": told}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def act() -> None:
    server: Any = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]["notes"]
    variables = {**os.environ, **server["env"]}
    words = [server["command"], *server["args"]]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, text=True) as process:
        assert process.stdin and process.stdout
        arguments = {"body": f"known: {os.environ['OWNER_WORD']}", "pin": os.environ["PIN"]}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": arguments}}
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    print(answer, os.environ["OWNER_WORD"], os.environ["OPENAI_API_KEY"])
    far: Any = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]["far"]
    words = [*far["headers"]["Authorization"].split(), *far["headers"]["Cookie"].split("=")]
    print(*words, sys.argv[2], os.environ["DSN"].partition("me:")[2].partition("@")[0], file=sys.stderr)
    sys.exit(0 if answer else 1)


if __name__ == "__main__":
    serve() if sys.argv[2:] == ["serve"] else act()
