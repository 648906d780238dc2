"""What is so of one incident, drawn from its name alone."""

from __future__ import annotations

from dataclasses import replace

from .case import NEVER, Case, Kind, Service
from .dice import Dice
from .limits import MAJOR_FROM, MINOR_FROM, NAMED, SENSITIVE
from .wordings import CAUSES, Cause

KINDS: tuple[tuple[Kind, ...], ...] = (
    ("bad_deploy",),
    ("redeployed",),
    ("schema_deploy",),
    ("schema_refused",),
    ("memory_leak", "stuck_worker"),
    ("traffic_surge",),
    ("bad_node",),
    ("cert_expired", "disk_full"),
    ("pool_exhausted",),
    ("provider_outage",),
    ("noise",),
    ("frozen",),
)
"""How an incident goes; each twelve instances have each once, and the one or the other of a pair."""
OF_DEPLOYS = ("bad_deploy", "redeployed", "schema_deploy", "schema_refused")
FREEZABLE: tuple[Cause, ...] = ("bad_version", "memory_leak", "traffic_surge", "pool_exhausted", "disk_full", "bad_node")
NAMES = ("login", "payments", "search", "catalogue", "basket", "orders", "shipping", "invoices", "reviews", "mail")


def kind_of(instance: str) -> Kind:
    """The kind of an instance, by its name: the twelves are shuffled, each by itself."""
    word, twelve, place = _numbered(instance)
    kinds = Dice("kinds", word, twelve).shuffled(KINDS)[place]
    return kinds[twelve % len(kinds)]


def _numbered(instance: str) -> tuple[str, int, int]:
    """The word of its name, the number of its twelve, and its place in there."""
    word, _, number = instance.rpartition("_")
    return word, *divmod(int(number) - 1, len(KINDS))


def story(instance: str) -> Case:
    """Everything about an instance, from its name alone."""
    kind, dice = kind_of(instance), Dice(instance)
    cause, twelve = _cause(kind, dice), _numbered(instance)[1]
    services = _services(dice)
    suspect = dice.pick(services[:1] + 3 * services[1:])
    services = tuple(
        _struck(one, kind, cause, dice, migrating=twelve % 4 in (0, 3)) if one is suspect else one for one in services
    )
    nodes = dice.between(4, 6)
    names = dice.shuffled([f"node-{number}" for number in range(1, nodes + 1)])
    drained = tuple(names[1:2]) if dice.chance(40) else ()
    other = dice.pick([one.name for one in services if one.name != suspect.name])
    elsewhere = kind in ("traffic_surge", "pool_exhausted", "disk_full") and dice.chance(50)
    return Case(
        incident=f"INC-{dice.between(10_000, 99_999)}",
        kind=kind,
        begins=60 * dice.between(0, 20) + 5 * dice.below(12),
        services=services,
        cause=cause,
        suspect=suspect.name,
        node=names[0] if cause == "bad_node" else "",
        error_pct=_error_pct(services[0].name, kind, dice),
        nodes=nodes,
        drained=drained,
        needed=nodes - len(drained) - (1 - twelve % 2),
        sound=kind != "schema_refused",
        settles=dice.between(18, 26) if dice.chance(35) else dice.between(2, 8),
        repairs=40 if kind == "provider_outage" else NEVER if dice.chance(50) else dice.between(12, 20),
        deploys=dice.between(4, 6) if kind == "redeployed" or elsewhere else 0,
        deployed=suspect.name if kind == "redeployed" else other if elsewhere else "",
        freeze=(dice.between(14, 22) if twelve % 2 else dice.between(5, 7)) if kind == "frozen" else 0,
        escalates=35 if kind == "provider_outage" else 0,
        again=(dice.between(2, 4), dice.between(9, 22)),
        wording=dice.below(1000),
    )


def _cause(kind: Kind, dice: Dice) -> Cause:
    """Most kinds are called as their cause is."""
    if kind in OF_DEPLOYS:
        return "bad_version"
    if kind == "noise":
        return "none_here"
    return next((cause for cause in CAUSES if cause == kind), dice.pick(FREEZABLE))


def _services(dice: Dice) -> tuple[Service, ...]:
    """Four services: the first calls two others, and one of these the last."""
    names = dice.shuffled(NAMES)[:4]
    calls = ((names[1], names[2]), (names[3],), (), ())
    return tuple(_service(name, called, dice) for name, called in zip(names, calls, strict=True))


def _service(name: str, calls: tuple[str, ...], dice: Dice) -> Service:
    major, minor = dice.between(1, 5), dice.between(1, 19)
    replicas = dice.between(3, 10 if name in NAMED else 8)
    versions = f"{major}.{minor}.0", f"{major}.{minor - 1}.0"
    return Service(name, calls, *versions, False, replicas, 10 * dice.between(4, 12))


def _struck(service: Service, kind: Kind, cause: Cause, dice: Dice, *, migrating: bool) -> Service:
    stateful = dice.chance(40)
    if kind in ("schema_deploy", "schema_refused"):
        return replace(service, schema_changed=True, stateful=stateful)
    if cause in ("memory_leak", "stuck_worker"):
        return replace(service, stateful=stateful and not migrating, migration_running=migrating, schema_changed=migrating)
    return service


def _error_pct(entry: str, kind: Kind, dice: Dice) -> int:
    """Often just beside a bound, and for the services that are sensitive between the two bounds of critical."""
    if kind == "noise":
        return dice.below(MINOR_FROM)
    minor, major, critical = (MINOR_FROM, MAJOR_FROM - 1), (MAJOR_FROM, 19), (50, 95)
    between = (21, 49)
    return dice.between(*dice.pick((between, critical) if entry in SENSITIVE else (minor, major, between, critical)))
