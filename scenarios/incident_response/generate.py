"""Makes an instance: the incident's story, the reference, wrong answers and the truth, from its name alone.

python -m scenarios.incident_response.generate case_07     shows one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.scenario import Json, WrongAnswer

from .case import Case
from .policy import LOUD
from .right import NONE, right
from .story import story
from .tables import rows
from .wrong import wrong_answers

JUDGMENTS = ("triage", "suspect", "cause", "action", "recovered", "closing")


@dataclass(frozen=True)
class Made:
    case: Case
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Json


def response(instance: str) -> Made:
    case = story(instance)
    reference = _reference(case)
    return Made(case, reference, wrong_answers(case, reference), _truth(case))


def _reference(case: Case) -> dict[str, Json]:
    """Each judgment in the state in which the right course meets it; of a noise, those that it does not meet as well."""
    tables = rows(case)
    struck = next(row for row in tables["service"] if row["name"] == case.suspect)
    services = [{**row, "service": row["name"], "calls": json.loads(row["calls"])} for row in tables["service"]]
    finding = {"service": case.suspect, "cause": case.cause, "node": case.node or NONE}
    record = {**finding, "severity": case.severity, "done": [{"tool": tool} for tool, _, _ in _remedy(case)]}
    deployment = {**struck, "previous_withdrawn": case.kind == "redeployed"}
    names = [row["name"] for row in tables["node"]]
    shown: dict[str, Any] = {
        "alert": {"service": case.entry},
        "metrics": _metrics(tables["metric"], "healthy" if case.kind == "noise" else "failing"),
        "overview": {"services": services},
        "log": {"service": case.suspect, "lines": json.loads(struck["log"])},
        "incident": record,
        "deployment": deployment,
        "capacity": {"ready": [name for name in names if name not in case.drained], "needed": case.needed},
    }
    documents = {name: json.dumps(one) for name, one in shown.items()}
    after = json.dumps(_metrics(tables["metric"], _state(case)))
    return {
        name: right(name, {**documents, "metrics": documents["metrics"] if name == "triage" else after}) for name in JUDGMENTS
    }


def _metrics(found: Any, state: str) -> Json:
    return {"services": [row for row in found if row["state"] == state]}


def _state(case: Case) -> str:
    """How it is at the end."""
    return ("escalated" if case.escalates else "failing") if case.handed_over else "healthy"


def _remedy(case: Case) -> list[list[Any]]:
    """What is done to the cluster, in order; nothing where the lead refuses."""
    remedy = case.remedy
    if remedy.tool in ("", "page") or case.refused:
        return []
    done: list[list[Any]] = [["drain", remedy.target, 0]] if remedy.tool == "reboot" else []
    return [*done, [remedy.tool, remedy.target, remedy.amount]]


def _told(case: Case) -> list[list[str]]:
    """Who is woken, and what is announced."""
    if case.severity == "noise":
        return []
    who = {"lead"} if case.severity == "critical" or case.escalates else set()
    who |= {"owner"} if case.is_for_owner else {"provider"} if case.cause == "provider_outage" else set()
    said = ["investigating", *([] if case.handed_over else ["resolved"])] if case.severity in LOUD else []
    return sorted([*(["page", one] for one in who), *(["announce", one] for one in said)])


def _closing(case: Case) -> list[list[Any]]:
    if case.kind == "frozen":
        return []
    outcome = "noise" if case.severity == "noise" else "handed_over" if case.handed_over else "resolved"
    return [[outcome, case.postmortem]]


def _truth(case: Case) -> Json:
    """What the grader reads."""
    return {
        "frozen": case.kind == "frozen",
        "severity": case.severity,
        "finding": [] if case.kind == "noise" else [[case.suspect, case.cause, case.node or NONE]],
        "remedy": _remedy(case),
        "told": _told(case),
        "closing": _closing(case),
        "state": _state(case),
    }


def main(instance: str) -> None:
    made = response(instance)
    print(json.dumps({"case": asdict(made.case), "reference": made.reference, "truth": made.truth}, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
