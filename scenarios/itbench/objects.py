"""The objects of a cluster and their changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from .entities import EPHEMERAL, Entity
from .records import Json, child, clock, objects

CONTENT = ("spec", "data", "rules", "roleRef")
"""The parts of an object that somebody writes; the others are its state."""
CONTEXT, LONGEST = 30, 70
"""Characters of a changed text that are shown before the place where it differs, and from there on."""


@dataclass(frozen=True, order=True)
class Change:
    """A change of an object. `what` is `spec.replicas: 1 -> 0`, or says that the object was created during the recording of the
    snapshot."""

    time: str
    entity: Entity
    what: str


@dataclass(frozen=True)
class Cluster:
    """All objects that the snapshot shows, and the changes of the relevant ones by time."""

    entities: frozenset[Entity]
    changes: tuple[Change, ...]


def cluster_of(folder: Path) -> Cluster:
    """Return the cluster of a snapshot. Raises PackError if the table of objects cannot be read."""
    entities: set[Entity] = set()
    made: dict[Entity, str] = {}
    versions: dict[Entity, list[tuple[str, Json]]] = {}
    begin = ""
    for time, value in objects(folder / "k8s_objects_raw.tsv"):
        entity = entity_of(value)
        if entity is None:
            continue
        begin = min(begin or time, time)
        entities.add(entity)
        if entity.kind not in EPHEMERAL:
            made.setdefault(entity, clock(child(value, "metadata").get("creationTimestamp")))
            content = {name: value[name] for name in CONTENT if name in value}
            known = versions.setdefault(entity, [])
            if not known or known[-1][1] != content:
                known.append((time, content))
    changes = [Change(time, entity, "was created") for entity, time in made.items() if time > begin]
    for entity, known in versions.items():
        known.sort(key=lambda version: version[0])
        for (_, old), (time, new) in pairwise(known):
            changes += [Change(time, entity, what) for what in _differences(old, new)]
    return Cluster(frozenset(entities), tuple(sorted(changes)))


def entity_of(value: Json) -> Entity | None:
    metadata, kind = child(value, "metadata"), value.get("kind")
    if not (isinstance(kind, str) and isinstance(metadata.get("name"), str)):
        return None
    return Entity(str(metadata.get("namespace") or ""), kind, metadata["name"])


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the smallest parts that differ, each with its path."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}[{number}]")
    elif old != new:
        before, after = (value if isinstance(value, str) else json.dumps(value) for value in (old, new))
        start = max(0, _agreement(before, after) - CONTEXT)
        yield f"{path}: {_shown(before, start)} -> {_shown(after, start)}"


def _agreement(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _shown(text: str, start: int) -> str:
    part = " ".join(text[start : start + CONTEXT + LONGEST].split())
    return f"{'...' if start else ''}{part}{'...' if start + CONTEXT + LONGEST < len(text) else ''}"
