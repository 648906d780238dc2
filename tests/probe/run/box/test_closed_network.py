"""What runs in a box reaches no server but those that are led to the gateway. The truth is told by servers of the outside, by
the counters of an interface, and by who answered."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from gates import ScriptedGate

from bench.common.errors import ConfigError
from bench.probe.run.box.closed_network import (
    TOO_MANY_CONNECTIONS,
    TOO_MANY_NAMES,
    UNREADABLE_HELLO,
    ClosedNetwork,
    ReachedPlace,
)
from bench.probe.run.box.names import NameTable
from bench.probe.run.gateway.database import DatabaseDoor
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import DatabaseServer
from bench.wire.agent_process import ProcessExit
from tests.probe.run.box.boxed import Boxed

HERE = Path(__file__).parents[4]
CONNECTS = """
import socket, sys
for host, port in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        with socket.create_connection((host, int(port)), 5) as connection:
            print(connection.recv(100).decode() or "closed")
    except OSError as error:
        print(type(error).__name__)
"""
SENDS = """
import socket, sys
with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM) as sending:
    sending.settimeout(5)
    sending.connect((sys.argv[1], int(sys.argv[2])))
    sending.send(b"x")
    try:
        sending.recv(1)
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boxed]:
    base = tmp_path_factory.mktemp("network")
    try:
        made = Boxed(base, base / "agent", base / "home")
    except ConfigError as error:
        pytest.skip(f"there is no box here: {error}")
    yield made
    made.box.close()


@asynccontextmanager
async def network_of(boxed: Boxed) -> AsyncIterator[ClosedNetwork]:
    async with ClosedNetwork(boxed.box, "agent", NameTable()) as network:
        network.forget_reached()
        yield network


