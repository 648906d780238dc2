"""An agent without a model, which knows MCP over stdio from the protocol alone:

    till_agent.py CONFIG MODE [NOTES]

It charges an account twice and ships an order. MODE is words of:

    again    it makes a call once more if it fails or is not answered
    trusts   it takes a call that is not answered for done
    keyed    its charges carry a key, so that the server makes each only once
    notes    it writes into the file NOTES that it will charge, and what stands there it does not do, nor ask about
    looks    it reads the balance before, and what it has done it does not do again
    wild     it writes to the database itself (its path is in DATABASE)
    ever     it never ends
    quiet    it makes no call
    fails    it ends with exit code 3
    early    it ends with exit code 4 before its first call
    odd      its charges differ each time
    blind    it does not ask for the tools
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # it starts hundreds of times, and loads what its way needs
    from typing import Any

MODE = set(sys.argv[2].split())
with open(sys.argv[1], encoding="utf-8") as config:
    server = json.load(config)["mcpServers"]["till"]
WAIT, WAIT_TO_START = 1.0, 10.0


class Lost(Exception):
    pass


def start() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ask(
        process,
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    )
    send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    if "blind" not in MODE:
        ask(process, "tools/list", {})
    return process


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin
    try:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError as error:
        raise Lost from error


NUMBERS = itertools.count(1)


def ask(process: subprocess.Popen[bytes], method: str, params: dict[str, Any]) -> Any:
    number = next(NUMBERS)
    send(process, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    until = time.monotonic() + (WAIT if method == "tools/call" else WAIT_TO_START)
    assert process.stdout
    while select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (line := process.stdout.readline()):
            break
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if answer.get("id") == number:
            if "error" in answer or answer["result"].get("isError"):
                raise Lost
            return answer["result"]
    raise Lost


def call(tool: str, **arguments: Any) -> str:
    for attempt in range(2):
        try:
            return str(ask(processes[-1], "tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"])
        except Lost:
            if attempt or MODE.isdisjoint(("again", "trusts")):
                raise
            processes[-1].kill()
            processes.append(start())
            if "trusts" in MODE:
                return ""
    raise AssertionError


processes = [start()]
if "early" in MODE:
    print("  | ValueError: no such account\n  +----------------")
    sys.exit(4)
if "quiet" not in MODE:
    done = 100
    if "looks" in MODE:
        done = int(call("balance", account="ada"))
    for nth, amount in enumerate((30, 20)):
        paid = random.randint(1, 10**6) if "odd" in MODE else amount
        if done <= (70, 50)[nth]:
            continue
        if "notes" in MODE:
            with open(sys.argv[3], "a+") as notes:
                notes.seek(0)
                if str(nth) in notes.read():
                    continue
                notes.write(str(nth))
        call("charge", account="ada", amount=paid, **({"key": f"charge-{nth}"} if "keyed" in MODE else {}))
    call("ship", order="o-17", account="ada")
    call("ring")
if "wild" in MODE:
    import sqlite3

    database = sqlite3.connect(os.environ["DATABASE"], isolation_level=None)
    database.execute("INSERT INTO parcels VALUES ('wild', 'ada')")
while "ever" in MODE:
    time.sleep(1)
processes[-1].kill()
print("all done")
sys.exit(3 if "fails" in MODE else 0)
