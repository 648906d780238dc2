"""Contracts of a world: the tools that a role can call, and how often. A call outside its contract is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from bench.common.errors import PackError, nearest
from bench.record.moment import Moment
from bench.worlds.run.environment.calling import RefusalCode

ANY = "*"


@dataclass(frozen=True)
class Role:
    """The tools that an agent in this role can call: those in `allows` (all tools if it is empty), except those in `denies`."""

    allows: tuple[str, ...] = ()
    denies: tuple[str, ...] = ()

    def may_call(self, tool: str) -> bool:
        """Return whether the role's contract allows calls of this tool."""
        return (not self.allows or tool in self.allows) and tool not in self.denies


@dataclass(frozen=True)
class Quota:
    """A limit of `most` calls of a tool (or of all tools) by a role (or by all roles), in a day of world time or in the whole
    trial. Refused calls, and calls answered by their idempotency key, do not count."""

    most: int
    tool: str = ANY
    role: str = ANY
    per: Literal["day", "trial"] = "trial"

    def concerns(self, tool: str, role: str) -> bool:
        """Return whether this quota limits calls of this tool by this role."""
        return self.tool in (ANY, tool) and self.role in (ANY, role)

    def since(self, now: Moment) -> Moment | None:
        """Return the moment from which calls count; None stands for the world's start."""
        return Moment(now.day) if self.per == "day" else None

    def refusal(self, now: Moment) -> Refusal:
        """Return the refusal of a call beyond this quota."""
        calls = f"{self.most} calls of {'the tools' if self.tool == ANY else self.tool}"
        if self.role != ANY:
            calls += f" by {self.role}"
        if self.per == "day":
            again = Moment(now.day + 1)
            return Refusal(f"throttled: {calls} are taken in a day; wait until {again}", "throttled", again)
        return Refusal(f"the quota of {calls} in a trial is used up", "quota")


@dataclass(frozen=True)
class Refusal:
    """The reason why a call is refused. `again` is the moment when calls are accepted again; None if waiting does not help."""

    reason: str
    code: RefusalCode
    again: Moment | None = None


def refuse_contracts(roles: Mapping[str, Role], quotas: Iterable[Quota], tools: Iterable[str], where: str) -> None:
    """Raise PackError for the first contract that names an unknown tool or role, or that cannot be kept."""
    tools = tuple(tools)
    for name, role in roles.items():
        for tool in (*role.allows, *role.denies):
            if tool not in tools:
                raise PackError(f"{where}: the role '{name}' names '{tool}', which is not a tool; {nearest(tool, tools)}")
    for quota in quotas:
        if quota.most < 0:
            raise PackError(f"{where}: a quota of {quota.most} calls; give it 0 or more")
        if quota.tool not in (ANY, *tools):
            raise PackError(f"{where}: a quota names '{quota.tool}', which is not a tool; {nearest(quota.tool, tools)}")
        if quota.role not in (ANY, *roles):
            raise PackError(f"{where}: a quota names '{quota.role}', which is not a role; {nearest(quota.role, roles)}")
