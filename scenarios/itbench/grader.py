"""Grade a diagnosis by ITBench's definition: precision, recall and F1 of the root cause's entities; right if F1 is 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.scenario import Answer, Grade, Json

from .entities import Entity, parsed
from .truth import Truth, precision_and_recall


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    """Grade a diagnosis. `score` is the F1 of the entities. The propagation is a separate part, which does not change the
    score."""
    known = Truth.model_validate(truth)
    entities = [_entity(name) for name in dict.fromkeys(answer["root_cause"].entities)]
    precision, recall = precision_and_recall(known, entities)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    parts = {"precision": precision, "recall": recall, "f1": f1}
    links = list(known.links())
    if links:
        parts["propagation"] = sum(_has(answer["propagation"].links, known, *link) for link in links) / len(links)
    note = "" if f1 == 1 else f"precision {precision:.2f}, recall {recall:.2f}"
    return Grade(f1 == 1, f1, parts, note)


def _has(links: Any, truth: Truth, source: frozenset[str], target: frozenset[str]) -> bool:
    return any(truth.means(_entity(link.source), source) and truth.means(_entity(link.target), target) for link in links)


def _entity(name: str) -> Entity:
    """Return the entity of a name. A name in another form matches nothing; an unchecked answer can contain such a name."""
    return parsed(name) or Entity("", "", name)
