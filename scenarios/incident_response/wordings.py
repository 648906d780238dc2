"""What services write into their logs, and which cause it speaks of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

Cause = Literal[
    "bad_version",
    "memory_leak",
    "stuck_worker",
    "traffic_surge",
    "bad_node",
    "cert_expired",
    "disk_full",
    "pool_exhausted",
    "provider_outage",
    "none_here",
]
"""`none_here`: the log shows none of them."""
CAUSES: tuple[Cause, ...] = get_args(Cause)

WORDINGS: Mapping[Cause, tuple[str, ...]] = {
    "bad_version": (
        "ERROR handler fails: field total is missing; not seen before {version}",
        "ERROR cannot read its configuration since {version} was started",
        "FATAL module codec not found, {version} stops",
    ),
    "memory_leak": (
        "ERROR out of memory: the process grew from 400 MiB to 2 GiB in nine days",
        "WARN heap 97% in use and growing by 40 MiB an hour, garbage collection takes 4 s",
        "WARN memory in use rises since the last start and is never given back",
    ),
    "stuck_worker": (
        "ERROR no message taken from the queue for 25 minutes, the worker waits for a lock",
        "ERROR deadlock: threads 12 and 14 wait for each other",
        "ERROR the worker hangs: no heartbeat, no processor time used",
    ),
    "traffic_surge": (
        "WARN 4 times the usual requests a second, all replicas at 98% CPU",
        "ERROR queue full: requests come three times as fast as yesterday",
        "WARN load is shed, so many visitors were never here",
    ),
    "bad_node": (
        "ERROR disk I/O error on {node}, requests on other nodes succeed",
        "ERROR packets are lost on {node} and nowhere else",
        "ERROR memory of {node} reports ECC errors, its replicas fail",
    ),
    "cert_expired": (
        "ERROR callers refuse the connection: own certificate has expired",
        "ERROR TLS handshake failed: own certificate is not valid any more",
        "ERROR all callers gone since the certificate ran out at midnight",
    ),
    "disk_full": (
        "ERROR write failed: no space left on device",
        "ERROR cannot write to /var/data: ENOSPC",
        "ERROR volume 100% full, old logs take most of it",
    ),
    "pool_exhausted": (
        "ERROR connection pool exhausted: {connections} of {connections} in use",
        "ERROR gave up after 5 s in the queue for one of {connections} database connections",
        "ERROR too many clients: the limit of {connections} connections is reached",
    ),
    "provider_outage": (
        "ERROR the provider answers 503; its status page says outage",
        "ERROR calls to the provider outside time out, all of them",
        "ERROR the provider is down, says its own support",
    ),
    "none_here": (
        "ERROR call to {callee} failed: HTTP 503",
        "ERROR no answer from {callee} in 5 s",
    ),
}
OVER: Mapping[Cause, str] = {
    "memory_leak": "INFO yesterday's out of memory was repaired by a restart",
    "stuck_worker": "INFO last week's deadlock has not come again",
    "traffic_surge": "INFO this morning's surge of requests is over",
    "disk_full": "INFO no space left on device on Monday; 40 GiB were added",
    "cert_expired": "INFO certificate was renewed in time, the old one has expired",
    "pool_exhausted": "INFO pool exhausted for 2 s at the start, fine since",
}
"""What was once, and is repaired."""
ORDINARY = (
    "INFO health check ok",
    "INFO 1200 requests served in the last minute",
    "INFO cache warmed in 2 s",
    "INFO scheduled job finished",
    "INFO configuration read",
)
OWN = (
    "ERROR requests fail in this service itself",
    "ERROR internal error, calls to others succeed",
    "ERROR own work fails, see the log",
)
"""What stands last in the log of the service at fault."""
CALM = ("INFO health check ok", "WARN one cache miss in three", "INFO all calls succeed", "WARN slow query: 1.1 s")
"""What stands last in the log of a service that is well."""


def meaning_of(lines: Sequence[str]) -> Cause:
    """The cause of which a log speaks. What its INFO lines say is over, or of no matter."""
    said = [line for line in lines if not line.startswith("INFO")]
    for cause in CAUSES[:-1]:
        if any(_pattern(words).fullmatch(line) for words in WORDINGS[cause] for line in said):
            return cause
    return "none_here"


def node_in(lines: Sequence[str]) -> str:
    """The node that the lines name, of those that are not INFO; "" where they name none."""
    found = [re.search(r"node-\d+", line) for line in lines if not line.startswith("INFO")]
    return next((match[0] for match in found if match), "")


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", r"[\\w.-]+", re.escape(words)))
