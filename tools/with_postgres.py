"""Start a PostgreSQL server (Debian: postgresql) on a port of loopback for the time of a command:

PYTHONPATH=tools python -m with_postgres PORT COMMAND WORD ...
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres(folder: Path, port: int = 0, *, tls: bool = False) -> Iterator[str]:
    """Start a PostgreSQL server (Debian: postgresql) with its data in a folder, which speaks `tls` if that is asked for. Yields
    its address, or "" if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        yield ""
        return
    programs, data, port = found[-1].parent, folder / "postgres", port or free_port()
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    as_user: list[str] = []
    if os.getuid() == 0:  # the server refuses to run as root
        shutil.chown(data, "postgres")
        as_user = ["runuser", "--user", "postgres", "--"]
    options = f"-p {port} -k {data} -h 127.0.0.1 -F"
    control = [*as_user, str(programs / "pg_ctl"), "--silent", "--pgdata", str(data / "data")]
    made = ["--pgdata", str(data / "data"), "--auth", "trust", "--username", "postgres", "--no-sync"]
    subprocess.run([*as_user, str(programs / "initdb"), *made], check=True, stdout=subprocess.DEVNULL, cwd="/")
    if tls:
        options += " -c ssl=on"
        files = ["-keyout", str(data / "data" / "server.key"), "-out", str(data / "data" / "server.crt")]
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", *files]
        subprocess.run([*as_user, *words], check=True, cwd="/", stderr=subprocess.DEVNULL)
    started = [*control, "--options", options, "--log", str(data / "log"), "--wait", "start"]
    subprocess.run(started, check=True, cwd="/", stdout=subprocess.DEVNULL)
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}"
    finally:
        subprocess.run([*control, "--mode", "immediate", "stop"], check=False, cwd="/")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def main(port: int, command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # the server runs as another user than root
        with postgres(folder, port) as address:
            if not address:
                sys.exit("PostgreSQL's server is not installed: apt install postgresql")
            return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