def in_network(boxed: Boxed, work: Callable[[ClosedNetwork], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with network_of(boxed) as network:
            await work(network)

    asyncio.run(whole())


async def printed(boxed: Boxed, code: str, *words: str) -> list[str]:
    ended, text = await boxed._run([sys.executable, "-c", code, *words], boxed.environment)
    assert ended == ProcessExit(code=0), text
    return text.split("\n")


def says(line: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        writer.write(line.encode())
        writer.close()

    return serve


def test_a_declared_host_and_port_lead_to_who_answers_and_all_else_is_refused_by_name(boxed: Boxed) -> None:
    async def work(network: ClosedNetwork) -> None:
        await network.serve_at("api.shop.example", 8443, says("the gateway"), "http")
        lines = await printed(
            boxed, CONNECTS, "API.shop.example", "8443", "api.shop.example", "8444", "other.example", "8443", "192.0.2.7", "80"
        )
        assert lines == ["the gateway", *["ConnectionRefusedError"] * 3]
        network.read_refusals()
        led, *refused = [(place.name, place.port, place.kind) for place in network.reached]
        assert led == ("api.shop.example", 8443, "http")
        assert refused == [("api.shop.example", 8444, ""), ("other.example", 8443, ""), ("192.0.2.7", 80, "")]
        assert network.serves("api.shop.example", 8443) and not network.serves("api.shop.example", 8444)
        network.forget_reached()
        assert not network.reached

    in_network(boxed, work)


def test_a_server_of_the_machines_loopback_is_not_reached_and_is_named(boxed: Boxed) -> None:
    async def work(network: ClosedNetwork) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(0.1)
            port = listening.getsockname()[1]
            assert await printed(boxed, CONNECTS, "127.0.0.1", str(port)) == ["ConnectionRefusedError"]
            with pytest.raises(TimeoutError):
                listening.accept()
        network.read_refusals()
        assert list(network.reached) == [ReachedPlace("127.0.0.1", "127.0.0.1", port)]

    in_network(boxed, work)


def test_localhost_is_led_by_name_and_by_both_of_its_addresses(boxed: Boxed) -> None:
    async def work(network: ClosedNetwork) -> None:
        await network.serve_at("localhost", 11434, says("the model"))
        lines = await printed(
            boxed, CONNECTS, *(word for host in ("localhost", "127.0.0.1", "::1") for word in (host, "11434"))
        )
        assert lines[:2] == ["the model", "the model"] and lines[2] in ("the model", "OSError")

    in_network(boxed, work)


def test_addresses_of_ipv6_and_datagrams_are_refused_and_told(boxed: Boxed) -> None:
    async def work(network: ClosedNetwork) -> None:
        assert await printed(boxed, SENDS, "198.51.100.3", "8125") == ["ConnectionRefusedError"]
        told = [("198.51.100.3", 8125)]
        if socket.has_ipv6:
            assert await printed(boxed, CONNECTS, "2001:db8::7", "443") == ["ConnectionRefusedError"]
            assert await printed(boxed, SENDS, "2001:db8::8", "443") == ["ConnectionRefusedError"]
            told += [("2001:db8::7", 443), ("2001:db8::8", 443)]
        network.read_refusals()
        assert [(place.name, place.port) for place in network.reached] == told

    in_network(boxed, work)


def test_what_a_process_of_the_box_serves_itself_is_reached_and_not_told(boxed: Boxed) -> None:
    async def work(network: ClosedNetwork) -> None:
        code = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print(1)"
        assert await printed(boxed, code) == ["1"]
        network.read_refusals()
        assert not network.reached

    in_network(boxed, work)


def test_the_resolver_is_asked_over_datagrams_and_streams_whatever_nameserver_a_program_takes(boxed: Boxed) -> None:
    code = """
import socket, struct
asked = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + b"\\x04shop\\x07example\\0" + struct.pack("!HH", 1, 1)
for at in ("127.0.0.1", "127.0.0.53", "198.51.100.53"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(5)
        asking.connect((at, 53))
        asking.send(asked)
        print(socket.inet_ntoa(asking.recv(512)[-4:]))
with socket.create_connection(("198.51.100.53", 53)) as asking:
    asking.sendall(struct.pack("!H", len(asked)) + asked)
    print(socket.inet_ntoa(asking.recv(512)[-4:]))
print(socket.getaddrinfo("shop.example", 80, type=socket.SOCK_STREAM)[0][4][0])
"""

    async def work(network: ClosedNetwork) -> None:
        del network
        assert await printed(boxed, code) == [NameTable().address_of("shop.example")] * 5

    in_network(boxed, work)


def test_bytes_are_passed_on_to_a_real_host_and_back(boxed: Boxed) -> None:
    code = """
import socket
with socket.create_connection(("bank.example", 7000)) as asking:
    asking.sendall(b"x" * 1_000_000)
    asking.shutdown(socket.SHUT_WR)
    print(b"".join(iter(lambda: asking.recv(65536), b"")).decode())
"""

    async def counts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(str(len(await reader.read())).encode())
        writer.close()

    async def work(network: ClosedNetwork) -> None:
        async with await asyncio.start_server(counts, "127.0.0.1", 0) as real:
            port = real.sockets[0].getsockname()[1]
            await network.relay("bank.example", 7000, ("127.0.0.1", port))
            assert await printed(boxed, code) == ["1000000"]

    in_network(boxed, work)


GREETS = """
import socket, ssl, sys
context, sent, got = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
try:
    context.wrap_bio(got, sent, server_hostname=sys.argv[1]).do_handshake()
except ssl.SSLWantReadError:
    hello = sent.read()
if "pieces" in sys.argv:
    hello = hello[:3] + (9).to_bytes(2) + hello[5:14] + hello[:3] + (len(hello) - 14).to_bytes(2) + hello[14:]
with socket.create_connection(("bank.example", int(sys.argv[2]))) as asking:
    asking.sendall(hello)
    asking.shutdown(socket.SHUT_WR)
    try:
        print(asking.recv(100).decode())
    except ConnectionResetError:
        print()
"""


@pytest.mark.parametrize("port", [443, 8443])
def test_tls_for_another_host_at_a_real_ones_address_is_refused_and_named(boxed: Boxed, port: int) -> None:
    heard = list[bytes]()

    async def hears(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.write(b"the bank")
        writer.close()

    async def work(network: ClosedNetwork) -> None:
        async with await asyncio.start_server(hears, "127.0.0.1", 0) as real:
            await network.relay("bank.example", port, ("127.0.0.1", real.sockets[0].getsockname()[1]))
            assert await printed(boxed, GREETS, "BANK.example", str(port)) == ["the bank"]
            assert len(heard) == 1 and b"BANK.example" in heard[0]
            assert await printed(boxed, GREETS, "evil.example", str(port)) == [""]
            assert await printed(boxed, GREETS, "bank.example", str(port), "pieces") == [""]
        assert not b"".join(heard[1:])
        refused = [(place.name, place.port, place.why) for place in network.reached if not place.kind]
        why = "its client asked for it at the address of bank.example"
        assert refused == [("evil.example", port, why), ("bank.example", port, UNREADABLE_HELLO)]

    in_network(boxed, work)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ends", ["the network", "the run"])
def test_a_connection_to_a_real_server_ends_with_its_run_or_its_network_although_the_server_keeps_it(
    boxed: Boxed, ends: str
) -> None:
    async def keeps(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        await over.wait()
        writer.close()

    asks = "import socket; s = socket.create_connection(('bank.example', 7000)); s.sendall(b'x'); s.shutdown(1)"
    heard, over = list[bytes](), asyncio.Event()

    async def whole() -> None:
        async with await asyncio.start_server(keeps, "127.0.0.1", 0) as real:
            port = real.sockets[0].getsockname()[1]
            async with network_of(boxed) as network:
                await network.relay("bank.example", 7000, ("127.0.0.1", port))
                await printed(boxed, asks)
                await until(lambda: heard == [b"x"])
                assert open_connections(port) == 1
                if ends == "the run":
                    network.forget_reached()
                    await until(lambda: not open_connections(port))
            assert not open_connections(port)
            over.set()

    asyncio.run(whole())


def open_connections(port: int) -> int:
    """Return how many connections to a port of this machine a process holds open, as the kernel tells."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(line[2].rpartition(":")[2], 16) == port and line[9] != "0" for line in lines)


def test_questions_that_never_end_leave_others_their_turn(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.probe.run.box.closed_network.MAX_READS_PER_TURN", 3)

    async def work(network: ClosedNetwork) -> None:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks,
        ):
            asked.bind(("127.0.0.1", 0))
            asked.setsockopt(socket.IPPROTO_IP, 8, 1)  # the address at which it is asked
            asks.connect(asked.getsockname())
            for sock in (asked, asks):
                sock.setblocking(False)
            for _ in range(5):
                asks.send(struct.pack("!6H", 7, 256, 1, 0, 0, 0) + b"\x04shop\x07example\0" + struct.pack("!HH", 1, 1))
            for answers in (3, 2):
                network._answer(asked)
                assert sum(1 for _ in range(answers) if asks.recv(512)) == answers
                with pytest.raises(BlockingIOError):
                    asks.recv(512)
        asyncio.get_running_loop().remove_reader(network._packets)
        await printed(boxed, CONNECTS, *(word for port in range(2000, 2005) for word in ("192.0.2.7", str(port))))
        for refused in (1, 3):  # a refusal comes twice: as it is sent, and as it arrives
            network.read_refusals()
            assert len(network.reached) == refused
        asyncio.get_running_loop().add_reader(network._packets, network.read_refusals)

    in_network(boxed, work)


def test_a_name_too_many_is_told(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.probe.run.box.names.MAX_NAMES", 2)
    code = """
import socket
for host in ("a.example", "b.example", "c.example"):
    try:
        print(socket.gethostbyname(host)[:5])
    except OSError as error:
        print(type(error).__name__)
"""

    async def work(network: ClosedNetwork) -> None:
        assert await printed(boxed, code) == ["198.1", "198.1", "gaierror"]
        assert [place.why for place in network.reached] == [TOO_MANY_NAMES]

    in_network(boxed, work)


def test_connections_beyond_the_bound_are_refused_until_others_end(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.probe.run.box.closed_network.MAX_OPEN_CONNECTIONS", 2)
    code = """
import socket
def asked():
    connection = socket.create_connection(("shop.example", 80), 5)
    try:
        return connection, connection.recv(1).decode() or "closed"
    except OSError:
        return connection, "closed"
held = [asked() for _ in range(3)]
print(*[said for _, said in held])
held[0][0].close()
while (last := asked()[1]) == "closed":
    pass
print(last)
"""

    async def holds(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x")
        await reader.read()
        writer.close()

    async def work(network: ClosedNetwork) -> None:
        await network.serve_at("shop.example", 80, holds)
        assert await printed(boxed, code) == ["x x closed", "x"]
        [refused] = [place for place in network.reached if not place.kind]
        assert (refused.place, refused.why) == ("shop.example:80", TOO_MANY_CONNECTIONS)

    in_network(boxed, work)


def test_a_process_that_can_have_no_more_files_waits_and_then_accepts_connections_with_tls(
    boxed: Boxed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.probe.run.box.closed_network.ACCEPT_PAUSE_S", 0.3)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def work(network: ClosedNetwork) -> None:
        await network.serve_at("shop.example", 443, says("x"), tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        [address] = network.addresses_of("shop.example")
        [calling] = boxed.box.sockets("agent", [("caller", address, 0)])
        with calling:
            os.close(lowest := os.dup(0))
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
            try:
                calling.connect((address, 443))
                calling.sendall(b"no TLS at all")
                before = time.process_time()
                await asyncio.sleep(0.6)
                took = time.process_time() - before
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert took < 0.3 and not network.reached
            await until(lambda: bool(network.reached))
        [refused] = network.reached
        assert "no TLS" in refused.why

    in_network(boxed, work)


def test_a_server_that_runs_in_the_other_network_is_reached_from_outside_alone(boxed: Boxed) -> None:
    code = "import socket; s = socket.create_server(('127.0.0.1', 8000)); print(flush=True); s.accept()[0].sendall(b'served')"

    async def work(network: ClosedNetwork) -> None:
        async with ClosedNetwork(boxed.box, "servers", NameTable()) as servers:
            serving = boxed.started([sys.executable, "-c", code], boxed.environment, boxed.box.servers_namespaces)
            try:
                async with asyncio.timeout(20):
                    while not serving.output.written:  # noqa: ASYNC110  nobody tells
                        await asyncio.sleep(0.01)
                assert await printed(boxed, CONNECTS, "127.0.0.1", "8000") == ["ConnectionRefusedError"]
                reader, writer = await servers.connect("localhost", 8000)
                assert await reader.read() == b"served"
                writer.close()
            finally:
                await serving.close()
        network.read_refusals()
        assert [place.port for place in network.reached] == [8000]

    in_network(boxed, work)


def test_a_database_is_asked_at_its_own_host_and_port_and_the_copy_answers(boxed: Boxed, server: str) -> None:
    import psycopg  # noqa: PLC0415  an extra

    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute('CREATE DATABASE "closed_network_copy"')
        listening = DatabaseServer(session.info.host, session.info.port)

    class Copy(PostgresStore):
        def server_and_names(self) -> tuple[DatabaseServer, tuple[str, str]]:
            return listening, ("shop", "closed_network_copy")

    numbers, gate = itertools.count(1), ScriptedGate()
    stores = [Copy("shop", "dbname=shop", Encoding(frozenset(), b""), {})]
    door = DatabaseDoor(listening, stores, DoorContext(lambda: gate, lambda: next(numbers), lambda: 1))
    code = """
import psycopg
print(psycopg.connect("postgresql://tester@db.example/shop").execute("SELECT current_database()").fetchone()[0])
try:
    psycopg.connect("postgresql://tester@db.example/postgres")
except psycopg.OperationalError as error:
    print("box" in str(error) or error)
"""

    async def work(network: ClosedNetwork) -> None:
        await network.serve_at("db.example", 5432, door.serve, "postgres")
        assert await printed(boxed, code) == ["closed_network_copy", "True"]

    in_network(boxed, work)


COUNTS = """
import asyncio, json, sys
from pathlib import Path
from bench.probe.run.box.closed_network import ClosedNetwork
from bench.probe.run.box.names import NameTable
from tests.probe.run.box.boxed import Boxed

TRIES = '''
import socket, sys
named = [("bank.example", 443)] if "boxed" in sys.argv else []  # a real resolver would be waited for
for host, port in (("192.0.2.7", 443), ("198.18.3.4", 80), ("10.9.0.1", 5432), ("2001:db8::7", 443), *named):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as trying:
                trying.settimeout(0.2)
                trying.connect((host, port))
                trying.send(b"x")
        except OSError:
            pass
'''

def packets():
    lines = Path("/proc/net/dev").read_text().splitlines()
    return sum(int(line.split()[10]) for line in lines if line.strip().startswith("out:"))

async def boxed_packets(boxed):
    async with ClosedNetwork(boxed.box, "agent", NameTable()) as network:
        before = packets()
        ended, text = await boxed._run([sys.executable, "-c", TRIES, "boxed"], boxed.environment)
        assert ended.code == 0, text
        return packets() - before, len(network.reached)

base = Path(sys.argv[1])
boxed = Boxed(base, base / "agent", base / "home")
inside, refused = asyncio.run(boxed_packets(boxed))
before = packets()
exec(TRIES)
print(json.dumps([inside, refused, packets() - before]))
boxed.box.close()
"""


OUTSIDE = (
    "ip link set lo up && ip link add out type veth peer name far && ip link set out addrgenmode none arp off up "
    "&& ip link set far addrgenmode none up && ip address add 10.9.0.2/24 dev out && ip route add default dev out "
)
"""A network with an interface to which all leads that is not loopback."""


def run_outside(*words: str, more: str = '&& exec "$@"') -> str:
    """Run a program in a network with an interface, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["unshare", "-Urnm", "sh", "-c", OUTSIDE + more, "sh", sys.executable, *words]
    try:
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"it cannot be started here: {error}")
    if done.returncode and "Unknown device type" in done.stderr:
        pytest.skip(f"no interface can be made here: {done.stderr.strip()}")
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def test_no_packet_leaves_by_the_machines_interface(tmp_path: Path, boxed: Boxed) -> None:
    del boxed  # there are boxes here
    inside, refused, unboxed = json.loads(run_outside("-c", COUNTS, str(tmp_path)))
    assert inside == 0 and refused == 5 and unboxed >= 4  # the counter counts what the same tries send without a box


@pytest.mark.slow
def test_no_packet_leaves_while_agents_call_over_tls_send_mail_and_call_mcp(boxed: Boxed) -> None:
    del boxed
    places = ("tests/probe/run/box/test_tls_in_network.py", "tests/probe/run/box/test_agent_in_network.py")
    words = ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
    printed = run_outside(*words, *places, "tests/probe/run/gateway/test_outbox_doors.py", more='&& "$@" && cat /proc/net/dev')
    [line] = [line for line in printed.splitlines() if line.strip().startswith("out:")]
    [summary] = [line for line in printed.splitlines() if " passed" in line]
    assert int(line.split()[10]) == 0 and "skipped" not in summary, printed
