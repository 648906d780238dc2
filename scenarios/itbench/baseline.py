"""An answer by keyword rules alone: the floor under every score. Where it is right, the pack is too easy to tell anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from bench.scenario import Json


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """The entity that most alerts are about; no answer where none fired."""
    named = Counter(re.findall(r"\S+/\w+/\S+(?= \(in )", documents["alerts.txt"]))
    if not named:
        return {}
    most = named.most_common(1)[0][0]
    return {"root_cause": {"because": "most alerts", "entities": [most]}, "propagation": {"links": []}}
