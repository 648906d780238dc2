"""A PostgreSQL server of the tests' own, in a folder that is removed. Whoever comes over loopback needs a password."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

ROOM = 2**30
"""Bytes."""


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The words of a DSN that lead to the server, without a database. It refuses to run as root, and then runs as another."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'recovery-bench[probe]'")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name.zfill(3))
    initdb = shutil.which("initdb", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, reversed(programs))]))
    if initdb is None:
        pytest.skip("PostgreSQL's server is not installed: apt install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_in_memory()))
    user = _unprivileged()
    try:
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        words = [
            initdb,
            "-D",
            str(folder / "data"),
            "-U",
            "tester",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(words, check=True, capture_output=True, cwd=folder, **identity)  # type: ignore[call-overload]
        port = _free_port()
        for name, content in zip(("server.crt", "server.key"), certificate(), strict=True):
            file = folder / "data" / name
            file.write_bytes(content)
            file.chmod(0o600)
            if user:
                os.chown(file, user.pw_uid, user.pw_gid)
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all older 127.0.0.1/32 md5\n{rules.read_text()}")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": str(folder),
            "ssl": "on",
            "fsync": "off",
            "autovacuum": "off",
            "shared_buffers": "16MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        program = Path(initdb).with_name("postgres")
        words = [str(program), "-D", str(folder / "data"), *options]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, cwd=folder, **identity) as process:  # type: ignore[call-overload]
            try:
                dsn = f"host={folder} port={port} user=tester"
                _wait(dsn, process)
                yield dsn
            finally:
                process.send_signal(signal.SIGQUIT)
                process.wait()
    finally:
        shutil.rmtree(folder)


def certificate() -> tuple[bytes, bytes]:
    """Return a certificate for 127.0.0.1 that trusts itself, and its key."""
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a server")]), datetime.now(UTC)
    key, day = ec.generate_private_key(ec.SECP256R1()), timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), text


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _in_memory() -> str | None:
    """Return a folder in memory that has room for the server, or None. There a database is made in a fifth of the time."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM else None


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PostgreSQL's server refuses to run as root, and there is no user 'postgres' or 'nobody'")


def _wait(dsn: str, process: subprocess.Popen[bytes]) -> None:
    import psycopg  # noqa: PLC0415  an extra

    for _ in range(200):
        assert process.poll() is None, "the server ended"
        try:
            psycopg.connect(f"{dsn} dbname=postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server did not start")
