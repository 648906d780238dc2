"""What is asked about a call before it is made: the policy, the kill switch, the throttle, the versions that it expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from bench.worlds.environment.calling import PackCaller
from bench.worlds.environment.contracts import Refusal
from bench.worlds.environment.declaration import Environment
from bench.worlds.environment.knowledge import Knowledge
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import PolicyVerdict, Tool

ALLOWED = PolicyVerdict()
Calls = Callable[[str, str, Moment | None], int]
"""(a tool, a role, since when) -> how many calls were taken; "*" is any."""
KILL_SWITCH = "kill switch"
"""The rule by which everything is denied once it is thrown."""


class Rules:
    def __init__(self, environment: Environment, caller: PackCaller, calls: Calls):
        self._environment, self._caller, self._calls_since = environment, caller, calls
        self._minute, self._calls = environment.begins, 0

    def verdict(self, tool: Tool, arguments: BaseModel, now: Moment) -> PolicyVerdict:
        """What the kill switch, and then the policy, say. An undo takes an effect back and is never halted; a read is never
        asked about."""
        if not tool.writes:
            return ALLOWED
        environment, db = self._environment, self._caller.reading
        halted = environment.halted if tool.name not in environment.undoes else None
        if halted is not None and (why := self._caller.within(lambda: halted(db, now))):
            return PolicyVerdict("deny", KILL_SWITCH, why)
        if (policy := environment.policy) is None:
            return ALLOWED
        verdict: PolicyVerdict = self._caller.within(lambda: policy.decide(db, tool.name, arguments, now))
        return verdict

    def decision(self, verdict: PolicyVerdict, tool: Tool) -> tuple[str, str, str]:
        """The decision, its rule and the policy's version, as the journal has them: of a read none."""
        if not tool.writes:
            return "", "", ""
        policy = self._environment.policy
        return verdict.decision, verdict.rule, policy.version if policy else ""

    def is_late(self, tool: Tool, arguments: BaseModel, now: Moment) -> bool:
        if (due := tool.due) is None:
            return False
        last = self._caller.within(lambda: due(self._caller.reading, arguments))
        return last is not None and now > last

    def forbids(self, tool: str, role: str) -> str:
        """Why an agent in this role may not call this tool, or "". Who has no contract may call all."""
        contract = self._environment.roles.get(role)
        return "" if contract is None or contract.may_call(tool) else f"the role '{role}' may not call {tool}"

    def not_taken(self, tool: str, role: str, now: Moment) -> Refusal | None:
        """Why no such call is taken now: the quotas, then the throttle of a minute; a call that is taken counts."""
        for quota in self._environment.quotas:
            if quota.concerns(tool, role) and self._calls_since(quota.tool, quota.role, quota.since(now)) >= quota.most:
                return quota.refusal(now)
        return self._throttled(now)

    def _throttled(self, now: Moment) -> Refusal | None:
        if now != self._minute:
            self._minute, self._calls = now, 0
        most = self._environment.throttle
        if most and self._calls >= most:
            problem = f"throttled: {most} calls a minute are taken; wait for a minute"
            return Refusal(problem, "throttled", now.after(minutes=1))
        self._calls += 1
        return None


def moved(expect: Mapping[str, int], knowledge: Knowledge) -> str:
    """What is no longer as the call expects it, or ""."""
    changed = [thing for thing, version in expect.items() if version != knowledge.version(thing)]
    if not changed:
        return ""
    thing = changed[0]
    return f"stale: {thing} is at version {knowledge.version(thing)}, not {expect[thing]}; read it again"
