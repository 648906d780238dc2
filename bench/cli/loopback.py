"""Keep requests to loopback addresses away from HTTP proxies. Our own client does this by itself. Frameworks, which are
measured over an endpoint on loopback, read NO_PROXY."""

from __future__ import annotations

import os
from urllib.request import getproxies_environment

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def spare_loopback() -> None:
    """Add the loopback addresses to NO_PROXY if the environment names a proxy."""
    named = getproxies_environment()
    excepted = named.pop("no", "")
    if named and excepted != "*":  # a lone asterisk means everything
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join((*filter(None, [excepted]), *LOOPBACK))
