"""The hosts and ports in addresses of servers, and whether a host is this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

WEB_PORTS = (443, 80)
"""The ports that are meant if a host is written without a port: HTTPS and HTTP."""


def host_of(url: str) -> str:
    """Return the host of a URL; the whole text if it has none."""
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def is_this_machine(host: str) -> bool:
    """Return whether a host name means this machine, without a DNS query. The folder of a Unix socket, which PostgreSQL takes
    for a host, counts as this machine too."""
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def host_and_port(url: str) -> tuple[str, int]:
    """Return the host and the port of a URL; port 0 if it has neither a port nor a web scheme. Raises ValueError."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


def hosts_and_ports(hosts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the hosts and ports in texts such as `HOST` and `HOST:PORT`. Raises ValueError for an invalid port."""
    for host in hosts:
        parts = urlsplit(f"//{host}" if host.count(":") < 2 or host.startswith("[") else f"//[{host}]")
        for port in WEB_PORTS if parts.port is None else (parts.port,):
            yield parts.hostname or host, port
