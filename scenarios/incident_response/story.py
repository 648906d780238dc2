"""What is so of one incident: a small cluster, what struck it, what comes meanwhile, and how it ends if all is done right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from bench.environment import Moment

from .dice import Dice
from .limits import MAJOR_FROM, MINOR_FROM, NAMED, SENSITIVE, scaled, severity_of
from .wordings import CAUSES, Cause

Kind = Literal[
    "bad_deploy",
    "redeployed",
    "schema_deploy",
    "schema_refused",
    "memory_leak",
    "stuck_worker",
    "traffic_surge",
    "bad_node",
    "cert_expired",
    "disk_full",
    "pool_exhausted",
    "provider_outage",
    "noise",
    "frozen",
]
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
"""How an incident goes; each twelve instances have each once, and of a pair one."""
OF_DEPLOYS = ("bad_deploy", "redeployed", "schema_deploy", "schema_refused")
FREEZABLE: tuple[Cause, ...] = ("bad_version", "memory_leak", "traffic_surge", "pool_exhausted", "disk_full", "bad_node")
TOOLS: Mapping[Cause, str] = {
    "bad_version": "roll_back",
    "memory_leak": "restart",
    "stuck_worker": "restart",
    "traffic_surge": "scale",
    "bad_node": "reboot",
    "cert_expired": "renew_certificate",
    "disk_full": "free_disk",
    "pool_exhausted": "raise_limit",
}
NAMES = ("login", "payments", "search", "catalogue", "basket", "orders", "shipping", "invoices", "reviews", "mail")
NEVER = 1_000
"""Minutes after which something comes that does not come any more."""


@dataclass(frozen=True)
class Service:
    """`previous`: the version before the present one; `schema_changed`: between the two."""

    name: str
    calls: tuple[str, ...]
    version: str
    previous: str
    stateful: bool
    replicas: int
    connections: int
    schema_changed: bool = False
    migration_running: bool = False


@dataclass(frozen=True)
class Remedy:
    """What repairs it: a tool, or a page of `owner` or `provider`; tool "" where nothing is to be done."""

    tool: str
    target: str = ""
    amount: int = 0


@dataclass(frozen=True)
class Case:
    """begins        the minute of day 0 at which its world begins
    services      the first is that of the alert
    error_pct     of the service of the alert, at the alert
    nodes         how many there are; `drained`: those that stand empty from the beginning; `needed`: that must stay ready
    sound         what the lead thinks of the remedy, where asked
    settles       minutes from the remedy until all is well
    repairs       minutes until a person who is paged has repaired it
    deploys       the minute after the beginning at which somebody else deploys, and the service; 0 where nobody does
    freeze        the minute after the beginning at which changes are frozen; 0 where they are not
    escalates     likewise, at which it grows worse
    """

    incident: str
    kind: Kind
    begins: int
    services: tuple[Service, ...]
    cause: Cause
    suspect: str
    node: str
    error_pct: int
    nodes: int
    drained: tuple[str, ...]
    needed: int
    sound: bool
    settles: int
    repairs: int
    deploys: int
    deployed: str
    freeze: int
    escalates: int
    again: tuple[int, int]
    wording: int

    @property
    def entry(self) -> str:
        return self.services[0].name

    @property
    def severity(self) -> str:
        return severity_of(self.entry, self.error_pct)

    @property
    def struck(self) -> Service:
        return next(one for one in self.services if one.name == self.suspect)

    def moment(self, minutes: int) -> Moment:
        """So many minutes after the beginning."""
        return Moment(0, self.begins).after(minutes=minutes)

    @property
    def remedy(self) -> Remedy:
        """What is right to do, before anybody is asked."""
        if self.kind in ("noise", "redeployed"):
            return Remedy("")
        if self.cause == "provider_outage":
            return Remedy("page", "provider")
        tool = TOOLS[self.cause]
        if tool == "reboot":
            fits = self.nodes - len(self.drained) - 1 >= self.needed
            return Remedy("reboot", self.node) if fits else Remedy("page", "owner")
        if tool == "restart" and self.struck.migration_running:
            return Remedy("page", "owner")
        amounts = {"scale": scaled(self.suspect, self.struck.replicas), "raise_limit": 2 * self.struck.connections}
        return Remedy(tool, self.suspect, amounts.get(tool, 0))

    @property
    def needs_lead(self) -> bool:
        """Whether the policy wants a person for the remedy."""
        tool, struck = self.remedy.tool, self.struck
        return tool in ("roll_back", "restart") and (struck.stateful or (tool == "roll_back" and struck.schema_changed))

    @property
    def refused(self) -> bool:
        return self.needs_lead and not self.sound

    @property
    def is_for_owner(self) -> bool:
        """Whether its service's owner has to repair it."""
        return self.remedy == Remedy("page", "owner") or self.refused

    @property
    def handed_over(self) -> bool:
        """Whether it still fails when the agent's time is over."""
        return self.is_for_owner and self.repairs == NEVER

    @property
    def postmortem(self) -> bool:
        rolled_back = self.remedy.tool == "roll_back" and not self.refused
        return self.kind != "noise" and (self.severity == "critical" or rolled_back or self.handed_over)


def kind_of(instance: str) -> Kind:
    """The kind of an instance, by its name: the twelves are shuffled, each by itself."""
    word, _, number = instance.rpartition("_")
    twelve, place = divmod(int(number) - 1, len(KINDS))
    dice = Dice("kinds", word, twelve)
    return dice.pick(dice.shuffled(KINDS)[place])


def story(instance: str) -> Case:
    """Everything about an instance, from its name alone."""
    kind, dice = kind_of(instance), Dice(instance)
    cause = _cause(kind, dice)
    services = _services(dice)
    suspect = dice.pick(services[:1] + 3 * services[1:])
    services = tuple(_struck(one, kind, cause, dice) if one is suspect else one for one in services)
    nodes = dice.between(4, 6)
    names = dice.shuffled([f"node-{number}" for number in range(1, nodes + 1)])
    drained = tuple(names[1:2]) if dice.chance(40) else ()
    other = dice.pick([one.name for one in services if one.name != suspect.name])
    elsewhere = kind in ("traffic_surge", "pool_exhausted", "disk_full") and dice.chance(50)
    return Case(
        incident=f"INC-{dice.between(1000, 9999)}",
        kind=kind,
        begins=60 * dice.between(0, 20) + 5 * dice.below(12),
        services=services,
        cause=cause,
        suspect=suspect.name,
        node=names[0] if cause == "bad_node" else "",
        error_pct=_error_pct(services[0].name, kind, dice),
        nodes=nodes,
        drained=drained,
        needed=nodes - len(drained) - (1 if dice.chance(65) else 0),
        sound=kind != "schema_refused",
        settles=dice.between(18, 26) if dice.chance(35) else dice.between(2, 8),
        repairs=40 if kind == "provider_outage" else NEVER if dice.chance(50) else dice.between(12, 20),
        deploys=dice.between(4, 6) if kind == "redeployed" or elsewhere else 0,
        deployed=suspect.name if kind == "redeployed" else other if elsewhere else "",
        freeze=dice.pick((dice.between(5, 7), dice.between(14, 22))) if kind == "frozen" else 0,
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


def _struck(service: Service, kind: Kind, cause: Cause, dice: Dice) -> Service:
    stateful, migrating = dice.chance(40), dice.chance(35)
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
