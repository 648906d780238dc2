"""Judgments by keyword rules alone: what can be had from words, without comparing a date or a price."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bench.scenario import Json


def judge(subtask: str, documents: Mapping[str, str]) -> Json:
    """Return the output of one judgment by what it is shown."""
    texts = json.loads(documents["conversation"])["lines"] if "conversation" in documents else [{"text": ""}]
    said = " ".join(line["text"] for line in texts)
    if subtask == "request":
        size = (re.findall(r"\b(?:S|M|L|XL)\b", said) or ["none"])[-1]
        intent = "exchange" if size != "none" else "cancel" if "cancel" in said else "refund"
        return {"quote": texts[0]["text"], "intent": intent, "order": (re.findall(r"R-\d+", said) or ["none"])[0], "size": size}
    if subtask == "decision":
        ticket, orders = json.loads(documents["ticket"]), json.loads(documents["orders"])["orders"]
        price = next((order["price"] for order in orders if order["order"] == ticket["order"]), 0)
        action = ticket["intent"]
        return {"action": action, "amount": price if action == "refund" else 0, "size": ticket["size"]}
    if subtask == "answer":
        last = texts[-1]["text"]
        return {"quote": last, "answer": "silent" if "no answer" in last else "no" if "not" in last.lower() else "yes"}
    if subtask == "second":
        text = json.loads(documents["aside"])["text"]
        return {"action": "change_address", "order": (re.findall(r"R-\d+", text) or ["none"])[0], "address": text[-25:-1]}
    return {"outcome": "resolved", "note": "Done."}


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Return all judgments whose documents are there: of a world none, until it is lived in."""
    return {"request": judge("request", documents)} if "conversation" in documents else {}
