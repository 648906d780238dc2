"""An endpoint's address: its form for records and messages, and its form for requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from bench.wire.blotting import BLOT

API_VERSION = "api-version"
"""The query parameter that holds the version of Azure's API."""
PUBLIC_PARAMETERS = frozenset({"apiversion", "version"})
"""Names of query parameters whose values are no secrets, in lower case and without punctuation."""


class EndpointAddress(str):
    """An endpoint's address, up to `/chat/completions`. Equal endpoints have the same text, since calls are limited per
    endpoint. The text can be shown and recorded: a mark replaces the values in its query, unless a value is a version."""

    path: str
    """The address without its query."""
    query: Mapping[str, str]
    """The parameters of its query, as they are sent with every request."""

    def __new__(cls, url: str) -> EndpointAddress:
        """Parse a base URL. The values of parameters that may be secret are masked in the text of the address. Raises
        ValueError if the URL is no usable base URL, or contains a password."""
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
        path_url = f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{path}"
        masked_query = "&".join(f"{quote(name)}={quote(value) if _is_public(name) else BLOT}" for name, value in query.items())
        address = super().__new__(cls, f"{path_url}?{masked_query}" if masked_query else path_url)
        address.path, address.query = path_url, MappingProxyType(query)
        return address

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the query that the text does not show."""
        return tuple(value for name, value in self.query.items() if not _is_public(name))

    def __reduce__(self) -> tuple[type[EndpointAddress], tuple[str]]:
        """Pickle the address with its secrets, which its text does not hold."""
        full_query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query.items())
        return EndpointAddress, (f"{self.path}?{full_query}" if full_query else self.path,)


def _parameters(parts: SplitResult) -> dict[str, str]:
    """Return the parameters of an address's query. Raises ValueError if one of them has two values."""
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = dict(pairs)
    if len(query) < len(pairs):
        raise ValueError("base_url gives a parameter of its query twice; give it once")
    return query


def _is_public(name: str) -> bool:
    """Return whether a parameter's value is no secret."""
    return re.sub(r"[\W_]", "", name).lower() in PUBLIC_PARAMETERS
