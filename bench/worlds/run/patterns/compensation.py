"""Compensation: the effects of a saga's steps are undone in reverse order. Effects that cannot be undone are left for a
person."""

from __future__ import annotations

from collections.abc import Collection

from bench.scenario import Json
from bench.worlds.run.patterns.calling import ToolCaller
from bench.worlds.run.patterns.memory import Memory, StepEffect
from bench.worlds.run.runtime.actions import WorldActions

FOR_A_PERSON = "for a person"
"""The log in the store with the notes for a person."""


def leave_for_a_person(world: WorldActions, step: str, what: str, details: Json) -> None:
    """Write a note about a step for a person, once over all crashes. The note has `details` under the name `what`."""
    if not any(note["step"] == step and what in note for note in world.store.log(FOR_A_PERSON)):
        world.store.append(FOR_A_PERSON, {"step": step, what: details})


async def undo_effects(
    steps: Collection[str], calling: ToolCaller, memory: Memory, world: WorldActions, *, in_reverse: bool = True
) -> None:
    """Undo the effects of these steps. An effect that is only known to be intended can have happened, so it is undone too."""
    for effect in memory.effects()[:: -1 if in_reverse else 1]:
        if effect.step not in steps or effect.state not in ("intended", "done") or not world.tools[effect.tool].undo:
            continue
        await undo_or_note(effect, calling, world)


async def undo_or_note(effect: StepEffect, calling: ToolCaller, world: WorldActions) -> None:
    """Undo an effect. If it can still exist, leave one note for a person, whatever the number of tries."""
    note = {"step": effect.step, "not taken back": effect.effect}
    if not await calling.undo(effect) and note not in world.store.log(FOR_A_PERSON):
        world.store.append(FOR_A_PERSON, note)
