"""What each judgment gives, what is right in a state, and what can be said against an output without knowing the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Template
from typing import Any, Literal

from bench.scenario import Check, Context, Json, Output

from .forms import Rewrite, Risk
from .policy import is_sound, risk_of
from .story import PARTS, part_of


class Adapt(Output):
    rewrite: Rewrite


class Assess(Output):
    risk: Risk


class Settle(Output):
    decision: Literal["promote", "roll_back"]


def right(subtask: str, documents: Mapping[str, str]) -> Json:
    """`documents`: those that the judgment reads, by name, as texts."""
    shown = {name: json.loads(text) for name, text in documents.items() if not name.endswith(".md")}
    match subtask:
        case "adapt":
            return {"rewrite": _letter(shown["module"])}
        case "risk":
            return {"risk": risk_of(shown["checks"])}
        case "canary":
            return {"decision": "promote" if is_sound(shown["metrics"]) else "roll_back"}
    raise KeyError(subtask)


def _letter(module: Mapping[str, Any]) -> str:
    lines = {Template(part_of(part)["right"]).substitute(library=module["library"]) for part in PARTS}
    return next(str(each["rewrite"]) for each in module["rewrites"] if each["line"] in lines)


def line_is_another(output: Adapt, context: Context) -> str | None:
    module = json.loads(context.documents["module"])
    line = next(each["line"] for each in module["rewrites"] if each["rewrite"] == output.rewrite)
    return f"{output.rewrite} leaves the line as it is, and the library changes it" if line == module["line"] else None


def risk_follows_from_the_checks(output: Assess, context: Context) -> str | None:
    risk = risk_of(json.loads(context.documents["checks"]))
    return None if output.risk == risk else f"by the policy the risk is {risk}"


def decision_follows_from_the_metrics(output: Settle, context: Context) -> str | None:
    metrics = json.loads(context.documents["metrics"])
    decision = "promote" if is_sound(metrics) else "roll_back"
    why = f"{metrics['failed']} of {metrics['requests']} requests failed: {decision}"
    return None if output.decision == decision else why


RULES: Mapping[str, tuple[Check, ...]] = {
    "adapt": (line_is_another,),
    "risk": (risk_follows_from_the_checks,),
    "canary": (decision_follows_from_the_metrics,),
}
