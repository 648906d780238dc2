"""The right output of each judgment, given its documents. An outdated document leads to the output that is right for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Json

from .limits import LONGEST, most_for
from .replies import Meaning, meaning_of

Documents = Mapping[str, str]
SIGNALS = ("usage", "network", "billing", "support")
ANSWERS: Mapping[Meaning, tuple[str, str]] = {
    "silent": ("none", "expire"),
    "leaves": ("leaves", "churned"),
    "haggles": ("discount", "person"),
    "merges": ("merger", "person"),
    "signs": ("agrees", "accept"),
}
"""What a customer means -> what it is called in the output, and what is decided where the term is not too long."""


def right(subtask: str, documents: Documents) -> Json:
    """Return the right output of a judgment. `documents` has the texts that the judgment reads, by name."""
    match subtask:
        case "risk":
            return _risk({kind: json.loads(documents[kind]) for kind in SIGNALS})
        case "offer":
            return offer(json.loads(documents["renewal"]))
        case "after_change":
            return _after_change(json.loads(documents["standing_offer"]), json.loads(documents["catalogue"]))
        case "close":
            return _close(json.loads(documents["standing_offer"]), json.loads(documents["reply"]))
    raise KeyError(subtask)


def _risk(signals: Mapping[str, Any]) -> Json:
    return marked({kind: signals[kind]["alarm"] for kind in SIGNALS})


def marked(alarms: Mapping[str, str]) -> Json:
    """Return the output that follows from these alarms."""
    on = list(alarms.values()).count("on")
    return {**alarms, "alarms_on": on, "risk": risk_of(on)}


def risk_of(alarms: int) -> str:
    """Return the risk for this number of alarms."""
    return "low" if alarms < 2 else "medium" if alarms == 2 else "high"


def offer(renewal: Mapping[str, Any]) -> Json:
    most, asks = most_for(renewal["name"], renewal["churn_risk"]), renewal["asks_discount"]
    return {
        "product": renewal["product"] if renewal["still_sold"] else renewal["successor"],
        "discount": min(most, asks),
        "term_months": renewal["asks_term_months"],
        "reason": "as asked" if asks <= most else "the limit",
    }


def _after_change(standing: Mapping[str, Any], catalogue: Mapping[str, Any]) -> Json:
    gone = standing["product"] in [one["product"] for one in catalogue["no_longer_sold"]]
    return {"product": standing["product"], "no_longer_sold": gone, "action": "withdraw" if gone else "keep"}


def _close(standing: Mapping[str, Any], reply: Mapping[str, Any]) -> Json:
    answer, decision = ANSWERS[meaning_of(reply["text"])]
    if answer == "agrees" and standing["term_months"] > LONGEST:
        decision = "person"
    return closing(answer, standing, decision)


def closing(answer: str, standing: Mapping[str, Any], decision: str) -> dict[str, Json]:
    return {"answer": answer, "term_months": standing["term_months"], "merger": answer == "merger", "decision": decision}
