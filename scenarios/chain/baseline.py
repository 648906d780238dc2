"""The baseline: an answer by keyword rules, which do not read what a line says about its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bench.scenario import Json

from .sheets import ITEMS, OPENING, subtask_names


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Return the stock that keyword rules give. The first number of a line counts as issued if the line begins with "Issued",
    else as received, even if the items were only ordered."""
    stock = {item: json.loads(documents[OPENING])[item] for item in ITEMS}
    sheets = sorted(documents.keys() - {OPENING})
    outputs = {}
    for name, sheet in zip(subtask_names(len(sheets)), sheets, strict=True):
        for verb, figure, item in re.findall(r"^(\w+): (\d+) (\w+)", documents[sheet], re.MULTILINE):
            stock[item] += -int(figure) if verb == "Issued" else int(figure)
        outputs[name] = {**stock, "pieces": sum(stock.values())}
    return outputs
