"""The checks before a call is made: policy, kill switch, quotas, throttle, expected versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from bench.record.moment import Moment
from bench.worlds.run.environment.calling import PackCaller
from bench.worlds.run.environment.contracts import Refusal
from bench.worlds.run.environment.declaration import Environment
from bench.worlds.run.environment.knowledge import Knowledge
from bench.worlds.run.environment.parts import PolicyVerdict, Tool

ALLOW = PolicyVerdict()
CallCounter = Callable[[str, str, Moment | None], int]
"""(tool, role, moment) -> the number of accepted calls since the moment. "*" stands for any tool or role; None for the
start."""
KILL_SWITCH = "kill switch"
"""The rule that denies everything once the kill switch is thrown."""


class Rules:
    """The checks of one world."""

    def __init__(self, environment: Environment, caller: PackCaller, calls: CallCounter):
        self._environment, self._caller, self._count_calls = environment, caller, calls
        self._minute, self._calls_in_minute = environment.begins, 0

    def verdict(self, tool: Tool, arguments: BaseModel, now: Moment) -> PolicyVerdict:
        """Return the verdict of the kill switch, then of the policy. The kill switch never stops an undo; reads are always
        allowed."""
        if not tool.writes:
            return ALLOW
        environment, db = self._environment, self._caller.reading
        halted = environment.halted if tool.name not in environment.undoes else None
        if halted is not None and (why := self._caller.call_pack(lambda: halted(db, now))):
            return PolicyVerdict("deny", KILL_SWITCH, why)
        if (policy := environment.policy) is None:
            return ALLOW
        verdict: PolicyVerdict = self._caller.call_pack(lambda: policy.decide(db, tool.name, arguments, now))
        return verdict

    def decision(self, verdict: PolicyVerdict, tool: Tool) -> tuple[str, str, str]:
        """Return the decision, its rule and the policy's version for the journal. All are "" for a read."""
        if not tool.writes:
            return "", "", ""
        policy = self._environment.policy
        return verdict.decision, verdict.rule, policy.version if policy else ""

    def is_late(self, tool: Tool, arguments: BaseModel, now: Moment) -> bool:
        """Return whether the last moment for the call's effect is past."""
        if (due := tool.due) is None:
            return False
        last = self._caller.call_pack(lambda: due(self._caller.reading, arguments))
        return last is not None and now > last

    def forbids(self, tool: str, role: str) -> str:
        """Return why an agent in this role cannot call this tool; "" if it can. A role without a contract can call all
        tools."""
        contract = self._environment.roles.get(role)
        return "" if contract is None or contract.may_call(tool) else f"the role '{role}' may not call {tool}"

    def limit_refusal(self, tool: str, role: str, now: Moment) -> Refusal | None:
        """Return the refusal of a call by the quotas or by the throttle; None if it is accepted. An accepted call counts."""
        for quota in self._environment.quotas:
            if quota.concerns(tool, role) and self._count_calls(quota.tool, quota.role, quota.since(now)) >= quota.most:
                return quota.refusal(now)
        return self._throttle(now)

    def _throttle(self, now: Moment) -> Refusal | None:
        """Return the refusal of a call beyond the limit of calls in this minute; otherwise count the call and return None."""
        if now != self._minute:
            self._minute, self._calls_in_minute = now, 0
        limit = self._environment.throttle
        if limit and self._calls_in_minute >= limit:
            problem = f"throttled: {limit} calls a minute are taken; wait for a minute"
            return Refusal(problem, "throttled", now.after(minutes=1))
        self._calls_in_minute += 1
        return None


def version_mismatch(expect: Mapping[str, int], knowledge: Knowledge) -> str:
    """Return a message about the first thing that is not at the version that the call expects; "" if all are."""
    changed = [thing for thing, version in expect.items() if version != knowledge.version(thing)]
    if not changed:
        return ""
    thing = changed[0]
    return f"stale: {thing} is at version {knowledge.version(thing)}, not {expect[thing]}; read it again"
