"""The proxy between this process and an endpoint, if the environment names one in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY.

These variables and NO_PROXY have the same meaning as for Python's `urllib.request`. NO_PROXY can also hold networks, such as
10.0.0.0/8.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

from bench.common.errors import EndpointError
from bench.run.openai.settings import is_loopback

ADDRESS_FORM = "its address must be http://HOST:PORT, with special characters of a password written as %XX"


@dataclass(frozen=True)
class Proxy:
    """The proxy that the environment variable `variable` names. `address` is without name and password; `authorization` is the
    header with both."""

    variable: str
    address: str
    password: str = field(default="", repr=False)
    authorization: str = field(default="", repr=False)


def proxy_to(url: str) -> Proxy | None:
    """Return the proxy for requests to `url`; None if no proxy is used, as for a loopback address. Raises EndpointError for an
    unusable proxy."""
    endpoint, proxies = urlsplit(url), getproxies()
    scheme = next((name for name in (endpoint.scheme, "all") if proxies.get(name)), None)
    if scheme is None or is_loopback(url) or proxy_bypass(endpoint.netloc) or _is_in_network(endpoint, proxies.get("no", "")):
        return None
    variable = f"{scheme.upper()}_PROXY"
    try:
        return _proxy(variable, proxies[scheme])
    except ValueError as error:
        problem = f"{variable} names no proxy that can be used: {error}"
        raise EndpointError(f"{problem}; or name {endpoint.hostname} in NO_PROXY, if no proxy is needed") from None


def _is_in_network(endpoint: SplitResult, no_proxy: str) -> bool:
    """Return whether the endpoint is in a network that NO_PROXY names."""
    for name in no_proxy.split(","):
        try:
            if "/" in name and ipaddress.ip_address(endpoint.hostname or "") in ipaddress.ip_network(
                name.strip(), strict=False
            ):
                return True
        except ValueError:  # a host name, or unreadable
            continue
    return False


def _proxy(variable: str, address_text: str) -> Proxy:
    """Parse a proxy's address. Raises ValueError, whose text does not quote the address, since that can hold a password."""
    try:
        parts = urlsplit(address_text if "://" in address_text else f"http://{address_text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(ADDRESS_FORM) from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("its address must begin with http:// or https://: SOCKS is not spoken here")
    if not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(ADDRESS_FORM)
    address = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    if parts.username is None:
        return Proxy(variable, address)
    name, password = map(_bytes, (parts.username, parts.password or ""))
    return Proxy(variable, address, password.decode(errors="replace"), f"Basic {b64encode(name + b':' + password).decode()}")


def _bytes(quoted: str) -> bytes:
    """Return the bytes that a URL-quoted text stands for."""
    return unquote_to_bytes(quoted.encode(errors="surrogateescape"))
