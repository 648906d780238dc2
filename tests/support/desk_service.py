"""An HTTP service on an SQLite database, and a model that follows a script, each on a port of loopback:

    desk_service.py service PORT DATABASE
    desk_service.py model PORT

`POST /payments` adds a payment with an id of its own, `GET /payments` lists them. The model asks for a payment, and says that
it is done once the last message tells of a payment; told of an error, it asks for the payment again.
"""

import json
import sqlite3
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROLE, PORT = sys.argv[1], int(sys.argv[2])


class Desk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with sqlite3.connect(sys.argv[3]) as database:
            self.answer({"payments": database.execute("SELECT id, amount FROM payments").fetchall()})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(replied(body) if ROLE == "model" else paid(body))

    def answer(self, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def paid(body: dict[str, Any]) -> dict[str, str]:
    number = uuid.uuid4().hex
    with sqlite3.connect(sys.argv[3]) as database:
        database.execute("INSERT INTO payments VALUES (?, ?)", (number, body["amount"]))
        database.execute("INSERT INTO entries (payment) VALUES (?)", (number,))
    return {"id": number}


def replied(body: dict[str, Any]) -> dict[str, Any]:
    is_paid = "id" in body["messages"][-1]["content"]
    message = {"role": "assistant", "content": "done" if is_paid else "pay 30"}
    return {"id": "r", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}


ThreadingHTTPServer(("127.0.0.1", PORT), Desk).serve_forever()
