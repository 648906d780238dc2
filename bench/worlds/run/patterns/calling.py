"""The calls of a pattern: a failed call is retried, with an idempotency key and expected versions if the form says so, and the
intended and done effects are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from bench.record.form import Form
from bench.record.world_events import AGENT, COMPENSATION
from bench.worlds.run.environment import Acted, Call, ProcedureStep
from bench.worlds.run.patterns.boundary import EffectCommit
from bench.worlds.run.patterns.memory import Memory, StepEffect
from bench.worlds.run.runtime.actions import WorldActions

TRIES = 3
"""The most tries of a call that fails, in a pattern without remedies."""
LASTING_TRIES = 8
"""The most tries in a pattern with remedies. The wait before each further try doubles, from one minute of world time."""


class ToolCaller:
    """Makes the calls of one pattern's steps in its world, and records their effects in `memory`."""

    def __init__(self, world: WorldActions, form: Form, memory: Memory, commit: EffectCommit):
        self._world, self._form, self._memory, self._commit = world, form, memory, commit
        self._roles = {step.name: step.role for step in world.procedure}
        self._unanswered: set[int] = set()  # numbers of the effects whose call was tried in vain since the last crash

    async def read(self, step: ProcedureStep, call: Call) -> Acted:
        """Make a read of a step, and return its result."""
        return await self._until_answered(call, None, None, step.role)

    async def effect(self, step: ProcedureStep, call: Call) -> Acted:
        """Make an effect of a step. An effect that the step is known to have done is not made again. An effect that was only
        intended is made under its earlier key."""
        recorded = self.recorded_effect(step.name, call)
        if recorded and recorded.state == "done":
            tool = self._world.tools[call.tool]
            return Acted(call.tool, recorded.effect, "replayed", tool.result.model_validate(recorded.result))
        if recorded:
            return await self._make(recorded, step.role, again=True)
        effect = self._world.effect_of(call.tool, call.arguments)
        versions = self._expected_versions(step.name, call)
        intended = self._memory.intend(step.name, call.tool, call.arguments, effect, versions)
        return await self._make(intended, step.role, again=False)

    async def _make(self, effect: StepEffect, role: str, *, again: bool) -> Acted:
        """Call the effect's tool under its key, and write down the result. If the call is made `again` and gets no answer but
        "throttled", the earlier call can have had the effect, so the effect stays intended."""
        call = Call(effect.tool, effect.arguments)
        acted = await self._until_answered(
            call, self._commit.idempotency_key(effect), self._commit.expected_versions(effect), role
        )
        if acted.outcome == "failed" or (again and acted.code == "throttled"):
            self._unanswered.add(effect.number)
        else:
            self._note(effect, acted)
        return acted

    def recorded_effect(self, step: str, call: Call) -> StepEffect | None:
        """Return the effect of a call as this step recorded it, intended or done; None if it did not, or if the form has no
        keys, so that it looks up no effect."""
        if not self._commit.remembers:
            return None
        of_step = (effect for effect in self._memory.effects(step) if effect.state in ("intended", "done"))
        return next(
            (effect for effect in of_step if (effect.tool, effect.arguments) == (call.tool, dict(call.arguments))), None
        )

    def _note(self, recorded: StepEffect, acted: Acted) -> None:
        """Record whether an effect is done or refused, and the new versions of the changed things."""
        if not acted.ok:
            self._memory.note(replace(recorded, state="refused"))
            return
        result = acted.result.model_dump(mode="json")
        self._memory.note(replace(recorded, state="done", result=result))
        step_memory = self._memory.step_memory(recorded.step)
        versions_now = acted.versions or {thing: version + 1 for thing, version in recorded.versions.items()}
        self._memory.update(recorded.step, versions={**step_memory.versions, **versions_now})

    def _expected_versions(self, step: str, call: Call) -> Mapping[str, int]:
        """Return the versions of the things that this call is about, as the step has read them."""
        versions_read = self._memory.step_memory(step).versions
        try:
            tool = self._world.tools[call.tool]
            things = tool.about(tool.arguments.model_validate(call.arguments))
        except (KeyError, ValidationError):  # the world reports it better
            return {}
        return {thing: versions_read[thing] for thing in things if thing in versions_read}

    async def _until_answered(self, call: Call, key: str | None, expect: Mapping[str, int] | None, role: str = AGENT) -> Acted:
        """Call until an answer comes. Return a `failed` call if none comes after all tries. With remedies, a throttled call is
        retried when the world says that calls are accepted again."""
        tool = self._world.tools.get(call.tool)
        deadline = None if tool is None or tool.writes else self._form.deadline  # a write that is given up can happen later
        for attempt in range(1, LASTING_TRIES if self._form.remedies else TRIES):
            acted = await self._world.act(call.tool, call.arguments, key, expect=expect or None, role=role, deadline=deadline)
            if acted.outcome != "failed" and acted.code != "throttled":
                return acted
            await self._wait_for_another(acted, attempt)
        return await self._world.act(call.tool, call.arguments, key, expect=expect or None, role=role, deadline=deadline)

    async def _wait_for_another(self, acted: Acted, attempt: int) -> None:
        """Let world time pass before the next try. `attempt` is the number of the try that failed."""
        if not self._form.remedies:
            await self._world.wait(minutes=1)
        elif acted.again:
            await self._world.wait(until=acted.again)
        else:
            await self._world.wait(minutes=2 ** (attempt - 1))

    async def undo(self, effect: StepEffect) -> bool:
        """Undo an effect, and return whether it no longer exists. An undo that the world refuses counts as True, but not if
        the world was too busy for it ("throttled").

        Some undo calls need the effect's result. If a crash lost the result, the effect's call is repeated under its key. This
        returns the result and has no second effect; an effect that had not happened before the crash happens now and is undone.
        Without keys, or if the call was already tried in vain, the effect is left.
        """
        tool = self._world.tools[effect.tool]
        arguments: Mapping[str, Any] = effect.arguments
        if tool.undoing:
            result = effect.result
            if result is None:
                if not self._commit.remembers or effect.number in self._unanswered:
                    return False
                repeated = await self._make(effect, self._roles.get(effect.step, AGENT), again=True)
                if not repeated.ok:
                    return repeated.outcome == "refused" and repeated.code != "throttled"  # else the effect can have happened
                result = repeated.result.model_dump(mode="json")
            arguments = tool.undoing(tool.arguments.model_validate(arguments), tool.result.model_validate(result))
        acted = await self._until_answered(Call(tool.undo, arguments), self._commit.undo_key(effect), None, COMPENSATION)
        if acted.outcome == "failed" or acted.code == "throttled":
            return False
        self._memory.note(replace(effect, state="undone"))
        return True
