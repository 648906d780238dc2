"""The gate before an effect: the policy is asked, its word is written down with its version, and a person is asked where the
policy says so. The person is shown what the effect would change, and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bench.worlds.environment import KILL_SWITCH, Call, ProcedureStep, Question
from bench.worlds.runtime.actions import WorldActions

GateRule = Literal["open", "stamps", "asks", "keeps_asking"]
"""open           there is none
stamps         a denial holds; where a person is needed, it lets pass
asks           a person is asked anew after each crash, and who does not answer in time has agreed
keeps_asking   a person is asked once, whatever dies; who does not answer in time has not agreed; and what was allowed is looked
               at again before it is done"""
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
    verdict = world.verdict(call.tool, call.arguments)
    if gate == "keeps_asking":
        entry = {"tool": call.tool, "decision": verdict.decision, "rule": verdict.rule, "policy": world.policy_version}
        world.store.append("audit", {"step": step.name, "at": world.now.total, **entry})
    if meant:
        return "denied" if verdict.rule == KILL_SWITCH else ""
    if verdict.decision != "person":
        return "" if verdict.allows else "denied"
    if gate == "stamps":
        return ""
    asked = question()
    key = f"ask {asked.person}: {asked.about}" if gate == "keeps_asking" else None
    shown = world.preview(call.tool, call.arguments).text
    decision = await world.ask_person(asked.person, asked.about, asked.question, key, shown=shown, days=DAYS)
    if decision.answer == "denied":
        return "denied"
    if decision.answer == "late":
        return "late" if gate == "keeps_asking" else ""
    return "" if gate == "asks" or world.verdict(call.tool, call.arguments).allows else "denied"
