"""What happened: a cluster, what struck it, and all that is there beside it to mislead. Drawn from an instance's name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from .causes import CAUSES, SYMPTOMS, Broken, Remedy, Wording, next_image, strike
from .cluster import Cluster, Service
from .dice import Dice
from .levels import LEVELS, Level
from .schemas import Action, Cause, Severity
from .topology import Topology, topology

PERCENT: Mapping[Severity, tuple[int, int]] = {"critical": (50, 95), "major": (10, 45), "minor": (2, 8)}
"""Of the requests that fail, at least and at most, where an incident is called so."""
HARMLESS_CONFIGS = (
    ("log_level", "debug, before info"),
    ("cache_ttl_s", "90, before 60"),
    ("banner", "on, before off"),
    ("batch_size", "250, before 200"),
)
LIMITS: Mapping[Cause, tuple[str, Action]] = {"memory_limit": ("memory_mib", "set_memory"), "cpu_limit": ("cpu_m", "set_cpu")}


@dataclass(frozen=True)
class Change:
    """A change. `undone`: of a harmless one, the cause that it may be taken for, and what would undo it."""

    minute: int
    where: str
    what: str
    undone: tuple[Cause, Remedy] | None = None


@dataclass(frozen=True)
class Struck:
    """An incident, the present one or an old one: who wrote its lines of the log, in which words, and from when on."""

    service: str
    cause: Cause
    broken: Broken
    wording: Wording
    minute: int

    def line(self, speaker: str) -> str:
        return f"{speaker} {self._said(self.wording.log)}"

    @property
    def event(self) -> str:
        return self._said(self.wording.event)

    def _said(self, words: str) -> str:
        return words.format(s=self.service, **self.broken.facts)


@dataclass(frozen=True)
class Story:
    """An incident with its surroundings.

    topology   as it is now, with what struck it
    spare      what the nodes and the databases have left
    alert      minute of the day, and `percent` of the requests to the entry that fail by then
    noisy      services that warn all the time
    """

    level: Level
    topology: Topology
    spare: Mapping[str, int]
    alert: int
    percent: int
    severity: Severity
    incident: Struck
    old: tuple[Struck, ...]
    changes: tuple[Change, ...]
    noisy: tuple[str, ...]

    @property
    def entry(self) -> str:
        return self.topology.way[0]

    @property
    def victims(self) -> tuple[str, ...]:
        """Those that depend on the service at fault, the nearest first."""
        return self.topology.way[-2::-1]

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.topology.services, self.spare)

    def speaker(self, struck: Struck) -> str:
        """Who writes its lines of the log: the service itself, or the one that calls it."""
        return self.topology.caller(struck.service) if SYMPTOMS[struck.cause].by_caller else struck.service


def story(level: str, instance: str) -> Story:
    """The incident of an instance. Its cause depends on the instance's name alone, so that levels can be compared in pairs."""
    knobs, seed = LEVELS[level], (level, instance)
    healthy = topology(knobs.services, Dice("distance", *seed).between(*knobs.distance), Dice("topology", *seed))
    when, surroundings = Dice("time", *seed), Dice("surroundings", *seed)
    alert, lead = when.between(9 * 60 + 30, 17 * 60 + 30), when.between(4, 9)
    incident = _struck(cause_of(instance), healthy.way[-1], healthy, alert - lead, knobs, Dice("incident", *seed))
    old = _old(healthy, incident.cause, alert, knobs, surroundings)
    struck = {**healthy.services, incident.service: incident.broken.service}
    changes, services = _changes(struck, _quiet(healthy, old, knobs), incident, knobs, surroundings)
    severity = when.pick(list(PERCENT))
    return Story(
        level=knobs,
        topology=Topology(services, healthy.way),
        spare=_spare(list(healthy.services.values())),
        alert=alert,
        percent=when.between(*PERCENT[severity]),
        severity=severity,
        incident=incident,
        old=old,
        changes=changes,
        noisy=tuple(surroundings.shuffled(healthy.others)[: knobs.noisy]),
    )


def cause_of(instance: str) -> Cause:
    """Each ten instances of a kind, such as case_01 to case_10, have each cause once."""
    kind, _, number = instance.rpartition("_")
    block, place = divmod(int(number) - 1, len(CAUSES))
    return Dice("causes", kind, block).shuffled(CAUSES)[place]


def _struck(cause: Cause, name: str, where: Topology, minute: int, knobs: Level, dice: Dice) -> Struck:
    symptoms = SYMPTOMS[cause]
    wording = symptoms.plain if dice.chance(knobs.plain) else symptoms.veiled
    return Struck(name, cause, strike(cause, where.services[name], dice), wording, minute)


def _old(healthy: Topology, cause: Cause, alert: int, knobs: Level, dice: Dice) -> tuple[Struck, ...]:
    """Incidents of other services by other causes, long enough ago to be over."""
    services = dice.shuffled(healthy.others)[: knobs.old]
    causes = dice.shuffled([other for other in CAUSES if other != cause])
    return tuple(
        _struck(other, name, healthy, alert - dice.between(*knobs.old_minutes), knobs, dice)
        for name, other in zip(services, causes, strict=False)
    )


def _quiet(healthy: Topology, old: Sequence[Struck], knobs: Level) -> list[str]:
    """Services whose changes are harmless."""
    names = [*healthy.way[:-1], *healthy.others] if knobs.near else healthy.others
    return [name for name in names if name not in [one.service for one in old]]


def _changes(
    services: Mapping[str, Service], quiet: Sequence[str], incident: Struck, knobs: Level, dice: Dice
) -> tuple[tuple[Change, ...], Mapping[str, Service]]:
    """Harmless changes of quiet services and the one that began the incident, if one did; and the services after them."""
    after, made = dict(services), []
    for name in dice.shuffled(quiet)[: knobs.changes]:
        minutes = dice.between(1, 20) if knobs.near else dice.between(30, 300)
        after[name], what, cause, undo = _harmless(after[name], dice)
        made.append(Change(incident.minute - minutes, name, what, (cause, undo)))
    if incident.broken.change:
        made.append(Change(incident.minute - dice.between(1, 3), incident.broken.where, incident.broken.change))
    return tuple(sorted(made, key=lambda change: change.minute)), after


def _harmless(service: Service, dice: Dice) -> tuple[Service, str, Cause, Remedy]:
    """A service after a change that it bears, the change, the cause that it may be taken for, and what would undo it."""
    cause: Cause = dice.pick(("bad_image", "bad_config", "memory_limit", "cpu_limit"))
    if cause == "bad_image":
        old, new = service.image, next_image(service.image)
        changed = replace(service, image=new, images=(old, new))
        return changed, f"image {new}, before {old}", cause, Remedy("rollback_image", old)
    if cause == "bad_config":
        key, values = dice.pick(HARMLESS_CONFIGS)
        return service, f"config {key}: {values}", cause, Remedy("revert_config", key)
    setting, action = LIMITS[cause]
    was = service.settings[setting]
    now = was * dice.pick((3, 6)) // 4  # a quarter less leaves more than it needs
    changed = replace(service, settings={**service.settings, setting: now})
    return changed, f"{setting} {now}, before {was}", cause, Remedy(action, str(was))


def _spare(services: Collection[Service]) -> Mapping[str, int]:
    """Enough to double what any service has."""
    most = {
        setting: max(service.total(setting) for service in services) for setting in ("memory_mib", "cpu_m", "disk_gib", "pool")
    }
    return {**{setting: most[setting] * 3 // 2 for setting in most}, "pool": most["pool"] * 5 // 2}
