"""The memory of a pattern: what each step read and decided, and whether each effect was intended, done or undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bench.worlds.run.environment import Arrival, Facts, ProcedureStep
from bench.worlds.run.environment.procedure import AsFarAsKnown
from bench.worlds.run.runtime.process import Store

Keeps = Literal["nothing", "steps", "work"]
"""What outlives a crash: nothing; the result of each step that is done; or each step's work as it goes on."""
EffectState = Literal["intended", "done", "undone", "refused"]


@dataclass(frozen=True)
class StepMemory:
    """The memory of one step: what it `read`, at which `versions`, what it `decided`, whether it is `done`, and `why` it
    failed. `begun`, in minutes of world time, is set if the step has a time box. `by` names the deciding model and is written
    with the decision."""

    read: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    decided: Any = None
    judged: bool = False
    done: bool = False
    why: str = ""
    begun: int | None = None
    by: str = ""


@dataclass(frozen=True)
class StepEffect:
    """An effect that a step intends. `number` counts the effects from 1; `effect` is the business key, `key` the idempotency
    key, and `versions` are the versions that the effect expects."""

    number: int
    step: str
    tool: str
    arguments: Mapping[str, Any]
    effect: str
    key: str
    versions: Mapping[str, int]
    state: EffectState = "intended"
    result: Any = None


NO_MEMORY = StepMemory()
STEP_PREFIX, EFFECTS_LOG = "step ", "effects"
"""The beginning of the name of a step's memory in the store, and the name of the log of effects."""


class Memory:
    """The memory of all steps, which starts from the content of the store. It writes before and after each effect, or at a
    step's end.

    undoes   undo tool -> the tool whose effect it takes back
    """

    def __init__(self, store: Store, keeps: Keeps, undoes: Mapping[str, str]):
        self._store, self._keeps, self._undoes = store, keeps, undoes
        self._memory_by_step: dict[str, StepMemory] = {}
        self._effects: dict[int, StepEffect] = {}
        effects_at_step_ends: list[Any] = []
        for name in store.names():
            if name.startswith(STEP_PREFIX):
                stored: Any = store.get(name)
                self._memory_by_step[name.removeprefix(STEP_PREFIX)] = StepMemory(**stored["work"])
                effects_at_step_ends += stored["effects"]
        effects_at_step_ends.sort(key=lambda effect: effect["number"])
        for effect in (*effects_at_step_ends, *store.log(EFFECTS_LOG)):
            self._set_effect(StepEffect(**effect))

    def step_memory(self, step: str) -> StepMemory:
        """Return the memory of a step, which is empty if nothing was recorded."""
        return self._memory_by_step.get(step, NO_MEMORY)

    def step_memories(self) -> Mapping[str, StepMemory]:
        """Return the memory of each step that has one."""
        return self._memory_by_step

    def update(self, step: str, **change: Any) -> StepMemory:
        """Change the memory of a step, and store it if the pattern keeps it over a crash."""
        work = self._memory_by_step[step] = replace(self.step_memory(step), **change)
        if self._keeps == "work" or (self._keeps == "steps" and work.done):
            effects = [] if self._keeps == "work" else [vars(effect) for effect in self.effects(step)]
            self._store.put(STEP_PREFIX + step, {"work": vars(work), "effects": effects})
        return work

    def forget(self, step: str) -> None:
        """Forget a step, so that it is done again from its beginning."""
        self._memory_by_step[step] = NO_MEMORY

    def is_done(self, step: str) -> bool:
        return self.step_memory(step).done

    def intend(
        self, step: str, tool: str, arguments: Mapping[str, Any], effect: str, versions: Mapping[str, int]
    ) -> StepEffect:
        """Record an intended effect and return it. Its idempotency key is made from its business key: the same effect has the
        same key unless it was undone before."""
        times_undone = sum((other.tool, other.effect, other.state) == (tool, effect, "undone") for other in self.effects())
        key = f"{tool}: {effect}" + (f" ({times_undone + 1})" if times_undone else "")
        number = len(self._effects) + 1
        return self.note(StepEffect(number, step, tool, dict(arguments), effect, key, dict(versions)))

    def note(self, effect: StepEffect) -> StepEffect:
        """Record an effect's new state in one write. If it undoes another effect, that effect counts as undone."""
        self._set_effect(effect)
        if self._keeps == "work":
            self._store.append(EFFECTS_LOG, vars(effect))
        return effect

    def _set_effect(self, effect: StepEffect) -> None:
        """Store an effect's state in memory. If it is a done undo, mark the earlier effects that it undoes as undone."""
        self._effects[effect.number] = effect
        undone_tool = self._undoes.get(effect.tool)
        if undone_tool and effect.state == "done":
            for earlier in self.effects():
                is_undone = (earlier.tool, earlier.effect, earlier.state) == (undone_tool, effect.effect, "done")
                if is_undone and earlier.number < effect.number:
                    self._effects[earlier.number] = replace(earlier, state="undone")

    def effects(self, step: str = "") -> list[StepEffect]:
        """Return the effects of one step, or of all steps, in order."""
        return [effect for effect in self._effects.values() if step in ("", effect.step)]

    def facts(self, step: str, arrivals: Iterable[Arrival]) -> Facts:
        """Return the facts that are known while this step runs: the facts of all done steps and its own.

        If a fact is missing because a step failed, its lookup raises NotKnown, otherwise KeyError, like any bug.
        """
        memories = {name: memory for name, memory in self._memory_by_step.items() if memory.done or name == step}
        read: dict[str, Any] = {}
        for memory in (*memories.values(), self.step_memory(step)):
            read |= memory.read
        events: dict[str, Any] = {}
        for arrival in arrivals:
            events.setdefault(arrival.kind, arrival.payload)
        decided = {name: memory.decided for name, memory in memories.items() if memory.judged}
        if any(memory.why for memory in memories.values()):
            read, decided = AsFarAsKnown(read), AsFarAsKnown(decided)
        return Facts(
            read=read,
            decided=decided,
            results={effect.effect: effect.result for effect in self._effects.values() if effect.state == "done"},
            events=events,
        )


def dependents(steps: Iterable[ProcedureStep], name: str) -> list[str]:
    """Return the step `name`, and all steps after it, directly or indirectly."""
    names = [name]
    for step in steps:
        if set(step.after) & set(names) and step.name not in names:
            names.append(step.name)
    return names
