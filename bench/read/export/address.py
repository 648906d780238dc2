"""The address of a collector of traces, and the form in which it is shown."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from bench.common.errors import ResultsError

SECRETS = re.compile(r"(?s)^([a-z]+://)?.*@")
"""The user and the password in an address, also in one that is malformed."""


def traces_address(url: str) -> str:
    """Return the address for traces. An address without a path gets OTLP's path. Raises ResultsError if it is no HTTP
    address."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ResultsError(
            f"--endpoint {without_secrets(url)}: is not an HTTP address; give an address such as http://localhost:4318"
        )
    return url if parts.path.strip("/") else parts._replace(path="/v1/traces").geturl()


def without_secrets(url: str) -> str:
    """Return an address without its secrets: user, password and query."""
    return SECRETS.sub(lambda match: match[1] or "", url.partition("?")[0])
