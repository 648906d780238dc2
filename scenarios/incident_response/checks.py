"""What can be said against an output without knowing the truth, beyond its schema: whether it follows from what was shown.

A boundary has three strengths. The schema is the output's type (`judgments.py`). The policy (`policy.py`) says whether what an
output would do is allowed. These checks are the business rules. Each can be left out by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Check, Context

from .judgments import Chosen, ClosingNote, Diagnosis, Recovered, Suspect, Triage
from .limits import severity_of
from .right import NONE


def severity_follows_from_the_number(output: Triage, _: Context) -> str | None:
    severity = severity_of(output.service, output.error_pct)
    said = f"{output.error_pct}% of the requests to {output.service} fail, so it is {severity}"
    return None if output.severity == severity else said


def number_stands_in_the_metrics(output: Triage, context: Context) -> str | None:
    service = _shown(context, "alert")["service"]
    if output.service != service:
        return f"the alert is of {service}"
    rows = _shown(context, "metrics")["services"]
    found = {row["service"]: row["error_pct"] for row in rows}
    return None if found.get(service) == output.error_pct else f"the metrics say otherwise of {service}"


def line_is_that_of_the_service(output: Suspect, context: Context) -> str | None:
    rows = _shown(context, "overview")["services"]
    lines = {row["service"]: row["last_line"] for row in rows}
    if output.service not in lines:
        return f"there is no service {output.service}"
    return (
        None if lines[output.service] == output.last_line else f"{output.last_line!r} is not the last line of {output.service}"
    )


def a_node_is_named_where_one_is_at_fault(output: Diagnosis, context: Context) -> str | None:
    if (output.cause == "bad_node") != (output.node != NONE):
        return f'node is named for bad_node, and is "{NONE}" for all other causes'
    said = context.documents["log"]
    return None if output.node == NONE or output.node in said else f"the log does not name {output.node}"


def target_is_what_was_found(output: Chosen, context: Context) -> str | None:
    incident = _shown(context, "incident")
    if output.action in ("wait", "page_owner", "page_provider"):
        wanted = NONE
    else:
        wanted = incident["node"] if output.action == "reboot_node" else incident["service"]
    return None if output.target == wanted else f"the target of {output.action} must be {wanted}"


def only_sizes_have_an_amount(output: Chosen, _: Context) -> str | None:
    if (output.action in ("scale", "raise_limit")) == (output.amount > 0):
        return None
    return f"the amount of {output.action} must {'not ' if output.amount == 0 else ''}be 0"


def recovered_is_where_all_are_well(output: Recovered, context: Context) -> str | None:
    names = [row["service"] for row in _shown(context, "metrics")["services"]]
    strange = [name for name in output.not_well if name not in names]
    if strange:
        return f"there is no service {strange[0]}"
    return None if output.recovered == (not output.not_well) else "it has recovered if all services are well, and only then"


def noise_is_closed_as_noise(output: ClosingNote, context: Context) -> str | None:
    noise = _shown(context, "incident")["severity"] == "noise"
    return None if noise == (output.outcome == "noise") else "outcome is noise if the severity is noise, and only then"


RULES: Mapping[str, tuple[Check, ...]] = {
    "triage": (number_stands_in_the_metrics, severity_follows_from_the_number),
    "suspect": (line_is_that_of_the_service,),
    "cause": (a_node_is_named_where_one_is_at_fault,),
    "action": (target_is_what_was_found, only_sizes_have_an_amount),
    "recovered": (recovered_is_where_all_are_well,),
    "closing": (noise_is_closed_as_noise,),
}


def _shown(context: Context, name: str) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = json.loads(context.documents[name])
    return shown
