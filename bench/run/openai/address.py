"""An endpoint's address: its form for records and messages, and its form for requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from bench.wire.blotting import BLOT

VERSION = "api-version"
"""The parameter of a query that names the version of Azure's API."""
PLAIN = frozenset({"apiversion", "version"})
"""Names of parameters, however spelt, whose values are no secrets."""


class EndpointAddress(str):
    """An endpoint's address, up to `/chat/completions`, in one spelling, since calls are limited per endpoint. Its text can be
    shown and recorded: the values in its query are replaced by a mark, unless a value is a version."""

    path: str
    """The address without its query."""
    query: Mapping[str, str]
    """The parameters of its query, as they are sent with every request."""

    def __new__(cls, url: str) -> EndpointAddress:
        """Parse a base URL. Raises ValueError if it is none, or contains a password. Parameters that may be secret are masked
        in the text of the address."""
        if isinstance(url, EndpointAddress):
            return url
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must be an http:// or https:// address")
        if "@" in parts.netloc or parts.fragment:
            raise ValueError("base_url may hold no user, password or fragment; keys come from the environment")
        query = _parameters(parts)
        path = parts.path.rstrip("/")
        if path.endswith("/chat/completions"):
            raise ValueError("base_url must end before /chat/completions, and a query stands behind that end")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        bare = f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{path}"
        shown = "&".join(f"{quote(name)}={quote(value) if _is_plain(name) else BLOT}" for name, value in query.items())
        address = super().__new__(cls, f"{bare}?{shown}" if shown else bare)
        address.path, address.query = bare, MappingProxyType(query)
        return address

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the query that the text does not show."""
        return tuple(value for name, value in self.query.items() if not _is_plain(name))

    def __reduce__(self) -> tuple[type[EndpointAddress], tuple[str]]:
        sent = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query.items())
        return EndpointAddress, (f"{self.path}?{sent}" if sent else self.path,)


def _parameters(parts: SplitResult) -> dict[str, str]:
    """Return the parameters of an address's query. Raises ValueError if one of them has two values."""
    given = parse_qsl(parts.query, keep_blank_values=True)
    query = dict(given)
    if len(query) < len(given):
        raise ValueError("base_url gives a parameter of its query twice; give it once")
    return query


def _is_plain(name: str) -> bool:
    """Return whether a parameter's value is no secret."""
    return re.sub(r"[\W_]", "", name).lower() in PLAIN
