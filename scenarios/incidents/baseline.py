"""An answer by keyword rules alone: what can be had by counting words, without reading when and where they were said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from bench.scenario import Json

RULES = {  # cause -> the words that speak for it, and what is done then
    "memory_limit": ("memory|heap|oom", "set_memory"),
    "cpu_limit": ("cpu|processor|throttl", "set_cpu"),
    "disk_full": ("disk|space|volume", "grow_disk"),
    "pool_exhausted": ("connection|pool", "set_pool"),
    "strict_probe": ("probe|health", "set_probe"),
    "bad_image": ("image|start|crash", "rollback_image"),
    "bad_config": ("config", "revert_config"),
    "cert_expired": ("certificate|tls|expired", "renew_cert"),
    "dns_record": ("dns|host|lookup", "restore_dns"),
    "wrong_password": ("password|login", "reset_password"),
}
SETTINGS = {"set_memory": "memory_mib", "set_cpu": "cpu_m", "grow_disk": "disk_gib", "set_pool": "pool", "set_probe": "probe_s"}
TOLD = ("app.log", "events.txt", "changes.txt")


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Each line with a word of a rule is a vote for that cause and for the services that it names. A number is doubled."""
    table = {row.split()[0]: dict(re.findall(r"(\w+)=(\d+)", row)) for row in documents["cluster.txt"].splitlines()[1:]}
    lines = [(line.lower(), line) for name in TOLD for line in documents[name].splitlines()]
    hits = [(cause, line) for line, _ in lines for cause, (words, _) in RULES.items() if re.search(words, line)]
    cause = Counter(cause for cause, _ in hits).most_common(1)[0][0] if hits else "restart"
    named = Counter(name for which, line in hits for name in table if which == cause and name in line)
    service = named.most_common(1)[0][0] if named else next(iter(table))
    action = RULES[cause][1]
    changed = re.findall(rf"{service}: (?:image .*before |config )([\w.]+)", documents["changes.txt"])
    value = str(2 * int(table[service][SETTINGS[action]])) if action in SETTINGS else changed[-1] if changed else "none"
    evidence = next((line for lowered, line in lines if service in lowered), "")
    row = next(row for row in documents["metrics.txt"].splitlines() if row.split()[1] == service)
    found = {"service": service, "cause": cause}
    return {
        "log": {"service": service, "evidence": evidence},
        "metrics": {"row": row, "service": service, "metric": row.split()[2]},
        "changes": {"service": service, "event": evidence, "change": "none"},
        "cause": {"because": "most words", **found},
        "remediation": {"action": action, "service": service, "source": "none", "value": value},
        "report": {
            "service": service,
            "severity": "major",
            "summary": "most words",
        },
    }
