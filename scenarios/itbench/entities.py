"""The entities that an answer names: objects of the cluster, written `namespace/Kind/name`, as in ITBench."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

WATCHERS = frozenset(
    [
        *("kube-system", "kube-public", "kube-node-lease", "data-recorders", "metrics-server", "prometheus", "opensearch"),
        *("clickhouse", "clickhouse-operator", "opentelemetry-operator", "opentelemetry-collectors"),
    ]
)
"""Namespaces of what observes the application. ITBench's evaluator can leave them out; here they are shown last, if room is."""
EPHEMERAL = frozenset(
    ["Pod", "ReplicaSet", "Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision", "PodMetrics", "NodeMetrics"]
)
"""Kinds that come and go, or change all the time, without anybody changing anything."""
LONGEST_NAME = 253
"""Characters, as Kubernetes has it."""


@dataclass(frozen=True, order=True)
class Entity:
    """An object of a cluster. `namespace` is "" for an object without one, such as a node or a namespace."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace or 'cluster'}/{self.kind}/{self.name}"

    @property
    def watches(self) -> bool:
        return self.namespace in WATCHERS or (self.kind == "Namespace" and self.name in WATCHERS)


def parsed(text: str) -> Entity | None:
    """Return the entity that an answer names; None if the text has another form."""
    parts = re.fullmatch(rf"([\w.-]*)/([A-Za-z]+)/([\w.:-]{{1,{LONGEST_NAME}}})", text.strip())
    return Entity("" if parts[1] == "cluster" else parts[1], parts[2], parts[3]) if parts else None


def is_named(entity: Entity, documents: Mapping[str, str]) -> bool:
    """Return whether a document contains its name."""
    return any(_says(text, entity.name) for text in documents.values())


def is_shown(entity: Entity, documents: Mapping[str, str]) -> bool:
    """Return whether a document contains its name, or lists its workload: `cart` shows the pod `cart-5d9c-x7k2p`."""
    return is_named(entity, documents) or _says(documents["entities.txt"], entity.name.rsplit("-", 2)[0])


def _says(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None
