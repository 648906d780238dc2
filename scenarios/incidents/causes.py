"""The causes: what each does to a service, how its log, events and metrics then show it, and what repairs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from .cluster import SHARED, Service
from .dice import Dice
from .schemas import Action, Cause, Metric

CAUSES: tuple[Cause, ...] = get_args(Cause)
CONFIGS = (  # key, a value that works, one that does not
    ("currency", "EUR", "EURO"),
    ("timezone", "UTC", "UTC+25"),
    ("page_size", "50", "0"),
    ("locale", "en_GB", "en_XX"),
    ("rounding", "half_up", "halfup"),
    ("schema", "v4", "v44"),
)


@dataclass(frozen=True)
class Wording:
    """A line of the log, and an event. `{s}` is the service; the other names are facts of `Broken`."""

    log: str
    event: str


@dataclass(frozen=True)
class Symptoms:
    """How a cause shows itself.

    metric      whose row tells it, and its readings when it has begun and at the alert
    plain       wording that names it
    veiled      wording that shows what it does
    by_caller   the log's lines are written by services that call it
    """

    metric: Metric
    readings: tuple[int, int]
    plain: Wording
    veiled: Wording
    by_caller: bool = False


SYMPTOMS: Mapping[Cause, Symptoms] = {
    "memory_limit": Symptoms(
        "memory_pct",
        (91, 99),
        Wording("ERROR out of memory: the heap needs {need} MiB, the limit is {have}", "a pod of {s} OOMKilled, restarted"),
        Wording(
            "WARN garbage collection took 4.1 s, 99% of {have} MiB in use", "a pod of {s} ended with exit code 137, restarted"
        ),
    ),
    "cpu_limit": Symptoms(
        "throttled_pct",
        (66, 88),
        Wording(
            "ERROR request took 6.2 s: CPU throttled at the limit of {have} m", "a pod of {s} CPU throttled, slow to answer"
        ),
        Wording(
            "ERROR request took 6.2 s, 5.7 s of it waiting for a processor", "autoscaler: {s} is slow, processors of nodes idle"
        ),
    ),
    "disk_full": Symptoms(
        "disk_pct",
        (100, 100),
        Wording("ERROR write failed: no space left on device", "the volume of {s} is full"),
        Wording("ERROR write to /var/data failed: ENOSPC", "backup of {s} could not write its file"),
    ),
    "pool_exhausted": Symptoms(
        "pool_pct",
        (97, 100),
        Wording("ERROR connection pool exhausted: {have} of {have} in use", "a pod of {s} not ready: waits for a connection"),
        Wording("ERROR gave up after 5 s in the queue for a database connection", "a pod of {s} not ready: HTTP 503"),
    ),
    "strict_probe": Symptoms(
        "restarts",
        (3, 6),
        Wording("ERROR health check took {need} s, the probe allows {have} s", "a pod of {s} killed: liveness probe timed out"),
        Wording(
            "WARN SIGTERM in the midst of work, {need} s after a health request",
            "a pod of {s} ended with exit code 143, restarted",
        ),
    ),
    "bad_image": Symptoms(
        "restarts",
        (4, 7),
        Wording("FATAL image {image} does not start: module codec not found", "a pod of {s} CrashLoopBackOff"),
        Wording("FATAL import of codec failed in main, stopping", "a pod of {s} ended with exit code 1, restarted"),
    ),
    "bad_config": Symptoms(
        "error_pct",
        (91, 98),
        Wording("ERROR invalid configuration: {key} is {value}, request refused", "a pod of {s} not ready: configuration"),
        Wording("ERROR request refused: cannot work with {key} {value}", "a pod of {s} not ready: HTTP 500"),
    ),
    "cert_expired": Symptoms(
        "requests_s",
        (3, 0),
        Wording("ERROR call to {s} failed: its certificate has expired", "certificate of {s} expired, renewal failed"),
        Wording("ERROR call to {s} failed: TLS handshake, not valid any more", "an order for {s} is pending for 3 days"),
        by_caller=True,
    ),
    "dns_record": Symptoms(
        "requests_s",
        (2, 0),
        Wording("ERROR call to {s} failed: DNS has no record of {s}.internal", "DNS: failed lookups of {s}"),
        Wording("ERROR call to {s} failed: no such host", "name server: 412 times NXDOMAIN for {s}"),
        by_caller=True,
    ),
    "wrong_password": Symptoms(
        "error_pct",
        (93, 97),
        Wording("ERROR database login failed: wrong password for {s}_app", "a pod of {s} not ready: database login"),
        Wording("ERROR database refused {s}_app: authentication (28P01)", "a pod of {s} not ready: HTTP 500"),
    ),
}


@dataclass(frozen=True)
class Remedy:
    action: Action
    value: str = "none"


@dataclass(frozen=True)
class Broken:
    """A service after a cause has struck it, and what repairs it.

    facts    what its log may tell
    where    whose change began it, and `change`: what it was; both "" where no change did
    """

    service: Service
    remedy: Remedy
    where: str = ""
    change: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def strike(cause: Cause, service: Service, dice: Dice) -> Broken:
    return BREAKS[cause](service, dice)


def _too_small(setting: str, action: Action, lowered_percent: int) -> Callable[[Service, Dice], Broken]:
    """A setting is too small: it was lowered, or the need has grown. Twice the setting, or what it was, covers the need."""

    def breaks(service: Service, dice: Dice) -> Broken:
        was = service.settings[setting]
        lowered = dice.chance(lowered_percent)
        have = was // 2 if lowered else was
        need = dice.between(have * 12 // 10, (was * 9 if lowered else have * 18) // 10)
        struck = replace(
            service,
            settings={**service.settings, setting: have},
            needs={**service.needs, setting: need * service.replicas if setting in SHARED else need},
        )
        facts = {"need": str(need), "have": str(have)}
        if lowered:
            return Broken(struck, Remedy(action, str(was)), service.name, f"{setting} {have}, before {was}", facts)
        return Broken(struck, Remedy(action, str(2 * have)), facts=facts)

    return breaks


def _strict_probe(service: Service, dice: Dice) -> Broken:
    was, need = service.settings["probe_s"], dice.between(2, 4)
    struck = replace(service, settings={**service.settings, "probe_s": 1}, needs={**service.needs, "probe_s": need})
    return Broken(
        struck, Remedy("set_probe", str(was)), service.name, f"probe_s 1, before {was}", {"need": str(need), "have": "1"}
    )


def _bad_image(service: Service, _: Dice) -> Broken:
    new = next_image(service.image)
    struck = replace(service, image=new)
    return Broken(
        struck, Remedy("rollback_image", service.image), service.name, f"image {new}, before {service.image}", {"image": new}
    )


def next_image(image: str) -> str:
    major, minor, _ = image.split(".")
    return f"{major}.{int(minor) + 1}.0"


def _bad_config(service: Service, dice: Dice) -> Broken:
    key, good, bad = dice.pick(CONFIGS)
    struck = replace(service, bad_keys=(key,))
    facts = {"key": key, "value": bad}
    return Broken(struck, Remedy("revert_config", key), service.name, f"config {key}: {bad}, before {good}", facts)


def _lacking(what: str, action: Action, where: str = "", change: str = "") -> Callable[[Service, Dice], Broken]:
    def breaks(service: Service, _: Dice) -> Broken:
        struck = replace(service, lacks=(what,))
        return Broken(struck, Remedy(action), where.format(s=service.name), change.format(s=service.name))

    return breaks


BREAKS: Mapping[Cause, Callable[[Service, Dice], Broken]] = {
    "memory_limit": _too_small("memory_mib", "set_memory", 50),
    "cpu_limit": _too_small("cpu_m", "set_cpu", 50),
    "disk_full": _too_small("disk_gib", "grow_disk", 0),
    "pool_exhausted": _too_small("pool", "set_pool", 50),
    "strict_probe": _strict_probe,
    "bad_image": _bad_image,
    "bad_config": _bad_config,
    "cert_expired": _lacking("certificate", "renew_cert"),
    "dns_record": _lacking("dns", "restore_dns", "zone internal", "3 unused records removed"),
    "wrong_password": _lacking("password", "reset_password", "{s}", "password of its database renewed"),
}
