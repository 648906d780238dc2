"""The right output of each judgment, by what it is shown: a document out of date gets the answer that is right for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.scenario import Json

from .limits import LONGEST, most_for
from .replies import meaning_of

Documents = Mapping[str, str]
SIGNALS = ("usage", "network", "billing", "support")
LIMIT = {"network": ("outage_minutes", 120), "billing": ("days_overdue", 30), "support": ("severe_tickets_open", 0)}


def right(subtask: str, documents: Documents) -> Json:
    """`documents`: those that the judgment reads, by name, as texts."""
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
    usage = signals["usage"]
    bad = {"usage": 2 * usage["seats_used"] < usage["seats"]}
    bad |= {kind: signals[kind][field] > limit for kind, (field, limit) in LIMIT.items()}
    return {**{kind: "bad" if bad[kind] else "good" for kind in SIGNALS}, "risk": risk_of(sum(bad.values()))}


def risk_of(bad: int) -> str:
    """The risk at so many bad signals."""
    return "low" if bad < 2 else "medium" if bad == 2 else "high"


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
    match meaning_of(reply["text"]):
        case "silent":
            decision = "expire"
        case "leaves":
            decision = "churned"
        case "haggles" | "merges":
            decision = "person"
        case _:
            decision = "person" if standing["term_months"] > LONGEST else "accept"
    return {"merger": meaning_of(reply["text"]) == "merges", "decision": decision}
