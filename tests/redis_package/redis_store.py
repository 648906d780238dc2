"""A store in Redis, as a package of somebody else brings it: this file, and an entry point. The copy is another database of the
same server."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bench.common.errors import ConfigError
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import StoreCopy
from bench.record.probe_rows import StoreReading

COPY = 9
"""The database of the copy."""


class RedisStore(StoreCopy):
    """The keys and texts of one database of Redis."""

    def __init__(self, settings: StoreSettings, encoding: Encoding) -> None:
        self.name, self._settings, self._encoding = settings.name, settings, encoding
        self._first: dict[str, str] | None = None

    @property
    def replaces(self) -> Mapping[str, str]:
        return {self._settings.where: self._copy}

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: text.replace("{store}", self._copy) for name, text in self._settings.variables.items()}

    @property
    def _copy(self) -> str:
        return f"{self._settings.where.rpartition('/')[0]}/{COPY}"

    def make(self) -> None:
        if self._content(self._copy):
            raise ConfigError(f"store {self.name!r}: database {COPY} of its server is not empty")
        self._first = self._content(self._settings.where)
        self.reset()

    def reset(self) -> None:
        asked(self._copy, ["FLUSHDB"], *(["SET", key, value] for key, value in (self._first or {}).items()))

    def read(self, most: int) -> StoreReading:
        first, now = self._first or {}, self._content(self._copy)
        alike, rows = Counter[str](), []
        for key in sorted({*first, *now}):
            if first.get(key) != now.get(key):
                pair = tuple((key, side[key]) if key in side else None for side in (first, now))
                rows.append(self._encoding.difference(self.name, "keys", ("key",), ("key", "value"), (pair[0], pair[1]), alike))
        digest = self._encoding.digest(repr(sorted(now.items())).encode())
        return StoreReading(digest, tuple(rows[:most]), max(0, len(rows) - most))

    def has_changed(self, *, surely: bool = False) -> bool:
        del surely
        return self._first is not None and self._content(self._settings.where) != self._first

    def keep_backup(self) -> str:
        return "nowhere: Redis has a dump of its own"

    def remove(self) -> None:
        if self._first is not None:
            asked(self._copy, ["FLUSHDB"])
            self._first = None

    def _content(self, address: str) -> dict[str, str]:
        keys = [key for key in asked(address, ["KEYS", "*"])[0].split("\n") if key]
        return dict(zip(keys, asked(address, *(["GET", key] for key in keys)), strict=True))


def asked(address: str, *commands: list[str]) -> list[str]:
    """Return the answers of a server to commands in the database of an address; of a list, its members in lines."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port)) as connection, connection.makefile("rwb") as file:
        answers = []
        for words in (["AUTH", parts.password or ""], ["SELECT", parts.path[1:]], *commands):
            file.write(
                b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words)
            )
            file.flush()
            answers.append(_answer(file.readline().decode().strip(), file.readline, file.read))
        return answers[2:]


def _answer(head: str, line: Callable[[], bytes], read: Callable[[int], bytes]) -> str:
    if head[0] == "-":
        raise ConfigError(f"Redis answers {head[1:]}")
    if head[0] == "*":
        return "\n".join(_answer(line().decode().strip(), line, read) for _ in range(int(head[1:])))
    return read(int(head[1:]) + 2)[:-2].decode() if head[0] == "$" else head[1:]


def store(settings: StoreSettings, folder: Path, encoding: Encoding) -> RedisStore:
    """Return a copy, of which nothing is made yet."""
    del folder
    return RedisStore(settings, encoding)


KIND = StoreKind("redis", store, is_address=True)
