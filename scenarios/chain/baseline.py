"""An answer by keyword rules alone: what can be had without reading what a line says of its figures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bench.scenario import Json

from .sheets import ITEMS, OPENING, subtask_names


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """The first figure of each line goes out where the line begins with "Issued", else in: what was ordered as well."""
    stock = {item: json.loads(documents[OPENING])[item] for item in ITEMS}
    sheets = sorted(documents.keys() - {OPENING})
    outputs = {}
    for name, sheet in zip(subtask_names(len(sheets)), sheets, strict=True):
        for verb, figure, item in re.findall(r"^(\w+): (\d+) (\w+)", documents[sheet], re.MULTILINE):
            stock[item] += -int(figure) if verb == "Issued" else int(figure)
        outputs[name] = {**stock, "pieces": sum(stock.values())}
    return outputs
