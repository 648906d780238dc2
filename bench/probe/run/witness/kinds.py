"""The kinds of stores. A kind is one entry: ours stand beside their classes, and another package declares its own in the group
`recovery_bench.stores` of its entry points:

    [[store]]
    redis = "$REDIS_URL"       # the kind's name is the key of its place
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.common.registry import Part, Registry
from bench.probe.run.addresses import host_of
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import StoreCopy


@dataclass(frozen=True)
class StoreSettings:
    """A store as its owner named it.

    where      a path, or an address such as the DSN of a PostgreSQL database
    variables  variables that hand the copy over; `{store}` in a value is the copy's path or address
    ignore     what no witness reads (`bench.probe.run.witness.ignored`)
    is_door    whether the agent's own transactions are calls, which pass the gateway
    """

    name: str
    kind: str
    where: str
    variables: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    is_door: bool = False


def _host_in(address: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    del environment
    return (host_of(address),)


@dataclass(frozen=True)
class Leftovers:
    """How what a killed probe left on a server is found and dropped.

    names   takes the address, and yields what nobody holds: its name there, and the name that was noted of it
    drop    takes the address and a name there
    """

    names: Callable[[str], Iterable[tuple[str, str]]]
    drop: Callable[[str, str], None]


@dataclass(frozen=True)
class StoreKind(Part):
    """A kind of store; its name is the key that gives the place of such a store.

    make       returns the copy of a store, of which nothing is made yet; its folder is for copies that are files
    takes      what an owner can say of it besides its place: `door`, `ignore`
    is_address whether its place is an address. The secrets in an address are blotted, it is in no output, `$NAME` stands in it
               for a variable, and its host has to be this machine or be allowed
    must_be    what has to be at its path before a probe
    hosts      returns the hosts to which an address leads, with the owner's variables
    needs_box  whether there is such a store in a box alone. Its address can be a secret, and its name is then its kind's
    takes_sql  whether its copy takes SQL (`TakesQueries`)
    leftovers  how copies on a server are cleaned; None if they end with the probe
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
    """Return whether an address says where a store is, and no path."""
    return STORE_KINDS[store.kind].is_address
