"""An MCP server over stdio, written from the protocol alone:

    stdio_server.py FOLDER MODE

Each byte that it reads and writes is logged into the folder (`received`, `written`), and each payment into `paid`. It answers a
call with odd spaces in its JSON, and sends everything else back as it came.

MODE is "" or one of: die (it ends at a call), hang (it answers no call), flood (it writes without end at a call), swap (it
answers two calls in the wrong order), linger (it ignores the end of its input), shout (it writes its environment to stderr).
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER, MODE = Path(sys.argv[1]), sys.argv[2]
held: list[bytes] = []


def keep(name: str, content: bytes) -> None:
    with (FOLDER / name).open("ab") as log:
        log.write(content)


def write(content: bytes) -> None:
    if MODE != "flood":
        keep("written", content)
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def pay(body: dict[str, Any]) -> bytes:
    keep("paid", json.dumps(body["params"].get("arguments")).encode() + b"\n")
    times = (FOLDER / "paid").read_bytes().count(b"\n")
    result = {"content": [{"type": "text", "text": f"paid €{times}"}], "structuredContent": {"times": times, "who": ["a", "b"]}}
    return f'{{"result" :  {json.dumps(result)}, "id": {json.dumps(body["id"])},"jsonrpc":"2.0"}}\n'.encode()


def tools(body: dict[str, Any]) -> bytes:
    words = "changed" if (FOLDER / "changed").exists() else "pays"
    listed = [
        {"name": "pay", "inputSchema": {"type": "object"}, "description": words},
        {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    ]
    return json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"tools": listed}}).encode() + b"\n"


def take(line: bytes) -> None:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return write(line)
    if isinstance(body, list):
        answers = [pay(member).strip() for member in body if isinstance(member, dict) and member.get("method") == "tools/call"]
        return write(b"[" + b" , ".join(answers) + b"]\r\n" if answers else line)
    method = body.get("method") if isinstance(body, dict) else None
    if method == "tools/list":
        return write(tools(body))
    if method != "tools/call":
        return write(line)
    if MODE == "die":
        os._exit(3)
    if MODE == "hang":
        return None
    while MODE == "flood":
        write(b"x" * 1000 + b"\n")
    answer = pay(body)
    if MODE == "swap":
        held.insert(0, answer)
        if len(held) == 2:
            write(held[0] + held[1])
        return None
    return write(answer)


keep("pid", f"{os.getpid()}\n".encode())
print("the server's own words", file=sys.stderr, flush=True)
if MODE == "shout":
    print(dict(os.environ), file=sys.stderr, flush=True)
while line := sys.stdin.buffer.readline():
    keep("received", line)
    take(line)
while MODE == "linger":
    time.sleep(60)
