"""The addresses of what a probe calls: which are on this machine, and which are real."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

WEB = (443, 80)
"""The ports of a host that is named without one."""


@dataclass(frozen=True)
class Address:
    """Where a server, a service, a database or the model is.

    what       what is there, in words
    url        as the owner's file has it; "" if that can hold a password
    hosts      where that leads
    is_real    whether it runs already, so that each call is one of something that the probe neither starts nor resets
    is_struck  whether faults strike calls to it that can have effects
    """

    what: str
    url: str
    hosts: tuple[str, ...]
    is_real: bool = False
    is_struck: bool = True


def host_of(url: str) -> str:
    """Return the host of a URL; all of the text if it names none."""
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def is_here(host: str) -> bool:
    """Return whether a host is this machine by its name alone: no resolver is asked. The folder of a socket is one."""
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def place_of(url: str) -> tuple[str, int]:
    """Return the host and the port of a URL; port 0 if it names neither a port nor a scheme of the web. Raises ValueError."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


def places_of(hosts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the hosts and ports that `HOST` and `HOST:PORT` mean. Raises ValueError for a port that is none."""
    for host in hosts:
        parts = urlsplit(f"//{host}" if host.count(":") < 2 or host.startswith("[") else f"//[{host}]")
        for port in WEB if parts.port is None else (parts.port,):
            yield parts.hostname or host, port
