"""Judgments by keyword rules alone: what can be had from the alert's words and from the log, without comparing a number."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bench.scenario import Json

WORDS = {
    "version": ("bad_version", "roll_back"),
    "memory": ("memory_leak", "restart"),
    "lock": ("stuck_worker", "restart"),
    "requests": ("traffic_surge", "scale"),
    "node-": ("bad_node", "reboot_node"),
    "certificate": ("cert_expired", "renew_certificate"),
    "space": ("disk_full", "free_disk"),
    "connection": ("pool_exhausted", "raise_limit"),
    "provider": ("provider_outage", "page_provider"),
}


def judge(subtask: str, documents: Mapping[str, str]) -> Json:
    """The output of one judgment by what it is shown."""
    if subtask == "triage":
        peak = int(re.findall(r"(\d+)%", documents["alert"])[0])
        word = "critical" if peak >= 50 else "major" if peak >= 10 else "minor"
        return {"service": json.loads(documents["alert"])["service"], "error_pct": peak, "severity": word}
    if subtask == "suspect":
        rows = json.loads(documents["overview"])["services"]
        row = next((row for row in rows if "ERROR" in row["last_line"]), rows[0])
        return {"last_line": row["last_line"], "service": row["service"]}
    if subtask == "cause":
        text = documents["log"].lower()
        word = next((word for word in WORDS if word in text), "none")
        node = (re.findall(r"node-\d+", text) or ["none"])[0]
        return {"line": word, "cause": WORDS.get(word, ("none_here", ""))[0], "node": node}
    if subtask == "action":
        finding = json.loads(documents["incident"])
        action = next((action for cause, action in WORDS.values() if cause == finding["cause"]), "page_owner")
        target = finding["node"] if action == "reboot_node" else finding["service"]
        return {"action": action, "target": target, "amount": 2 * json.loads(documents["deployment"])["replicas"]}
    if subtask == "recovered":
        return {"not_well": [], "recovered": True}
    return {"outcome": "resolved", "postmortem": "critical" in documents["incident"], "note": "It is over."}


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """All judgments whose documents are there: of a world none, until it is lived in."""
    return {"triage": judge("triage", documents)} if "alert" in documents else {}
