"""Make a task of a snapshot: its documents, the reference answer, wrong answers, and the truth for the grader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.common.errors import PackError
from bench.scenario import Json, WrongAnswer

from .documents import alerts, documents_of
from .entities import Entity, is_named, is_shown, parsed
from .objects import cluster_of
from .truth import Group, Truth, read_truth

MOST_AFFECTED = 8


@dataclass(frozen=True)
class Made:
    documents: Mapping[str, str]
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Mapping[str, Any]


@cache
def made_of(snapshot: Path) -> Made:
    """Return the task of a snapshot. It is read once in a process, since a snapshot may have a gigabyte. Raises PackError if
    the snapshot cannot be read or graded."""
    truth_json = read_truth(snapshot)
    truth, cluster = Truth.model_validate(truth_json), cluster_of(snapshot)
    documents, fired = documents_of(snapshot, cluster), alerts(snapshot)
    if not fired:
        raise PackError(f"{snapshot}: no alert fired in it, so there is no incident to explain; take it out")
    candidates = sorted(cluster.entities | {entity for entity, _ in fired}, key=lambda one: (not is_named(one, documents), one))
    causes = [_entity_of(truth, ids, candidates, documents, snapshot) for ids in truth.root_causes]
    affected = list(dict.fromkeys(str(entity) for entity, _ in fired if parsed(str(entity))))[:MOST_AFFECTED]
    reference = {
        "symptoms": {"first_alert": documents["alerts.txt"].split("\n")[0], "affected": affected or [str(causes[0])]},
        "root_cause": {"because": "The changes, events and logs speak for it.", "entities": list(map(str, causes))},
        "propagation": {"links": _links(truth, causes, candidates, affected)},
    }
    others = [one for one in (*(entity for entity, _ in fired), *candidates) if parsed(str(one)) and not _is_cause(truth, one)]
    shown = [str(one) for one in others if is_named(one, documents) and not one.watches]
    if not shown:
        raise PackError(f"{snapshot}: shows nothing but its root cause, so there is nothing to tell apart; take it out")
    return Made(documents, reference, _wrong(list(map(str, causes)), shown, affected, truth), truth_json)


def _is_cause(truth: Truth, entity: Entity) -> bool:
    return any(truth.means(entity, ids) for ids in truth.root_causes)


def _entity_of(
    truth: Truth, ids: frozenset[str], candidates: Sequence[Entity], documents: Mapping[str, str], snapshot: Path
) -> Entity:
    """Return an entity that is this root cause and that the documents show. Raises PackError if they show none."""
    marked = [group for group in truth.groups if group.id in ids]
    by_rank = sorted(marked, key=lambda group: not group.root_cause)  # an alias where the root cause itself is not to be seen
    for group in by_rank:
        shown = (one for one in candidates if group.has(one) and is_shown(one, documents))
        if found := next(shown, None):
            return found
    said = ", ".join(f"{group.kind} {' or '.join(group.filter)}" for group in marked)
    raise PackError(f"{snapshot}: no document made of it names its root cause ({said}), so nobody could find it; take it out")


def _links(
    truth: Truth, causes: Sequence[Entity], candidates: Iterable[Entity], affected: Sequence[str]
) -> list[dict[str, str]]:
    """Return the links of the truth. If none begins at a cause, a link from the cause to an affected entity comes before
    them."""
    known = [*causes, *candidates]

    def shown(ids: frozenset[str]) -> str:
        group = next(group for group in truth.groups if group.id in ids)
        return str(next((one for one in known if truth.means(one, ids)), _spelled(group)))

    named = {group.id for group in truth.groups}
    links = [(source & named, target & named) for source, target in truth.links()]
    found = [{"source": shown(source), "target": shown(target)} for source, target in links if source and target]
    begins = not found or any(link["source"] in map(str, causes) for link in found)
    return found if begins else [{"source": str(causes[0]), "target": (*affected, str(causes[0]))[0]}, *found]


def _spelled(group: Group) -> Entity:
    """Return a name that the group's pattern may mean, for an end of a link that the snapshot does not show."""
    name = re.sub(r"\\b|\(.*?\)[?*]|[.][*+]|[\\^$?]", "", group.filter[0]).strip("-") or group.id
    return Entity(group.namespace or "", group.kind, name)


def _wrong(causes: list[str], others: Sequence[str], affected: Sequence[str], truth: Truth) -> tuple[WrongAnswer, ...]:
    """Return answers that a too fast reading leads to. Each passes the verifier."""
    first = others[0]
    bystander = next((one for one in reversed(others) if one not in affected), others[-1])
    named = " and ".join(sorted({group.id for group in truth.groups if group.root_cause}))

    def blaming(*entities: str) -> dict[str, Json]:
        because = {"because": "It was the first to alert.", "entities": list(entities)}
        return {"root_cause": because, "propagation": {"links": [{"source": entities[0], "target": first}]}}

    return (
        WrongAnswer("blames_what_suffers", f"the root cause is {named}", blaming(first)),
        WrongAnswer("blames_a_bystander", f"the root cause is {named}", blaming(bystander)),
        WrongAnswer("names_one_too_many", f"{first} is no root cause", blaming(*causes[:4], first)),
    )
