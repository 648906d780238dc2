"""Judgments by keyword rules alone: what can be had from remarks and from words, without comparing a number."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.scenario import Json

WORRIED = ("tired", "charge", "hard")


def judge(subtask: str, documents: Mapping[str, str]) -> Json:
    """The output of one judgment by what it is shown."""
    if subtask == "risk":
        marks = {kind: "bad" if any(word in text for word in WORRIED) else "good" for kind, text in documents.items()}
        return {**marks, "risk": ("low", "low", "medium", "high", "high")[list(marks.values()).count("bad")]}
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
    return {"merger": "merge" in said, "decision": decision}


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """All judgments whose documents are there: of a world none, until it is lived in."""
    return {"risk": judge("risk", documents)} if "usage" in documents else {}
