"""The right output of each judgment, by what it is shown: a document out of date gets the answer that is right for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Json

from .limits import is_well, scaled, severity_of
from .wordings import OWN, meaning_of, node_in

Shown = Mapping[str, Any]
NONE = "none"
ALWAYS = {"cert_expired": "renew_certificate", "disk_full": "free_disk"}


def right(subtask: str, documents: Mapping[str, str]) -> Json:
    """`documents`: those that the judgment reads, by name, as texts."""
    shown = {name: json.loads(text) for name, text in documents.items() if not name.endswith(".md")}
    match subtask:
        case "triage":
            return _triage(shown["alert"], shown["metrics"])
        case "suspect":
            return _suspect(shown["overview"])
        case "cause":
            return _cause(shown["log"])
        case "action":
            return action(shown["incident"], shown["deployment"], shown["capacity"])
        case "recovered":
            found = not_well(shown["metrics"])
            return {"not_well": found, "recovered": not found}
        case "closing":
            return closing(shown["incident"], shown["metrics"])
    raise KeyError(subtask)


def _triage(alert: Shown, metrics: Shown) -> Json:
    service = alert["service"]
    error_pct = next((row["error_pct"] for row in metrics["services"] if row["service"] == service), 0)
    return {"service": service, "error_pct": error_pct, "severity": severity_of(service, error_pct)}


def _suspect(overview: Shown) -> Json:
    rows = overview["services"]
    row = next((row for row in rows if row["last_line"] in OWN), rows[0])
    return {"last_line": row["last_line"], "service": row["service"]}


def _cause(log: Shown) -> Json:
    lines = [line for line in log["lines"] if not line.startswith("INFO")]
    cause = meaning_of(lines)
    telling = [line for line in lines if cause == meaning_of([line])]
    node = node_in(lines) if cause == "bad_node" else ""
    return {"line": telling[0] if telling else "", "cause": cause, "node": node or NONE}


def action(incident: Shown, deployment: Shown, capacity: Shown) -> Json:
    """By the runbook, what is done about a finding."""
    service, cause = incident["service"], incident["cause"]
    owner = {"action": "page_owner", "target": NONE, "amount": 0}
    match cause:
        case "bad_version":
            if deployment["previous_withdrawn"]:
                return {"action": "wait", "target": NONE, "amount": 0}
            return {"action": "roll_back", "target": service, "amount": 0}
        case "memory_leak" | "stuck_worker":
            return owner if deployment["migration_running"] else {"action": "restart", "target": service, "amount": 0}
        case "traffic_surge":
            return {"action": "scale", "target": service, "amount": scaled(service, deployment["replicas"])}
        case "pool_exhausted":
            return {"action": "raise_limit", "target": service, "amount": 2 * deployment["connections"]}
        case "bad_node":
            node = incident["node"]
            left = [one for one in capacity["ready"] if one != node]
            return {"action": "reboot_node", "target": node, "amount": 0} if len(left) >= capacity["needed"] else owner
        case "cert_expired" | "disk_full":
            return {"action": ALWAYS[cause], "target": service, "amount": 0}
        case "provider_outage":
            return {"action": "page_provider", "target": NONE, "amount": 0}
    return owner


def not_well(metrics: Shown) -> list[str]:
    return [row["service"] for row in metrics["services"] if not is_well(row["error_pct"], row["p95_ms"])]


def closing(incident: Shown, metrics: Shown) -> Json:
    severity, failing = incident["severity"], not_well(metrics)
    outcome = "noise" if severity == "noise" else "handed_over" if failing else "resolved"
    rolled_back = "roll_back" in [one["tool"] for one in incident["done"]]
    postmortem = severity != "noise" and (severity == "critical" or rolled_back or bool(failing))
    said = f"{incident['service'] or 'nothing'}: {incident['cause'] or 'no fault'}"
    return {"outcome": outcome, "postmortem": postmortem, "note": said}
