"""The kinds of stores. Each kind is one `StoreKind`, next to its class. Another package declares more in the entry-point group
`recovery_bench.stores`:

    [[store]]
    redis = "$REDIS_URL"       # the kind's name is the key of its address
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.common.addresses import host_of
from bench.common.registry import Part, Registry
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import StoreCopy


@dataclass(frozen=True)
class StoreSettings:
    """A store as its owner describes it.

    where      a path, or an address such as the DSN of a PostgreSQL database
    variables  variables that name the copy; `{store}` in a value is the copy's path or address
    ignore     the parts that are not read (`bench.probe.run.witness.ignored`)
    is_door    whether the agent's own transactions are calls, so that they pass the gateway
    """

    name: str
    kind: str
    where: str
    variables: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    is_door: bool = False


def _host_in(address: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the host of a URL, as the default of `StoreKind.hosts`."""
    del environment
    return (host_of(address),)


@dataclass(frozen=True)
class Leftovers:
    """The copies that a killed probe left on a server: how they are found and dropped.

    names   (address of the server) -> (name on the server, name in the note) of each copy that no process uses
    drop    (address of the server, name on the server) -> None; drops this copy
    """

    names: Callable[[str], Iterable[tuple[str, str]]]
    drop: Callable[[str, str], None]


@dataclass(frozen=True)
class StoreKind(Part):
    """A kind of store. Its name is the key that gives the path or address of a store in `probe.toml`.

    make        returns the copy of a store, which is not made yet; the folder is for copies that are files
    takes       the further settings that the kind has: `door`, `ignore`
    is_address  whether a store has an address, not a path. Then secrets in it are removed, no output contains it, `$NAME` in it
                is a variable, and its host must be this machine or be allowed
    must_be     what must exist at the path of a store before a probe
    hosts       returns the hosts of an address, given the owner's variables
    needs_box   whether such a store exists only in a box. Its address may be a secret, so its name is the kind's by default
    takes_sql   whether a copy takes SQL (`TakesQueries`)
    leftovers   how copies on a server are cleaned up; None if they end with the probe
    """

    make: Callable[[StoreSettings, Path, Encoding], StoreCopy]
    takes: frozenset[str] = frozenset()
    is_address: bool = False
    must_be: Literal["", "file", "folder"] = ""
    hosts: Callable[[str, Mapping[str, str]], tuple[str, ...]] = _host_in
    leftovers: Leftovers | None = None
    takes_sql: bool = False
    needs_box: bool = False

    def __post_init__(self) -> None:
        self.refuse_unknown("takes", self.takes, ("door", "ignore"))


STORE_KINDS = Registry("kind of store", StoreKind, plural="stores")


def is_address(store: StoreSettings) -> bool:
    """Return whether a store has an address, not a path."""
    return STORE_KINDS[store.kind].is_address
