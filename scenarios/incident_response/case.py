"""One incident: a small cluster, what struck it, what comes meanwhile, and how it ends if all is done right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bench.worlds.run.environment import Moment

from .limits import scaled, severity_of
from .wordings import Cause

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
