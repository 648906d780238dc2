"""Compensation: what a saga's steps did is taken back in reverse order, as far as it can be; what cannot is for a person."""

from __future__ import annotations

from collections.abc import Collection

from bench.worlds.patterns.parts.calling import Calling
from bench.worlds.patterns.parts.memory import Memory
from bench.worlds.runtime.actions import WorldActions

FOR_A_PERSON = "for a person"


async def take_back(steps: Collection[str], calling: Calling, memory: Memory, world: WorldActions) -> None:
    """An effect of which it is known only that it was meant may have happened, and is taken back as well."""
    for effect in reversed(memory.effects()):
        if effect.step not in steps or effect.state not in ("intended", "done") or not world.tools[effect.tool].undo:
            continue
        if not await calling.undo(effect):
            world.store.append(FOR_A_PERSON, {"step": effect.step, "not taken back": effect.effect})
