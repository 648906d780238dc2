"""The baseline: an answer by keyword rules, the lower bound of every score. If it is right, the pack is too easy to show
anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from bench.scenario import Json


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """Return the entity with the most alerts; no answer if no alert fired."""
    named = Counter(re.findall(r"\S+/\w+/\S+(?= \(in )", documents["alerts.txt"]))
    if not named:
        return {}
    most = named.most_common(1)[0][0]
    return {"root_cause": {"because": "most alerts", "entities": [most]}, "propagation": {"links": []}}
