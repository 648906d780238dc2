"""The baseline: judgments by keyword rules, which read remarks and words but compare no numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.scenario import Json

from .right import closing, marked

WORRIED = ("tired", "charge", "hard")


def judge(subtask: str, documents: Mapping[str, str]) -> Json:
    """Return the output of one judgment by its documents."""
    if subtask == "risk":
        return marked({kind: "on" if any(word in text for word in WORRIED) else "off" for kind, text in documents.items()})
    if subtask == "offer":
        renewal = json.loads(documents["renewal"])
        asks = min(renewal["asks_discount"], 30)
        return {"product": renewal["product"], "discount": asks, "term_months": renewal["asks_term_months"], "reason": "asked"}
    product = json.loads(documents["standing_offer"])["product"]
    if subtask == "after_change":
        gone = product in documents["catalogue"]
        return {"product": product, "no_longer_sold": gone, "action": "withdraw" if gone else "keep"}
    said = documents["reply"].lower()
    decision = "expire" if "no answer" in said else "churned" if "not" in said or "another" in said else "accept"
    answer = "merger" if "merge" in said else {"expire": "none", "churned": "leaves", "accept": "agrees"}[decision]
    return closing(answer, json.loads(documents["standing_offer"]), decision)


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Return all judgments whose documents exist. A world has no documents before it is run."""
    return {"risk": judge("risk", documents)} if "usage" in documents else {}
