"""Grades a root cause analysis. The remediation is judged by what it does to the cluster, not by its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from bench.scenario import Answer, Grade, Json

from .checks import copied
from .cluster import Cluster, shortcoming

CLUSTER = TypeAdapter(Cluster)
DECISIVE = ("service", "cause", "remediation")
"""The parts that make an answer correct; the others are partial scores."""


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    cause, remedy = answer["cause"], answer["remediation"]
    failing = shortcoming(CLUSTER.validate_python(truth["cluster"]), remedy.action, remedy.service, remedy.value)
    parts = {
        "log": _log(answer["log"], truth),
        "metrics": _share(answer["metrics"], truth, "service", "metric"),
        "changes": _share(answer["changes"], truth, "service", "change"),
        "service": float(cause.service == truth["service"]),
        "cause": float(cause.cause == truth["cause"]),
        "remediation": float(not failing),
        "report": _share(answer["report"], truth, "service", "severity"),
    }
    wrong = [f"remediation ({failing})" if name == "remediation" else name for name in DECISIVE if parts[name] < 1]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, f"wrong: {', '.join(wrong)}" if wrong else "")


def _share(output: Any, truth: Mapping[str, Json], *fields: str) -> float:
    """Of these fields, how many are right."""
    right = [field for field in fields if getattr(output, field) == truth[field]]
    return len(right) / len(fields)


def _log(output: Any, truth: Mapping[str, Json]) -> float:
    """Half for the service, half for a quotation from a line that shows the cause."""
    quote = copied(output.evidence)
    shown = any(quote in copied(line) for line in truth["log"])
    return (float(output.service == truth["service"]) + float(shown)) / 2
