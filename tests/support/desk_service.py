"""An HTTP service on an SQLite database, and a model that follows a script, each on a port of loopback:

    desk_service.py service PORT DATABASE
    desk_service.py model PORT

`POST /payments` adds a payment with an id of its own, `GET /payments` lists them. The model asks for a payment, and says that
it is done once the last message tells of a payment; told of an error, it asks for the payment again.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys

from small_http import Message, serve

TYPE_CHECKING = False
if TYPE_CHECKING:  # it starts hundreds of times
    from typing import Any

ROLE, PORT = sys.argv[1], int(sys.argv[2])


def answer(request: Message) -> tuple[int, bytes]:
    if request.words[0] not in ("GET", "POST"):
        return 501, b"{}"
    return 200, json.dumps(listed() if request.words[0] == "GET" else done(json.loads(request.content))).encode()


def listed() -> dict[str, Any]:
    with sqlite3.connect(sys.argv[3]) as database:
        return {"payments": database.execute("SELECT id, amount FROM payments").fetchall()}


def done(body: dict[str, Any]) -> dict[str, Any]:
    return replied(body) if ROLE == "model" else paid(body)


def paid(body: dict[str, Any]) -> dict[str, str]:
    number = os.urandom(16).hex()
    with sqlite3.connect(sys.argv[3]) as database:
        database.execute("INSERT INTO payments VALUES (?, ?)", (number, body["amount"]))
        database.execute("INSERT INTO entries (payment) VALUES (?)", (number,))
    return {"id": number}


def replied(body: dict[str, Any]) -> dict[str, Any]:
    is_paid = "id" in body["messages"][-1]["content"]
    message = {"role": "assistant", "content": "done" if is_paid else "pay 30"}
    return {"id": "r", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}


serve(PORT, answer)
