"""The addresses of what a probe calls: which are on this machine, and which are real."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit


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
