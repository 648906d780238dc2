"""The command `bench watch`: a page of a run's present state, for browsers on this machine that send the page's token."""

from __future__ import annotations

import hmac
import html
import secrets
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer

from bench.cli.commands.completion import run_names
from bench.cli.terminal import Terminal
from bench.common.errors import BenchError, ConfigError
from bench.common.paths import folder_of

out = Terminal()
RELOAD_SECONDS = 5
"""The browser reloads the page after this many seconds."""
HOST = "127.0.0.1"
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageServer(ThreadingHTTPServer):
    """An HTTP server that serves one page on loopback to requests with its token. The server accepts no data.

    Each connection has a thread, because a browser opens more connections than it uses. One thread at a time makes the page.
    """

    def __init__(self, port: int, page: Callable[[], str]):
        self._page, self.token = page, secrets.token_urlsafe(24)
        self._page_lock = threading.Lock()
        super().__init__((HOST, port), _PageHandler)

    def page(self) -> str:
        """Make a new page."""
        with self._page_lock:
            return self._page()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing if the client closed the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/?token={self.token}"


class _PageHandler(BaseHTTPRequestHandler):
    """Answers a GET with the page, if the request has the token."""

    server: PageServer
    server_version, sys_version = "bench", ""
    timeout = 10.0

    def do_GET(self) -> None:
        try:
            url = urlsplit(self.path)
        except ValueError as error:
            self._send(HTTPStatus.BAD_REQUEST, f"<p>The address cannot be read: {html.escape(str(error))}</p>")
            return
        token = parse_qs(url.query).get("token", [""])[0]
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.FORBIDDEN, "<p>This page asks for the token that bench watch printed.</p>")
        elif url.path != "/":
            self._send(HTTPStatus.NOT_FOUND, "<p>There is no page of this name.</p>")
        else:
            try:
                self._send(HTTPStatus.OK, self.server.page())
            except BenchError as error:
                self._send(HTTPStatus.INTERNAL_SERVER_ERROR, f"<p>{html.escape(str(error))}</p>")

    def _send(self, status: HTTPStatus, page: str) -> None:
        """Send a response with this page as its body."""
        content = page.encode()
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Length": f"{len(content)}"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing, because the URL contains the token."""


def watch(
    run: Annotated[str, typer.Argument(autocompletion=run_names, help="A run's name under results/, or its folder.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on this machine; a free one, if not given.")] = 0,
) -> None:
    """Show the progress of a run on a page, until Ctrl-C.

    The page shows outcomes, rejections by reason, tokens and cost of each arm, and the time left. It reads the run's folder and
    changes nothing, so you can start it at any time.

    For example: bench watch smoke-simulated
    """
    from bench.read.overview.live import LiveRun, page  # noqa: PLC0415  imports what draws tables

    live = LiveRun(folder_of(run))

    def make_page() -> str:
        """Read what the run has recorded, and return its page."""
        live.read()
        return page(live, datetime.now(UTC), RELOAD_SECONDS)

    make_page()
    try:
        server = PageServer(port, make_page)
    except OSError as error:
        raise ConfigError(f"--port {port}: cannot be opened ({error.strerror}); give another, or leave it out") from error
    with server:
        out.print(f"open {server.address}    (this machine alone; Ctrl-C ends it, and the run goes on)")
        server.serve_forever()
