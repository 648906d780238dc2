"""The baseline: payments by rules that ignore credit notes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.scenario import Json

from .story import account_of


def judge(documents: Mapping[str, str]) -> Json:
    """Return the output of one judgment by its documents."""
    invoice = json.loads(documents["invoice"])
    return {"amount": invoice["gross"], "account": account_of(invoice["country"])}


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Return the judgment if its document exists. A world has no documents before it is run."""
    return {"pay": judge(documents)} if "invoice" in documents else {}
