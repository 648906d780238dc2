"""The gate before an effect: it asks the policy, records the verdict with the policy's version, and asks a person if the policy
says so. The person sees what the effect would change, and its risks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bench.record.journal import dump
from bench.worlds.run.environment import KILL_SWITCH, Call, ProcedureStep, Question
from bench.worlds.run.environment.people import REVIEWER
from bench.worlds.run.runtime.actions import WorldActions

GateRule = Literal["open", "stamps", "asks", "keeps_asking", "asks_of_all"]
"""open           there is no gate
stamps         a denial holds; if a person is needed, the effect passes
asks           a person is asked anew after each crash; no answer in time is consent
keeps_asking   a person is asked once, over all crashes; no answer in time is no consent, and neither is a model's answer in the
               person's place; an approved effect is checked again before it is made
asks_of_all    like keeps_asking, and the built-in reviewer is asked about effects that the policy allows"""
KEEPING: tuple[GateRule, ...] = ("keeps_asking", "asks_of_all")
"""The rules under which questions outlive a crash."""
DAYS = 3
"""Days to wait for a person's answer."""
Why = Literal["", "denied", "late"]


async def gate_objection(
    gate: GateRule,
    step: ProcedureStep,
    call: Call,
    question: Callable[[], Question],
    world: WorldActions,
    *,
    was_intended: bool = False,
) -> Why:
    """Return why an effect must not be made; "" if it may be made.

    `question` makes the question to a person. An effect that is already `was_intended` has passed once and can have happened:
    only the kill switch stops it from being completed. A call of an unknown tool passes: the world refuses it.
    """
    tool = world.tools.get(call.tool)
    if gate == "open" or tool is None or not tool.writes:
        return ""
    verdict, keeps = world.verdict(call.tool, call.arguments), gate in KEEPING
    if keeps:
        entry = {"tool": call.tool, "decision": verdict.decision, "rule": verdict.rule, "policy": world.policy_version}
        world.store.append("audit", {"step": step.name, "at": world.now.total, **entry})
    if was_intended:
        return "denied" if verdict.rule == KILL_SWITCH else ""
    if not verdict.allows and verdict.decision != "person":
        return "denied"
    if gate == "stamps" or (verdict.allows and gate != "asks_of_all"):
        return ""
    asked = _reviewer_question(call, world) if verdict.allows else question()
    key = f"ask {asked.person}: {asked.about}" if keeps else None
    shown = world.preview(call.tool, call.arguments).text
    decision = await world.ask_person(asked.person, asked.about, asked.question, key, shown=shown, days=DAYS, of_people=keeps)
    if decision.answer == "denied":
        return "denied"
    if decision.answer == "late":
        return "late" if keeps else ""
    return "" if gate == "asks" or world.verdict(call.tool, call.arguments).allows else "denied"


def _reviewer_question(call: Call, world: WorldActions) -> Question:
    """Return the question to the built-in reviewer. Its subject includes the arguments."""
    arguments = dict(call.arguments)
    about = f"{world.effect_of(call.tool, arguments)} by {call.tool} {dump(arguments)}"
    return Question(REVIEWER, about, {"tool": call.tool, "arguments": arguments})
