"""An answer by keyword rules alone: what can be had without understanding anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from bench.scenario import Json

RULES = (  # words to look for, the event they stand for, and what they speak for as trigger and mechanism
    ("updated configmap", "config_change", "config_change", "pool_too_small"),
    ("scalingreplicaset", "deployment", "deployment", "retry_storm"),
    ("cputhrottling", "cpu_contention", "cpu_contention", "cpu_starvation"),
    ("evicted", "cache_full", "cache_full", "cache_growth"),
    ("gc pause", "gc_pause", "deployment", "limit_too_low"),
    ("pool timeout", "pool_exhausted", "config_change", "connection_leak"),
    ("sla breach", "latency_breach", "traffic_spike", "connection_leak"),
    ("oomkilled", "oom_kill", "deployment", "limit_too_low"),
)


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Every line that matches a rule is a signal and a vote; the chain is the order in which the rules first match."""
    lines = [(line, source) for source, text in documents.items() for line in text.splitlines()]
    hits = sorted((line, source, rule) for line, source in lines for rule in RULES if rule[0] in line.lower())
    chain = list(dict.fromkeys(rule[1] for _, _, rule in hits))
    trigger, mechanism = (Counter(rule[field] for *_, rule in hits).most_common(1)[0][0] for field in (2, 3))
    first = {rule[1]: (line, source) for line, source, rule in reversed(hits)}
    versions = re.findall(r"rev \d+ \S+:(\S+)", documents["deploys.txt"])[-2:]
    place = {"namespace": "payments", "version": versions[1], "previous_version": versions[0]}
    commands = ["kubectl rollout restart deployment/payment-svc -n payments"]
    signals = [{"time": s[0][:8], "source": s[1], "what": name, "value": s[0][9:]} for name, s in first.items()]
    kind = {"type": "resource", "severity": "high", "confidence": 0.7}
    cause = {"component": "payment-svc", "trigger": trigger, "causal_chain": chain, "mechanism": mechanism}
    sure = {"remediation_needed": True, "confidence": 0.7, "summary": f"{mechanism} after {trigger}"}
    report = {"title": "OOMKilled", "severity": "high", "component": "payment-svc", "trigger": trigger}
    return {
        "log_triage": {**place, "deployment": "payment-svc", "signals": signals},
        "anomaly_classification": {"anomalies": [{"anomaly": event, **kind} for event in chain]},
        "root_cause_analysis": {**place, **cause, **sure},
        "remediation_planning": {"commands": commands, "rationale": "restart what was killed"},
        "report_synthesis": {**report, "summary": sure["summary"], "remediation": "restart"},
    }
