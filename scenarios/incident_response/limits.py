"""What the policy and the runbook say, as numbers and minutes. `documents/runbook.md` and the prompts say the same in words; a
test compares them."""

from __future__ import annotations

VERSION = "incident-2026-1"

CRITICAL_FROM, MAJOR_FROM, MINOR_FROM = 50, 10, 2
"""Percent of requests that fail."""
SENSITIVE = ("login", "payments")
"""Services whose failures are critical from fewer percent on."""
SENSITIVE_FROM = 20
SLOWEST = 800
"""Milliseconds. The 95th percentile of a service that is well takes no longer."""

MOST_REPLICAS = 12
NAMED = {"search": 24, "catalogue": 24}
"""Services that may have more replicas than others."""
NOTED_REPLICAS = 10
"""From so many replicas on the policy warns, and allows."""
MOST_CONNECTIONS = 250
BUSINESS_HOURS = (9 * 60, 17 * 60)
"""Minutes of the day between which a restart is warned of."""

LENGTH = 120
"""Minutes of an incident's world."""
ALERT, LOOK, LAST_LOOK = 1, 25, 95
PAGE_DUE, CLOSING_DUE = 60, 115
"""Minutes after its beginning."""
ANSWERS, ANSWERS_LATE = 4, 20
"""Minutes until the lead answers, and until the lead answers late."""


def severity_of(service: str, error_pct: int) -> str:
    """How severe it is if so many percent of the requests to the service of the alert fail."""
    critical = SENSITIVE_FROM if service in SENSITIVE else CRITICAL_FROM
    steps = ((critical, "critical"), (MAJOR_FROM, "major"), (MINOR_FROM, "minor"))
    return next((word for least, word in steps if error_pct >= least), "noise")


def is_well(error_pct: int, p95_ms: int) -> bool:
    return error_pct < MINOR_FROM and p95_ms <= SLOWEST


def most_replicas(service: str) -> int:
    return NAMED.get(service, MOST_REPLICAS)


def scaled(service: str, replicas: int) -> int:
    """To how many replicas a service of so many is scaled."""
    return min(2 * replicas, most_replicas(service))
