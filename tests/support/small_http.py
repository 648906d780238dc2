"""HTTP/1.1 as far as the programs that tests probe need it, on sockets alone. These programs start hundreds of times, and most
of a start went into loading the client and the server of Python itself."""

from __future__ import annotations

import socket
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not loaded
    from collections.abc import Callable
    from typing import BinaryIO


class Refused(OSError):
    """The answer says that the request failed."""


class Message:
    """The words of the first line, the headers by their names in lower case, and the content."""

    def __init__(self, words: list[str], headers: dict[str, str], content: bytes) -> None:
        self.words, self.headers, self.content = words, headers, content


def read_message(stream: BinaryIO) -> Message | None:
    """Return the next message; None if there is no further one. Raises ConnectionResetError if it breaks off."""
    if not (first := stream.readline()):
        return None
    headers = dict[str, str]()
    while (line := stream.readline()) not in (b"\r\n", b"\n"):
        if not line:
            raise ConnectionResetError("the head broke off")
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    size = int(headers.get("content-length", 0))
    content = stream.read(size)
    if len(content) < size:
        raise ConnectionResetError("the content broke off")
    return Message(first.decode("latin-1").split(maxsplit=2), headers, content)


def ask(address: str, content: bytes = b"", method: str = "POST", timeout: float = 20, **headers: str) -> bytes:
    """Return the content of the answer to one request; words of a header's name are joined by `_`.

    Raises Refused if its status says so, and another OSError if none comes.
    """
    host, _, path = address.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    lines = [f"{method} /{path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(content)}", "Connection: close"]
    lines += ["Content-Type: application/json", *(f"{key.replace('_', '-')}: {value}" for key, value in headers.items())]
    with socket.create_connection((name, int(port)), timeout) as connection, connection.makefile("rb") as stream:
        connection.sendall("\r\n".join((*lines, "", "")).encode() + content)
        answered = read_message(stream)
    if not answered:
        raise ConnectionResetError("no answer came")
    if int(answered.words[1]) >= 400:
        raise Refused(" ".join(answered.words[1:]))
    return answered.content


def serve(port: int, answer: Callable[[Message], tuple[int, bytes]]) -> None:
    """Answer on this port of loopback for ever, each connection in a thread of its own. `answer` returns the status and the
    content of the answer to a request."""
    with socket.create_server(("127.0.0.1", port), backlog=64) as listening:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_answer_all, args=(connection, answer), daemon=True).start()


def _answer_all(connection: socket.socket, answer: Callable[[Message], tuple[int, bytes]]) -> None:
    try:
        with connection, connection.makefile("rb") as stream:
            while request := read_message(stream):
                status, content = answer(request)
                head = f"HTTP/1.1 {status} told\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
                connection.sendall(head.encode() + content)
                if request.headers.get("connection") == "close":
                    break
    except OSError:  # whoever asked is gone
        pass
