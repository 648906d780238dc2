"""What leads to this machine takes no proxy. Our own client knows that by itself; those of frameworks, which are measured over
an endpoint on loopback, know it from NO_PROXY."""

from __future__ import annotations

import os
from urllib.request import getproxies_environment

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def spare_loopback() -> None:
    """Add this machine to NO_PROXY, where the environment names a proxy."""
    named = getproxies_environment()
    excepted = named.pop("no", "")
    if named and excepted != "*":  # an asterisk means everything, if it stands alone
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join((*filter(None, [excepted]), *LOOPBACK))
