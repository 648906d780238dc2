"""The shop's refunds as an HTTP service over its database: `service.py PORT DATABASE`. It pays at each POST to /refunds."""

import json
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Refunds(BaseHTTPRequestHandler):
    """Pays each request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Say that it is ready."""
        self._answer("ready")

    def do_POST(self) -> None:
        """Pay back."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with closing(sqlite3.connect(sys.argv[2])) as shop, shop:
            shop.execute("INSERT INTO refunds (order_id, cents) VALUES (?, ?)", (asked["order"], asked["cents"]))
        self._answer("paid back")

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Refunds).serve_forever()
