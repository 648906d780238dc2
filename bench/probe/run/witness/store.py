"""The operations that the probe needs from a store of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from bench.probe.run.addresses import is_this_machine
from bench.record.probe_rows import StoreReading


@dataclass(frozen=True)
class DatabaseServer:
    """Where a server of databases listens.

    host     a name, an address, or the folder of its socket
    mode     libpq's `sslmode`
    address  its `hostaddr`, which is dialled if there is one; the host is then the name in the server's certificate
    roots    its `sslrootcert` if that is a file
    """

    host: str
    port: int
    mode: str = ""
    address: str = ""
    roots: str = ""

    @property
    def demands_tls(self) -> bool:
        return self.mode in ("require", "verify-ca", "verify-full")

    @property
    def tries_tls(self) -> bool:
        """Whether the way to it is encrypted where it offers that."""
        return not self.socket and (self.demands_tls or (self.mode in ("", "prefer") and not is_this_machine(self.host)))

    @property
    def socket(self) -> str:
        """The path of its socket; "" if it has none."""
        return str(Path(self.host).resolve() / f".s.PGSQL.{self.port}") if self.host.startswith("/") else ""


class StoreCopy(ABC):
    """One worker's copy of a store that the owner named. A copy is made by the probe, has a name that says so, and is removed.

    name         the owner's name for it
    replaces     what stands for the owner's store in commands, arguments, configs and variables (a path, a DSN) -> what stands
                 there for the copy
    environment  variables that hand the copy over, as the owner asked
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
        """Make the copy, and the state to which it is reset. Raises ConfigError in one line; leaves nothing behind then."""

    @abstractmethod
    def reset(self) -> None:
        """Bring the copy back to its first state. Nothing may have it open."""

    @abstractmethod
    def read(self, most: int) -> StoreReading:
        """Return the digest of its content, and the rows that differ from the first state, at most `most`.

        Equal content has one digest, whatever bytes lie on disk. Raises ConfigError if it cannot be read.
        """

    @abstractmethod
    def has_changed(self, *, surely: bool = False) -> bool:
        """Return whether the owner's store holds something else than when it was copied, or cannot be read any more. If there
        is no copy, the answer is False. `surely`: even if that takes long."""

    @abstractmethod
    def keep_backup(self) -> str:
        """Leave the first state where it is when the copy is removed. Return where that is, and how it is restored."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the copy. This can be called again."""

    def stamp(self) -> Hashable:
        """Return what is equal to an earlier stamp only if nothing was written since then; None if nobody can tell. This takes
        no more than a moment."""
        return None

    def recheck(self) -> None:  # noqa: B027  most kinds need not
        """Read all of it at the next reading, whatever the system says that was written."""

    def snapshot(self, most: int) -> Callable[[], StoreReading]:
        """Begin a reading, and return the function that ends it. What is written between both is not in it."""
        reading = self.read(most)
        return lambda: reading


class StoreWithoutOriginal(StoreCopy):
    """What stands for no store of the owner's: nothing of it is copied, and there is nothing to restore."""

    def make(self) -> None:
        """Make nothing."""

    def has_changed(self, *, surely: bool = False) -> bool:
        """Return False: it has no original."""
        del surely
        return False

    def keep_backup(self) -> str:
        """Return nothing, since there is no original."""
        return ""


@runtime_checkable
class TakesQueries(Protocol):
    """A copy that takes SQL: it can be asked by a query of the owner's, and changed as another writer does."""

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows that a query answers, which cannot change the copy."""

    def change(self, sql: str) -> None:
        """Change the copy by one statement. Raises ConfigError."""
