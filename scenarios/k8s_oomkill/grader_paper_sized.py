"""Grades the paper-sized variant, by the rules of `grader.py` for the parts that it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.scenario import Answer, Grade, Json

from .grader import Truth, anomalies_f1, chain_fault, chain_share, judge_commands

FIELDS = ("trigger", "mechanism")
RULES = (
    ("evict", "cache_full"),
    ("heap", "heap_growth"),
    ("pool", "pool_exhausted"),
    ("oomkilled", "oom_kill"),
)
"""Words to look for, and the event that they stand for."""


def grade(answer: Answer, truth: Path) -> Grade:
    """Correct where trigger, mechanism, the chain's order, the remediation and the report all are. Raises OSError."""
    facts = Truth.model_validate_json((truth / "truth.json").read_text(encoding="utf-8"))
    cause, report = answer["root_cause_analysis"], answer["report_synthesis"]
    fault = chain_fault(cause.causal_chain, facts)
    remediation, said = judge_commands(answer["remediation_planning"].commands, facts)
    parts = {
        "anomalies": anomalies_f1(answer["anomaly_classification"], facts),
        **{field: float(getattr(cause, field) == getattr(facts, field)) for field in FIELDS},
        "causal_chain": chain_share(cause.causal_chain, facts.causal_chain),
        "remediation": remediation,
        "report": float(report.severity in facts.severities),
    }
    faults = [f"{field} is wrong" for field in FIELDS if not parts[field]]
    faults += [f"causal_chain: {fault}"] if fault else []
    faults += [f"remediation: {said}"] if remediation < 1 else []
    faults += ["the report's severity is wrong"] if parts["report"] < 1 else []
    return Grade(not faults, sum(parts.values()) / len(parts), parts, "; ".join(faults))


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """Each word that is found is a signal; the chain is the order in which they are found, and the service is started anew."""
    lines = [line for line in documents["incident.log"].splitlines() if line]
    hits = [(line, event) for line in lines for word, event in RULES if word in line.lower()]
    chain = list(dict.fromkeys(event for _, event in hits))
    kind = {"type": "resource", "severity": "high", "confidence": 0.7}
    return {
        "log_triage": {"signals": [{"time": line[:5], "what": event} for line, event in hits]},
        "anomaly_classification": {"anomalies": [{"anomaly": event, **kind} for event in chain]},
        "root_cause_analysis": {
            "trigger": "deployment",
            "mechanism": "limit_too_low",
            "causal_chain": chain,
            "summary": "It ran out of memory.",
        },
        "remediation_planning": {"commands": ["kubectl rollout restart deployment/payment-svc -n payments"]},
        "report_synthesis": {"severity": "high", "summary": "It was started anew."},
    }
