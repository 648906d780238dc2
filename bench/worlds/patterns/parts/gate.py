"""The gate before an effect: the policy is asked, its word is written down with its version, and a person is asked where the
policy says so. The person is shown what the effect would change, and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bench.worlds.environment import KILL_SWITCH, Call, ProcedureStep, Question
from bench.worlds.environment.database import dump
from bench.worlds.environment.people import REVIEWER
from bench.worlds.runtime.actions import WorldActions

GateRule = Literal["open", "stamps", "asks", "keeps_asking", "asks_of_all"]
"""open           there is none
stamps         a denial holds; where a person is needed, it lets pass
asks           a person is asked anew after each crash, and who does not answer in time has agreed
keeps_asking   a person is asked once, whatever dies; who does not answer in time has not agreed; and what was allowed is looked
               at again before it is done
asks_of_all    the same, and of an effect that the policy allows the reviewer of the house is asked"""
KEEPING: tuple[GateRule, ...] = ("keeps_asking", "asks_of_all")
"""Those whose questions outlive a crash."""
DAYS = 3
"""For which a person's answer is waited for."""
Why = Literal["", "denied", "late"]


async def passes(
    gate: GateRule,
    step: ProcedureStep,
    call: Call,
    question: Callable[[], Question],
    world: WorldActions,
    *,
    meant: bool = False,
) -> Why:
    """Why an effect is not to be made, or "". `question` is what a person is asked. What is already `meant` was let pass once
    and may have happened: only the kill switch keeps it from being made certain. A call of a tool that does not exist passes:
    the world refuses it."""
    tool = world.tools.get(call.tool)
    if gate == "open" or tool is None or not tool.writes:
        return ""
    verdict, keeps = world.verdict(call.tool, call.arguments), gate in KEEPING
    if keeps:
        entry = {"tool": call.tool, "decision": verdict.decision, "rule": verdict.rule, "policy": world.policy_version}
        world.store.append("audit", {"step": step.name, "at": world.now.total, **entry})
    if meant:
        return "denied" if verdict.rule == KILL_SWITCH else ""
    if not verdict.allows and verdict.decision != "person":
        return "denied"
    if gate == "stamps" or (verdict.allows and gate != "asks_of_all"):
        return ""
    asked = _to_the_house(call, world) if verdict.allows else question()
    key = f"ask {asked.person}: {asked.about}" if keeps else None
    shown = world.preview(call.tool, call.arguments).text
    decision = await world.ask_person(asked.person, asked.about, asked.question, key, shown=shown, days=DAYS)
    if decision.answer == "denied":
        return "denied"
    if decision.answer == "late":
        return "late" if keeps else ""
    return "" if gate == "asks" or world.verdict(call.tool, call.arguments).allows else "denied"


def _to_the_house(call: Call, world: WorldActions) -> Question:
    """What the reviewer of the house is asked: other arguments are another question."""
    arguments = dict(call.arguments)
    about = f"{world.effect_of(call.tool, arguments)} by {call.tool} {dump(arguments)}"
    return Question(REVIEWER, about, {"tool": call.tool, "arguments": arguments})
