"""What is asked about a call before it is made: the policy, the kill switch, the throttle, the versions that it expects."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from bench.environment.calling import Caller
from bench.environment.declaration import Environment
from bench.environment.knowledge import Knowledge
from bench.environment.moment import Moment
from bench.environment.parts import Tool, Verdict

ALLOWED = Verdict()
KILL_SWITCH = "kill switch"
"""The rule by which everything is denied once it is thrown."""


class Rules:
    def __init__(self, environment: Environment, caller: Caller):
        self._environment, self._caller = environment, caller
        self._minute, self._calls = environment.begins, 0

    def verdict(self, tool: Tool, arguments: BaseModel, now: Moment) -> Verdict:
        """What the kill switch, and then the policy, say. An undo takes an effect back and is never halted; a read is never
        asked about."""
        if not tool.writes:
            return ALLOWED
        environment, db = self._environment, self._caller.reading
        halted = environment.halted if tool.name not in environment.undoes else None
        if halted is not None and (why := self._caller.within(lambda: halted(db, now))):
            return Verdict("deny", KILL_SWITCH, why)
        if (policy := environment.policy) is None:
            return ALLOWED
        said: Verdict = self._caller.within(lambda: policy.decide(db, tool.name, arguments, now))
        return said

    def decision(self, verdict: Verdict, tool: Tool) -> tuple[str, str, str]:
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

    def throttled(self, now: Moment) -> str:
        """Why no call is taken now, or ""; a call that is taken counts."""
        if now != self._minute:
            self._minute, self._calls = now, 0
        most = self._environment.throttle
        if most and self._calls >= most:
            return f"throttled: {most} calls a minute are taken; wait for a minute"
        self._calls += 1
        return ""


def moved(expect: Mapping[str, int], knowledge: Knowledge) -> str:
    """What is no longer as the call expects it, or ""."""
    changed = [thing for thing, version in expect.items() if version != knowledge.version(thing)]
    if not changed:
        return ""
    thing = changed[0]
    return f"stale: {thing} is at version {knowledge.version(thing)}, not {expect[thing]}; read it again"
