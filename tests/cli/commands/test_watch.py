"""`bench watch`, asked by a real client: a page for who has the token, of a run that goes on."""

from __future__ import annotations

import re
import signal
import socket
import struct
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from commands import bench, start, workplace


def asked(address: str, method: str = "GET") -> tuple[int, str]:
    """Status and body."""
    host, _, path = address.removeprefix("http://").partition("/")
    connection = HTTPConnection(host, timeout=10)
    try:
        connection.request(method, f"/{path}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_run_is_watched_while_it_goes_on_by_whoever_has_the_token(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=2)
    assert bench(tmp_path, "run", "configs/small.toml", "--shard", "1/2", "--name", "half")[0] == 0
    assert bench(tmp_path, "run", "configs/small.toml", "--max-tokens", "0", "--name", "run")[0] == 1
    with start(tmp_path, "watch", "run") as watching:
        screen = watching.wait_until_said("the run goes on")
        match = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", screen)
        assert match
        address = match[0]
        status, page = asked(address)
        assert status == 200 and "0 of 8 trials are recorded" in page
        assert bench(tmp_path, "run", "configs/small.toml", "--name", "run")[0] == 0, "it is not hindered"
        assert "8 of 8 trials are recorded" in asked(address)[1]
        for other in (address[:-1], address.partition("?")[0], address.replace("token", "other")):
            assert asked(other)[0] == 403 and "demo" not in asked(other)[1]
        assert asked(address.replace("/?", "/etc/passwd?"))[0] == 404
        assert asked(address, "POST")[0] == asked(address, "DELETE")[0] == 501
        watching.send_signal(signal.SIGTERM)
        assert watching.ended(10)[::2] == (143, "bench watch: stopped; no file is half written\n")
    with start(tmp_path, "watch", "half") as watching:
        address = watching.wait_until_said("the run goes on").split()[1]
        assert "ended (complete)" in asked(address)[1]


def test_what_cannot_be_watched_is_one_line(tmp_path: Path) -> None:
    code, out, err = bench(tmp_path, "watch", "nothing")
    assert code == 2 and not out and re.fullmatch(r"bench: results/nothing: holds no run .*\n", err)


def test_a_request_that_cannot_be_read_and_a_run_that_went_away_print_no_traceback(tmp_path: Path) -> None:
    workplace(tmp_path)
    assert bench(tmp_path, "run", "configs/small.toml", "--max-tokens", "0", "--name", "run")[0] == 1
    with start(tmp_path, "watch", "run") as watching:
        address = watching.wait_until_said("the run goes on").split()[1]
        port = urlsplit(address).port or 0
        for line in (
            b"GET http://[ HTTP/1.1",
            b"GET http://[::x]/ HTTP/1.1",
            b"GET //[",
            b"GET / HTTP/x",
            b"\xff\xfe",
            b"GET / HTTP/1.1 y",
        ):
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(line + b"\r\n\r\n")
                assert b"200" not in connection.recv(100)
        with socket.create_connection(("127.0.0.1", port), 10) as connection:  # it goes away with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(b"GET /")
        (tmp_path / "results/run").rename(tmp_path / "results/aside")
        status, page = asked(address)
        assert status == 500 and "run bench watch again" in page
        watching.send_signal(signal.SIGINT)
        code, _, err = watching.ended(10)
    assert code == 130 and "Traceback" not in err and "Error" not in err
