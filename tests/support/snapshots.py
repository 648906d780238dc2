"""Writes small snapshots in the format of ITBench-Lite: invented incidents of an invented shop, nothing of the data set."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
RECORD = ("Timestamp", "TimestampTime", "SeverityText", "ServiceName", "Body", "ResourceAttributes", "LogAttributes")
"""Columns of a table of OpenTelemetry records; a real one has more."""

FLAGS_TRUTH = r"""
fault:
- entity: {group_id: flags-config-1, kind: ConfigMap, name: flags-config-1}
  condition: the flag cartFails was switched on
groups:
- {id: flags-config-1, kind: ConfigMap, namespace: shop, filter: [flags-config], root_cause: true}
- {id: cart-pod-1, kind: Pod, namespace: shop, filter: [cart-.*]}
- {id: cart-service-1, kind: Service, namespace: shop, filter: ['cart\b']}
- {id: frontend-service-1, kind: Service, namespace: shop, filter: ['frontend\b']}
aliases:
- [cart-pod-1, cart-service-1]
propagations:
- {source: flags-config-1, target: cart-pod-1, condition: flag on, effect: errors}
- {source: cart-pod-1, target: cart-service-1, condition: errors, effect: errors}
- {source: cart-service-1, target: frontend-service-1, condition: errors, effect: errors}
"""
QUOTA_TRUTH = r"""
apiVersion: itbench.io/v1
kind: GroundTruth
spec:
  groups:
  - {id: shop-namespace-1, kind: Namespace, filter: shop, root_cause: true}
  - {id: ad-pod-1, kind: Pod, namespace: shop, filter: [ad-.*], root_cause: true}
  - {id: ad-deployment-1, kind: Deployment, namespace: shop, filter: ['ad\b']}
  aliases: [[ad-pod-1, ad-deployment-1]]
  propagations:
"""


def snapshot(
    folder: Path,
    truth: str,
    *,
    alerts: Sequence[Sequence[Json]] = (),
    objects: Sequence[tuple[str, Json]] = (),
    events: Sequence[tuple[str, Json]] = (),
    logs: Sequence[tuple[str, str, str, str]] = (),
) -> Path:
    """Write one. `alerts`: those of each dump; `objects`, `events`: (time, body); `logs`: (time, severity, service, body)."""
    (folder / "alerts").mkdir(parents=True)
    (folder / "ground_truth.yaml").write_text(truth)
    for number, firing in enumerate(alerts):
        dump = {"status": "success", "data": {"alerts": list(firing)}}
        (folder / "alerts" / f"alerts_at_2025-01-01T12-0{number}-00.000001.json").write_text(json.dumps(dump))
    _table(folder / "k8s_objects_raw.tsv", [{"Timestamp": time, "Body": json.dumps(body)} for time, body in objects])
    _table(folder / "k8s_events_raw.tsv", [{"Timestamp": time, "Body": json.dumps({"object": body})} for time, body in events])
    _table(folder / "otel_logs_raw.tsv", [dict(zip(("Timestamp", "SeverityText", "ServiceName", "Body"), row)) for row in logs])  # noqa: B905
    return folder


def _table(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, RECORD, delimiter="\t", restval="")
        writer.writeheader()
        writer.writerows(rows)


def alert(name: str, since: str, description: str = "it fails", **labels: str) -> Json:
    known = {"alertname": name, "namespace": "shop", "severity": "critical", **labels}
    return {"labels": known, "annotations": {"description": description}, "state": "firing", "activeAt": f"2025-01-01T{since}Z"}


def thing(kind: str, name: str, made: str = "09:00:00", namespace: str = "shop", **parts: Json) -> Json:
    metadata = {"name": name, "creationTimestamp": f"2025-01-01T{made}Z", **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": metadata, **parts}


def event(
    reason: str, name: str, count: int = 1, kind: str = "Pod", message: str = "said", uid: str = "", sort: str = "Warning"
) -> Json:
    return {
        "metadata": {"uid": uid or f"{reason}-{name}"}, "reason": reason, "type": sort, "count": count, "message": message,
        "involvedObject": {"kind": kind, "name": name, "namespace": "shop"}, "lastTimestamp": "2025-01-01T12:01:00Z",
    }  # fmt: skip


EARLY, LATE = "2025-01-01 11:50:00.000000001", "2025-01-01 11:59:30.000000001"
SHOP = [
    (EARLY, thing("Namespace", "shop", namespace="")),
    *(
        (EARLY, thing(kind, name, spec={"replicas": 1}))
        for name in ("ad", "cart", "frontend")
        for kind in ("Deployment", "Service")
    ),
    *((EARLY, thing("Pod", f"{name}-5d9c-x7k2p", spec={})) for name in ("ad", "cart", "frontend")),
    (EARLY, thing("ConfigMap", "flags-config", data={"flags": "a: off\ncartFails: off\n"})),
    (EARLY, thing("Deployment", "operator", namespace="prometheus", spec={"replicas": 1})),
]


def snapshots_of_a_shop(root: Path) -> Path:
    """Two incidents: a flag that was switched on, and a quota that holds pods back; the folder that they lie in."""
    below = root / "snapshots" / "sre" / "v0"
    failing = alert("RequestErrorRate", "12:00:10", service_name="frontend")
    snapshot(
        below / "Scenario-2",
        FLAGS_TRUTH,
        alerts=[
            [alert("Watchdog", "09:00:00"), failing],
            [failing, alert("RequestErrorRate", "12:00:05", service_name="cart"), {**failing, "state": "pending"}],
        ],
        objects=[*SHOP, (LATE, thing("ConfigMap", "flags-config", data={"flags": "a: off\ncartFails: on\n"}))],
        events=[("2025-01-01 12:01:00", event("Unhealthy", "cart-5d9c-x7k2p", 3, uid="u"))] * 2,
        logs=[("2025-01-01 12:00:01", "ERROR", "cart", f"flag cartFails is on, basket {number} lost") for number in (17, 18)],
    )
    snapshot(
        below / "Scenario-10",
        QUOTA_TRUTH,
        alerts=[
            [
                alert("KubePodNotReady", "12:00:00", pod="ad-5d9c-x7k2p"),
                alert("RequestErrorRate", "12:00:09", service="frontend"),
            ]
        ],
        objects=[*SHOP, (LATE, thing("ResourceQuota", "memory", made="11:59:00", spec={"hard": {"memory": "1Gi"}}))],
        events=[(LATE, event("FailedCreate", "ad-5d9c", kind="ReplicaSet", message="exceeded quota: memory"))],
    )
    return root
