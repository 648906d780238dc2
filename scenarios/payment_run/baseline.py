"""Payments by rules that look at no credit note."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.scenario import Json

from .story import account_of


def judge(documents: Mapping[str, str]) -> Json:
    """Return the output of one judgment by what it is shown."""
    invoice = json.loads(documents["invoice"])
    return {"amount": invoice["gross"], "account": account_of(invoice["country"])}


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Return the judgment where its document is there: of a world none, until it is lived in."""
    return {"pay": judge(documents)} if "invoice" in documents else {}
