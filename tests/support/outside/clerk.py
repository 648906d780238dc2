"""An agent for the world `refunds`, a process of its own. `careful` gives keys and keeps notes; without, it acts and hopes."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

CAREFUL = "careful" in sys.argv
NOTES = Path(os.environ["AGENT_FOLDER"]) / "notes.txt"
TOOLS, MODEL = (os.environ[name].removeprefix("http://") for name in ("TOOLS_URL", "OPENAI_BASE_URL"))
DONE = NOTES.read_text().split("\n") if CAREFUL and NOTES.exists() else []


def post(address: str, body: Any, **headers: str) -> tuple[int, Any]:
    host, slash, path = address.partition("/")
    connection = http.client.HTTPConnection(host)
    own_headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    connection.request("POST", slash + path, json.dumps(body), {**own_headers, **headers})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def call(tool: str, **arguments: Any) -> Any:
    key = f"{tool} {arguments.get('order')}"
    headers = {"Idempotency-Key": key} if CAREFUL and tool != "read_order" else {}
    while True:
        try:
            status, answer = post(f"{TOOLS}/tools/{tool}", arguments, **headers)
        except (OSError, http.client.HTTPException):
            if CAREFUL:
                continue
            return None
        if status != 503 or not CAREFUL:
            return answer.get("result")
        time.sleep(0.01)


def once(tool: str, order: int, **arguments: Any) -> None:
    if f"{tool} {order}" not in DONE:
        call(tool, order=order, **arguments)
        note(f"{tool} {order}")


def note(line: str) -> None:
    with NOTES.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def think(about: str) -> str:
    messages = [{"role": "user", "content": about}]
    _, answer = post(f"{MODEL}/chat/completions", {"model": "any", "messages": messages})
    return str(answer["choices"][0]["message"]["content"])


for number in (1, 2, 3):
    order = call("read_order", order=number)
    think(f"What is to be done about {json.dumps(order)}?")
    if order is None or order["state"] not in ("damaged", "lost"):
        continue
    once("reserve", number)
    if order["price"] > 100:
        call("ask_person", kind="manager", about=f"order {number}", question={"order": number})
    once("refund", number, amount=order["price"])
    once("release", number)
    once("notify", number, text="refunded")
