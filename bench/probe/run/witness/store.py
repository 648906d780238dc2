"""The interface of a store: the operations that the probe needs from a database, a folder or another kind of store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from bench.common.addresses import is_this_machine
from bench.record.probe_rows import StoreReading


@dataclass(frozen=True)
class DatabaseServer:
    """The address of a database server.

    host     a name, an address, or the folder of its socket
    mode     libpq's `sslmode`
    address  libpq's `hostaddr`, the address to connect to; "" if it is not given. If it is, the host is only the name in the
             server's certificate
    roots    libpq's `sslrootcert`, if this is a file
    """

    host: str
    port: int
    mode: str = ""
    address: str = ""
    roots: str = ""

    @property
    def demands_tls(self) -> bool:
        """Whether `sslmode` demands TLS."""
        return self.mode in ("require", "verify-ca", "verify-full")

    @property
    def tries_tls(self) -> bool:
        """Whether a connection uses TLS if the server offers TLS."""
        return not self.socket and (self.demands_tls or (self.mode in ("", "prefer") and not is_this_machine(self.host)))

    @property
    def socket(self) -> str:
        """The path of the server's socket; "" if it has none."""
        return str(Path(self.host).resolve() / f".s.PGSQL.{self.port}") if self.host.startswith("/") else ""


class StoreCopy(ABC):
    """One worker's copy of a store that the owner named. The probe makes the copy, gives it a name that says so, and removes
    it.

    name         the owner's name for the store
    replaces     the owner's path or DSN in commands, configs and variables -> the path or DSN of the copy
    environment  variables that name the copy, as the owner asked
    """

    name: str

    @property
    def replaces(self) -> Mapping[str, str]:
        return {}

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    @abstractmethod
    def make(self) -> None:
        """Make the copy, and save the state to which it is reset. If this fails, remove the copy, and raise ConfigError with
        one line."""

    @abstractmethod
    def reset(self) -> None:
        """Reset the copy to its first state. No process may have it open."""

    @abstractmethod
    def read(self, most: int) -> StoreReading:
        """Return the digest of the content, and the rows that differ from the first state, at most `most`.

        Equal content has the same digest, even if the bytes on disk differ. Raises ConfigError if the copy cannot be read.
        """

    @abstractmethod
    def has_changed(self, *, surely: bool = False) -> bool:
        """Return whether the owner's store has other content than when it was copied, or cannot be read any more; False if
        there is no copy. `surely`: compare the content even if that takes long."""

    @abstractmethod
    def keep_backup(self) -> str:
        """Keep the first state when the copy is removed. Return where it is, and how to restore it."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the copy. This may be called again."""

    def stamp(self) -> Hashable:
        """Return a value that equals an earlier stamp only if nothing was written in between; None if writes cannot be
        noticed. This must be quick."""
        return None

    def recheck(self) -> None:  # noqa: B027  most kinds need not
        """Read the whole store at the next reading, even if the system reports no writes."""

    def snapshot(self, most: int) -> Callable[[], StoreReading]:
        """Begin a reading, and return the function that completes it. Later writes are not in the reading."""
        reading = self.read(most)
        return lambda: reading


class StoreWithoutOriginal(StoreCopy):
    """A store without an original of the owner's: nothing is copied, and nothing can be restored."""

    def make(self) -> None:
        """Do nothing, since there is no original."""

    def has_changed(self, *, surely: bool = False) -> bool:
        """Return False, since there is no original that could change."""
        del surely
        return False

    def keep_backup(self) -> str:
        """Return "", since there is no original."""
        return ""


@runtime_checkable
class TakesQueries(Protocol):
    """A copy that takes SQL: queries of the owner's, and statements of another writer."""

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows of a query, which cannot change the copy."""

    def change(self, sql: str) -> None:
        """Execute one statement on the copy. Raises ConfigError."""
