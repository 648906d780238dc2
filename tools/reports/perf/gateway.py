"""What the probe's gateway adds to a call of an HTTP service that no fault touches: `python tools/reports/perf/gateway.py`.

A call goes from a client to a service on this machine, alone and through the gateway, in turns. All of the gateway's own work
counts: it parses, keeps its journal, and asks whether a store has changed. The store is a SQLite database of 200 rows that does
not change. The answer that comes through has to be the service's, byte by byte.
It ends with exit code 1 if the median call takes more than a millisecond of processor time more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from statistics import median

from bench.common.digests import digest_of
from bench.probe.run.gateway.fault_injector import FaultInjector
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.gateway.journal import Journal
from bench.probe.run.gateway.listener import AgentListener
from bench.probe.run.gateway.subject import Service
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores

CALLS, LONGEST = 400, 1.0
BODY = b'{"bill": "b 7", "cents": 12000}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def milliseconds_of(stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes) -> float:
    """Return the processor time of one call: of the client, the service, and what stands between them."""
    reader, writer = stream
    began = time.process_time()
    writer.write(request)
    answer = await reader.readexactly(len(ANSWER))
    took = 1000 * (time.process_time() - began)
    if answer != ANSWER:
        raise RuntimeError(f"not the service's answer: {answer!r}")
    return took


def request_to(path: str, port: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY


async def measure(folder: Path) -> tuple[float, float]:
    """Return the median milliseconds of a call alone and through the gateway."""
    shop = folder / "shop.db"
    with closing(sqlite3.connect(shop)) as database:
        database.execute("CREATE TABLE payment (id INTEGER PRIMARY KEY, cents INTEGER)")
        database.executemany("INSERT INTO payment (cents) VALUES (?)", [(number,) for number in range(200)])
        database.commit()
    stores = Stores.of([StoreSettings("shop", "sqlite", str(shop))], folder / "copies", 0.0, secret=b"of this measurement")
    await stores.make()
    await stores.reset()
    journal = Journal(lambda value: value, lambda *call: digest_of(repr(call)), stores)
    journal.begin(await stores.read())

    async def nobody_dies() -> None:
        raise RuntimeError

    gate, numbers = FaultInjector(journal, None, 1.0, nobody_dies), count(1)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with AgentListener(DoorContext(lambda: gate, lambda: next(numbers), lambda: 1)) as listener:
        path = listener.add_service(Service("bank", "BANK_URL", f"http://127.0.0.1:{port}")).removeprefix(listener.address)
        alone = await asyncio.open_connection("127.0.0.1", port)
        through = await asyncio.open_connection("127.0.0.1", listener.port)
        pairs = [
            (
                await milliseconds_of(alone, request_to("/pay", port)),
                await milliseconds_of(through, request_to(f"{path}/pay", listener.port)),
            )
            for _ in range(CALLS)
        ]
        for _, writer in (alone, through):
            writer.close()
    server.close()
    await stores.remove()
    if len(journal.calls) != CALLS:
        raise RuntimeError(f"the gateway saw {len(journal.calls)} calls")
    return median(each for each, _ in pairs), median(each for _, each in pairs)


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        alone, through = asyncio.run(measure(Path(made)))
    print(f"a call alone: {alone:.2f} ms of processor time; through the gateway: {through:.2f} ms; {CALLS} calls each")
    return int(through - alone > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
