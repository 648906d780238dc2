"""Writes the documents of all sizes: python -m scenarios.k8s_oomkill.generate [FOLDER]

The incident's own lines are the same in each size; what grows is the day around it. Every draw comes from a generator
seeded by (SEED, size, document), so that the same call writes the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random

from .incident import APP_LOG, CHORES, EVENTS, MANIFEST, METRICS, METRICS_HEADER, REVISIONS, Line

SEED = 20260312
JOB_AT = 14 * 3600 + 5 * 60  # second of the day; what is drawn at random is routine, and ends where that ends


@dataclass(frozen=True)
class Extent:
    """How many lines are drawn around the incident, per document."""

    requests: int
    events: int
    metrics: int
    manifest: bool


EXTENTS = {
    "paper": Extent(requests=0, events=0, metrics=0, manifest=False),
    "medium": Extent(requests=80, events=38, metrics=40, manifest=True),
    "large": Extent(requests=236, events=95, metrics=120, manifest=True),
}


def documents(size: str) -> dict[str, str]:
    """Name -> text of each document of that size."""
    extent = EXTENTS[size]
    makers: dict[str, Callable[[Extent, Random], Iterator[str]]] = {
        "app.log": _app_log,
        "cluster.log": _events,
        "metrics.txt": _metrics,
        "deploys.txt": _deploys,
    }
    return {name: "\n".join(make(extent, Random(f"{SEED}/{size}/{name}"))) + "\n" for name, make in makers.items()}


def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def _merge(core: tuple[Line, ...], drawn: list[Line]) -> Iterator[str]:
    """In order of time; of two lines at one time the core's stays alone."""
    lines = dict(drawn) | dict(core)
    return (f"{time} {text}" for time, text in sorted(lines.items()))


def _app_log(extent: Extent, rng: Random) -> Iterator[str]:
    drawn = [(_clock(second), _request(rng)) for second in _moments(extent.requests, rng)]
    for hour in range(8, 13) if drawn else ():
        rows, heap = rng.randint(82_900, 84_900), rng.randint(405, 440)
        drawn.append((f"{hour:02}:05:04", f"INFO reconcile start cutoff={hour - 1:02}:00"))
        drawn.append((f"{hour:02}:05:{rng.randint(40, 55)}", f"INFO reconcile done rows={rows} heap={heap}Mi"))
    return _merge(APP_LOG, drawn)


def _moments(count: int, rng: Random) -> list[int]:
    return [rng.randint(8 * 3600, JOB_AT) for _ in range(count)]


def _request(rng: Random) -> str:
    routine = (
        f"INFO POST /payments 201 {rng.randint(60, 170)}ms id=p{rng.randint(10_000, 99_999)}",
        f"INFO GET /invoices/{rng.randint(1_000, 9_999)} 200 {rng.randint(20, 90)}ms",
        f"INFO POST /refunds 202 {rng.randint(80, 190)}ms id=r{rng.randint(1_000, 9_999)}",
        f"INFO heartbeat heap={rng.randint(370, 420)}Mi pool={rng.randint(7, 15)}",
        f"WARN redis used=4.0/4.0Gi evicted={rng.randint(180, 240)}/s",
        f"WARN upstream card-gateway slow {rng.randint(900, 1_400)}ms, retry 1/2",
        f"INFO session cache miss user=u{rng.randint(1_000, 9_999)}",
    )
    return rng.choices(routine, weights=(8, 8, 3, 4, 3, 1, 3))[0]


def _events(extent: Extent, rng: Random) -> Iterator[str]:
    return _merge(EVENTS, [(_clock(second), _event(rng)) for second in _moments(extent.events, rng)])


def _event(rng: Random) -> str:
    routine = (
        f"Warning CPUThrottlingHigh pod/report-gen-5d9c7 node-7 {rng.randint(61, 88)}%",
        f"Normal Pulled pod/ledger-svc-{rng.randint(10, 99)}c1f image ledger-svc:v1.9.3",
        "Normal Scheduled pod/report-gen-5d9c7 node-7",
        f"Normal SuccessfulCreate cronjob/mail-digest-{rng.randint(100, 999)}",
        f"Normal Completed cronjob/mail-digest-{rng.randint(100, 999)}",
        "Warning Unhealthy pod/ledger-svc-4kx2p readiness timeout",
        f"Normal LeaderElection lease/postgres-operator holder={rng.choice('abc')}",
        "Normal SuccessfulRescale hpa/report-gen replicas=2 reason=cpu",
    )
    return rng.choices(routine, weights=(5, 2, 2, 3, 3, 2, 2, 2))[0]


def _metrics(extent: Extent, rng: Random) -> Iterator[str]:
    yield METRICS_HEADER
    step = (14 - 8) * 60 // extent.metrics if extent.metrics else 0
    minutes = [8 * 60 + number * step for number in range(extent.metrics)]
    yield from _merge(METRICS, [(f"{minute // 60:02}:{minute % 60:02}", _calm(minute, rng)) for minute in minutes])


def _calm(minute: int, rng: Random) -> str:
    """A row of an ordinary minute: a busier hour before noon, the pool's new ceiling after 12:40, the neighbour after 13:30."""
    rps = rng.randint(480, 545) if 11 * 60 <= minute < 12 * 60 else rng.randint(395, 420)
    ceiling = 80 if minute < 12 * 60 + 40 else 50
    cpu = rng.randint(90, 96) if minute >= 13 * 60 + 30 else rng.randint(52, 66)
    heap, p99 = rng.randint(380, 435), rng.randint(176, 215)
    return f"{rps} {heap} {rng.randint(9, 15)}/{ceiling} {p99} 100 {cpu}"


def _deploys(extent: Extent, rng: Random) -> Iterator[str]:
    yield "namespace payments: deployments payment-svc (container payment-svc), ledger-svc, report-gen"
    yield "memory limit 2Gi; SLA p99 500 ms"
    for number in range(40 - extent.requests // 15, 40):
        yield f"rev {number} payment-svc:v2.3.{number} {date(2026, 3, 4) - timedelta(days=4 * (40 - number)):%m-%d} 09:30"
        yield from (f"  - {change}" for change in rng.sample(CHORES, 2))
    for number_and_image, rolled_out, changes in REVISIONS:
        yield f"rev {number_and_image} {rolled_out}"
        yield from (f"  - {change}" for change in changes)
    if extent.manifest:
        yield from MANIFEST


def write(folder: Path) -> None:
    """Write `<folder>/<size>/<document>` for every size."""
    for size in EXTENTS:
        (folder / size).mkdir(parents=True, exist_ok=True)
        for name, text in documents(size).items():
            (folder / size / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "documents")
