"""Exceptions from HTTP proxies for loopback addresses. The package's own client never uses a proxy for loopback. Frameworks,
which are measured over an endpoint on loopback, read NO_PROXY."""

from __future__ import annotations

import os
from urllib.request import getproxies_environment

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def exempt_loopback() -> None:
    """Add the loopback addresses to NO_PROXY if the environment names a proxy."""
    proxies = getproxies_environment()
    exceptions = proxies.pop("no", "")
    if proxies and exceptions != "*":  # a lone asterisk means everything
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join((*filter(None, [exceptions]), *LOOPBACK))
