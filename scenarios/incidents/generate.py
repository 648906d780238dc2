"""Makes an instance: documents, reference, wrong answers and truth, from its level and its name alone.

python -m scenarios.incidents.generate medium case_07     shows one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from bench.scenario import Json, WrongAnswer

from .answers import reference, truth, wrong
from .documents import documents
from .story import story


@dataclass(frozen=True)
class Incident:
    documents: Mapping[str, str]
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Json


def incident(level: str, instance: str) -> Incident:
    told, seed = story(level, instance), (level, instance)
    return Incident(documents(told, seed), reference(told, seed), wrong(told, seed), truth(told, seed))


def main(level: str, instance: str) -> None:
    made = incident(level, instance)
    for name, text in made.documents.items():
        print(f"=== {name}\n{text}")
    print(json.dumps({"reference": made.reference, "truth": made.truth}, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
