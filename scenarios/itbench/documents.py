"""Make short documents of a snapshot. They are deterministic, and each is bounded in tokens, so that all fit into 8k."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.common.tokens import count_tokens

from .entities import EPHEMERAL, Entity
from .objects import Cluster
from .records import Json, alert_dumps, child, clock, objects, one_line, table

BUDGET = {"alerts.txt": 900, "events.txt": 900, "changes.txt": 1100, "logs.txt": 900, "entities.txt": 900}
"""Tokens (cl100k_base) of each document at most. What stands first matters most, and the rest is cut, with its number."""
ALWAYS = ("Watchdog", "InfoInhibitor")
"""Alerts that fire whether or not something is wrong."""
SEVERE = ("ERROR", "FATAL", "CRITICAL", "EMERGENCY", "ALERT", "SEVERE")
LONGEST, IN_A_LINE = 160, 20
"""Characters of a message, and names in a line."""
VARIABLE = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}(?:-[0-9a-f]+)*|\d+", re.IGNORECASE)
"""What differs between two log lines that say the same: numbers, digests, ids."""


def documents_of(folder: Path, cluster: Cluster) -> dict[str, str]:
    lines = {
        "alerts.txt": [text for _, text in alerts(folder)],
        "events.txt": _events(folder),
        "changes.txt": _changes(cluster),
        "logs.txt": _logs(folder),
        "entities.txt": _entities(cluster.entities),
    }
    return {name: bounded(lines[name], BUDGET[name]) for name in lines}


def bounded(lines: Iterable[str], tokens: int) -> str:
    """Return the first lines that fit, and the number of lines that do not."""
    kept: list[str] = []
    every = list(lines)
    room = tokens - count_tokens(f"({len(every)} more)")
    for line in every:
        room -= count_tokens(f"{line}\n")
        if room < 0:
            return "\n".join([*kept, f"({len(every) - len(kept)} more)"])
        kept.append(line)
    return "\n".join(kept) or "(none)"


def alerts(folder: Path) -> list[tuple[Entity, str]]:
    """Return each alert that fired: its entity, and its line. The earliest come first, and alerts of observers last."""
    first: dict[tuple[str, Entity], str] = {}
    said: dict[tuple[str, Entity], str] = {}
    dumps: Counter[tuple[str, Entity]] = Counter()
    for dump in alert_dumps(folder):
        for key, alert in {_key(alert): alert for alert in dump if alert.get("state") == "firing"}.items():
            if key[0] in ALWAYS:
                continue
            since, notes = clock(alert.get("activeAt")), child(alert, "annotations")
            first[key] = min(first.get(key, since), since)
            said[key] = one_line(notes.get("description") or notes.get("summary") or notes.get("message"), LONGEST)
            dumps[key] += 1
    order = sorted(first, key=lambda key: (key[1].watches, first[key], key))
    return [(key[1], f"{first[key]} {key[0]} {key[1]} (in {dumps[key]} dumps): {said[key]}") for key in order]


def _key(alert: Json) -> tuple[str, Entity]:
    labels = child(alert, "labels")
    kinds = {"service_name": "Service", "service": "Service", "deployment": "Deployment", "pod": "Pod", "node": "Node"}
    kind, name = next(((kind, str(labels[label])) for label, kind in kinds.items() if labels.get(label)), ("Namespace", ""))
    namespace = str(labels.get("namespace") or "")
    return str(labels.get("alertname") or "?"), Entity(namespace, kind, name or namespace or "?")


def _events(folder: Path) -> list[str]:
    """Return events counted by object and reason: warnings before others, the most frequent first."""
    seen: dict[str, tuple[int, str]] = {}
    about: dict[str, tuple[bool, Entity, str]] = {}
    said: dict[tuple[bool, Entity, str], str] = {}
    for time, event in objects(folder / "k8s_events_raw.tsv"):
        involved = child(event, "involvedObject") or child(event, "regarding")
        if not involved.get("name"):
            continue
        entity = Entity(str(involved.get("namespace") or ""), str(involved.get("kind") or "?"), str(involved["name"]))
        key = (event.get("type") != "Warning", entity, str(event.get("reason") or "?"))
        # An event that comes again is the same object with a higher count.
        metadata, count = child(event, "metadata"), event.get("count")
        uid = str(metadata.get("uid") or metadata.get("name") or f"{key} {time}")
        times = max(int(count) if isinstance(count, int) else 1, seen.get(uid, (0, ""))[0])
        seen[uid], about[uid] = (times, clock(event.get("lastTimestamp") or event.get("eventTime")) or time), key
        said[key] = one_line(event.get("message") or event.get("note"), LONGEST)
    counts: Counter[tuple[bool, Entity, str]] = Counter()
    last: dict[tuple[bool, Entity, str], str] = defaultdict(str)
    for uid, key in about.items():
        counts[key] += seen[uid][0]
        last[key] = max(last[key], seen[uid][1])
    order = sorted(counts, key=lambda key: (key[1].watches, key[0], -counts[key], key))
    return [
        f"{counts[key]}x {'Normal' if key[0] else 'Warning'} {key[2]} {key[1]}, last {last[key]}: {said[key]}" for key in order
    ]


def _changes(cluster: Cluster) -> list[str]:
    order = sorted(cluster.changes, key=lambda change: change.entity.watches)  # stable: by time within each
    return list(dict.fromkeys(f"{change.time} {change.entity} {change.what}" for change in order))


def _logs(folder: Path) -> list[str]:
    """Return errors in the logs, counted by service and message; the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for time, severity, service, body in table(
        folder / "otel_logs_raw.tsv", ("Timestamp", "SeverityText", "ServiceName", "Body")
    ):
        if severity.upper() in SEVERE:
            key = (service, VARIABLE.sub("#", one_line(body, 400)))
            counts[key] += 1
            first.setdefault(key, (clock(time), one_line(body, LONGEST)))
    order = sorted(counts, key=lambda key: (-counts[key], key))
    return [f"{counts[key]}x {key[0] or '?'}, first {first[key][0]}: {first[key][1]}" for key in order]


def _entities(entities: Iterable[Entity]) -> list[str]:
    """Return the entities by namespace and kind. Pods and other short-lived objects are left out: their names begin with their
    workload's."""
    groups: Mapping[tuple[bool, bool, str, str], list[str]] = defaultdict(list)
    for entity in sorted(entities):
        if entity.kind not in EPHEMERAL:
            global_ = not entity.namespace and entity.kind != "Namespace"  # roles and the like: there may be hundreds
            groups[(entity.watches, global_, entity.namespace, entity.kind)].append(entity.name)
    return [
        f"{namespace or 'cluster'}/{kind}/: {', '.join(names[start : start + IN_A_LINE])}"
        for (_, _, namespace, kind), names in sorted(groups.items())
        for start in range(0, len(names), IN_A_LINE)
    ]
