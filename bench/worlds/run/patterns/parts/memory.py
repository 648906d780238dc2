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
    """An effect that a step intends. `number` counts the effects; `versions` are the versions that the effect expects."""

    number: int
    step: str
    tool: str
    arguments: Mapping[str, Any]
    effect: str
    key: str
    versions: Mapping[str, int]
    state: EffectState = "intended"
    result: Any = None


NOTHING = StepMemory()
STEP, EFFECTS = "step ", "effects"
"""Their names in the store."""


class Memory:
    """The memory of all steps, which starts from the content of the store. It writes before and after each effect, or at a
    step's end.

    undoes   undo tool -> the tool whose effect it takes back
    """

    def __init__(self, store: Store, keeps: Keeps, undoes: Mapping[str, str]):
        self._store, self._keeps, self._undoes = store, keeps, undoes
        self._works: dict[str, StepMemory] = {}
        self._effects: dict[int, StepEffect] = {}
        kept = {name.removeprefix(STEP): store.get(name) for name in store.names() if name.startswith(STEP)}
        for step, written in kept.items():
            self._works[step] = StepMemory(**written["work"])
        at_ends = sorted(
            (effect for written in kept.values() for effect in written["effects"]), key=lambda written: written["number"]
        )
        for effect in (*at_ends, *store.log(EFFECTS)):
            self._place(StepEffect(**effect))

    def step_memory(self, step: str) -> StepMemory:
        return self._works.get(step, NOTHING)

    def works(self) -> Mapping[str, StepMemory]:
        return self._works

    def update(self, step: str, **change: Any) -> StepMemory:
        """Change the memory of a step, and store it if the pattern keeps it over a crash."""
        work = self._works[step] = replace(self.step_memory(step), **change)
        if self._keeps == "work" or (self._keeps == "steps" and work.done):
            effects = [] if self._keeps == "work" else [vars(effect) for effect in self.effects(step)]
            self._store.put(STEP + step, {"work": vars(work), "effects": effects})
        return work

    def forget(self, step: str) -> None:
        """Forget a step, so that it is done again from its beginning."""
        self._works[step] = NOTHING

    def is_done(self, step: str) -> bool:
        return self.step_memory(step).done

    def intend(
        self, step: str, tool: str, arguments: Mapping[str, Any], effect: str, versions: Mapping[str, int]
    ) -> StepEffect:
        """Record an intended effect and return it. Its idempotency key is made from its business key: the same effect has the
        same key unless it was undone before."""
        before = sum((other.tool, other.effect, other.state) == (tool, effect, "undone") for other in self._effects.values())
        key = f"{tool}: {effect}" + (f" ({before + 1})" if before else "")
        number = len(self._effects) + 1
        return self.note(StepEffect(number, step, tool, dict(arguments), effect, key, dict(versions)))

    def note(self, effect: StepEffect) -> StepEffect:
        """Record an effect's new state in one write. If it undoes another effect, that effect counts as undone."""
        self._place(effect)
        if self._keeps == "work":
            self._store.append(EFFECTS, vars(effect))
        return effect

    def _place(self, effect: StepEffect) -> None:
        self._effects[effect.number] = effect
        undone = self._undoes.get(effect.tool)
        for later in self.effects() if undone and effect.state == "done" else ():
            if (later.tool, later.effect, later.state) == (undone, effect.effect, "done") and later.number < effect.number:
                self._effects[later.number] = replace(later, state="undone")

    def effects(self, step: str = "") -> list[StepEffect]:
        """Return the effects of one step, or of all steps, in order."""
        return [effect for effect in self._effects.values() if step in ("", effect.step)]

    def facts(self, step: str, arrivals: Iterable[Arrival]) -> Facts:
        """Return the facts that are known while this step runs: the facts of all done steps and its own.

        If a fact is missing because a step failed, its lookup raises NotKnown, otherwise KeyError, like any bug.
        """
        known = {name: work for name, work in self._works.items() if work.done or name == step}
        read = {name: value for work in known.values() for name, value in work.read.items()} | dict(self.step_memory(step).read)
        events: dict[str, Any] = {}
        for arrival in arrivals:
            events.setdefault(arrival.kind, arrival.payload)
        decided = {name: work.decided for name, work in known.items() if work.judged}
        if any(work.why for work in known.values()):
            read, decided = AsFarAsKnown(read), AsFarAsKnown(decided)
        return Facts(
            read=read,
            decided=decided,
            results={effect.effect: effect.result for effect in self._effects.values() if effect.state == "done"},
            events=events,
        )


def dependents(steps: Iterable[ProcedureStep], name: str) -> list[str]:
    """Return the step `name`, and all steps after it, directly or indirectly."""
    ids = [name]
    for step in steps:
        if set(step.after) & set(ids) and step.name not in ids:
            ids.append(step.name)
    return ids
