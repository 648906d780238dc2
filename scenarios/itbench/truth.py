"""A snapshot's ground truth, and whether an entity that an answer names is part of it.

The definition is that of ITBench's evaluator (see README.md), said in code: an entity is a root cause if kind, namespace and
name are those of a group that is marked as one, or of an alias of such a group. There a model judges, here patterns do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from bench.common.errors import PackError
from bench.common.wording import first_violation

from .entities import Entity
from .place import TRUTH

Patterns = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]


class Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Group(Lenient):
    """Entities that are one in the ground truth: of this kind and namespace, with a name that a pattern matches whole."""

    id: str
    kind: str
    namespace: str | None = None
    filter: Patterns = Field(min_length=1)
    root_cause: bool = False

    @field_validator("filter")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"has a pattern that cannot be read: {pattern!r}") from error
        return patterns

    def has(self, entity: Entity) -> bool:
        if entity.kind.lower() != self.kind.lower() or (self.namespace and entity.namespace != self.namespace):
            return False
        return any(re.fullmatch(pattern, entity.name) for pattern in self.filter)


class Propagation(Lenient):
    """From the group `source` the failure spread to `target`; both are ids of groups."""

    source: str
    target: str


class Truth(Lenient):
    groups: tuple[Group, ...]
    aliases: tuple[tuple[str, ...], ...] = ()
    propagations: tuple[Propagation, ...] = ()

    @property
    def root_causes(self) -> tuple[frozenset[str], ...]:
        """Return the ids of each root cause and its aliases. Two root causes that are aliases of each other count as one."""
        found = dict.fromkeys(self.alike(group.id) for group in self.groups if group.root_cause)
        return tuple(found)

    def alike(self, group: str) -> frozenset[str]:
        """Return the ids of a group and of all its aliases."""
        ids = {group}
        while more := {id_ for alias in self.aliases if ids & set(alias) for id_ in alias} - ids:
            ids |= more
        return frozenset(ids)

    def means(self, entity: Entity, ids: frozenset[str]) -> bool:
        return any(group.has(entity) for group in self.groups if group.id in ids)

    def links(self) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        """Yield the propagations, each end with its aliases. A propagation within an alias does not count, since nothing was
        spread."""
        ends = [(self.alike(link.source), self.alike(link.target)) for link in self.propagations]
        yield from dict.fromkeys((source, target) for source, target in ends if source != target)


def read_truth(folder: Path) -> Mapping[str, Any]:
    """Return the ground truth as JSON. Raises PackError if it is no ground truth, or names no root cause."""
    import yaml  # noqa: PLC0415  the extra `itbench`

    path = folder / TRUTH
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # a date or a number can be none
        raise PackError(f"{path}: is no YAML: {' '.join(str(error).split())}; fetch it anew") from error
    value = value.get("spec", value) if isinstance(value, dict) else value
    try:
        truth = Truth.model_validate(_lists(value))
    except ValidationError as error:
        first = first_violation(error)
        raise PackError(f"{path}: is no ground truth of ITBench: {first.place or 'it'} {first.words}") from error
    if not truth.root_causes:
        raise PackError(f"{path}: marks no group as root_cause, so no answer could be graded; take its folder out")
    return truth.model_dump(mode="json")


def _lists(value: Any) -> Any:
    """Return a table without its null fields: the ground truth can write an empty list as null."""
    return {name: inner for name, inner in value.items() if inner is not None} if isinstance(value, dict) else value


def precision_and_recall(truth: Truth, entities: Sequence[Entity]) -> tuple[float, float]:
    """Return the share of the named entities that are root causes, and the share of the root causes that are named."""
    causes = truth.root_causes
    right = [entity for entity in entities if any(truth.means(entity, ids) for ids in causes)]
    named = [ids for ids in causes if any(truth.means(entity, ids) for entity in entities)]
    return (len(right) / len(entities) if entities else 0.0), len(named) / len(causes)
