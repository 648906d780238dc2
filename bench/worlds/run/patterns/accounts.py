"""Note irregularities in the log of events: decisions by another model, and changes of the world of which no notice told.

Every thing of a world has a version, which each change raises. The watermark of a thing is the version up to which each change
was told by a notice or made by the agent. A version above it contains a change that the agent never heard of.

Only irregularities are written, once each, to the log `irregular` in the store:

diverged       a stored decision was made by another model than the present one
doubled        a notice came before
out of order   a notice of a change came after the notice of a later change of the same thing
late           a notice came after its change was read
unheard        a thing was read that had changed, and no notice had told of it
missed         no notice of such a change came until the end

Nothing here is guessed. A change that no version shows is not seen, nor is a change that the agent can have made itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from bench.run.trial.workbench import Workbench
from bench.worlds.run.environment import Arrival
from bench.worlds.run.environment.knowledge import FIRST_VERSION
from bench.worlds.run.patterns.memory import Memory, StepEffect
from bench.worlds.run.runtime.actions import WorldActions

IRREGULAR = "irregular"


class IrregularityLog:
    """Writes the irregularities of one trial to the log `irregular`."""

    def __init__(self, workbench: Workbench, memory: Memory):
        self._workbench, self._memory = workbench, memory
        self._world: WorldActions = workbench.world
        self._store = self._world.store

    def note_other_models(self) -> None:
        """Note, when a process starts, which decisions another model made. The decisions are kept."""
        for step, work in self._memory.step_memories().items():
            if work.judged and work.by != self._workbench.model:
                self._note("diverged", step=step, by=work.by, now=self._workbench.model)

    def note_irregular_notice(self, event: Arrival) -> None:
        """Note what is irregular about a notice that was read."""
        earlier = [arrival for arrival in self._world.arrivals() if arrival.number < event.number]
        if any((arrival.kind, arrival.name, arrival.payload) == (event.kind, event.name, event.payload) for arrival in earlier):
            self._note("doubled", event=event.name, number=event.number)
            return
        for thing, version in event.versions.items():
            if any(arrival.versions.get(thing, FIRST_VERSION) > version for arrival in earlier):
                self._note("out of order", event=event.name, thing=thing, version=version)
            elif any(note["thing"] == thing and note["version"] >= version for note in self._notes_of("unheard")):
                self._note("late", event=event.name, thing=thing, version=version)

    def note_unannounced_changes(self) -> None:
        """Note the changes without a notice that a step has read."""
        for thing, version, changes in self._unannounced_changes():
            if not any((note["thing"], note["changes"]) == (thing, changes) for note in self._notes_of("unheard")):
                self._note("unheard", thing=thing, version=version, changes=changes)

    def note_missed_notices(self) -> None:
        """Note the changes whose notice can no longer come."""
        for thing, version, changes in self._unannounced_changes():
            self._note("missed", thing=thing, version=version, changes=changes)

    def _unannounced_changes(self) -> Iterator[tuple[str, int, int]]:
        """Yield (thing, version, changes) for each thing that a step has read in a `version` with a change that was neither
        announced by a notice nor made by the agent. `changes` is the number of all changes by others up to that version."""
        arrivals = self._world.arrivals()
        versions_read: dict[str, int] = {}
        for memory in self._memory.step_memories().values():
            for thing, version in memory.versions.items():
                versions_read[thing] = max(version, versions_read.get(thing, FIRST_VERSION))
        for thing, version in versions_read.items():
            announced = {arrival.versions[thing] for arrival in arrivals if thing in arrival.versions}
            own_changes = sum(self._changes(effect, thing) for effect in self._memory.effects())
            changes = version - FIRST_VERSION - own_changes
            if changes > sum(announced_version <= version for announced_version in announced):
                yield thing, version, changes

    def _changes(self, effect: StepEffect, thing: str) -> int:
        """Return how often this effect of the agent can have changed a thing: when it was done, and perhaps when it was
        undone."""
        if effect.state == "refused" or thing not in self._about(effect.tool, effect.arguments):
            return 0
        return 2 if effect.state == "undone" else 1

    def _about(self, name: str, arguments: Any) -> tuple[str, ...]:
        """Return the things that a call of the tool with this name is about; empty if the arguments do not fit."""
        tool = self._world.tools[name]
        try:
            return tuple(tool.about(tool.arguments.model_validate(arguments)))
        except ValidationError:
            return ()

    def _notes_of(self, what: str) -> list[Any]:
        """Return the notes of one kind of irregularity."""
        return [note for note in self._store.log(IRREGULAR) if note["what"] == what]

    def _note(self, what: str, **fields: Any) -> None:
        """Write an irregularity to the log, once."""
        entry = {"what": what, **fields}
        if entry not in self._store.log(IRREGULAR):
            self._store.append(IRREGULAR, entry)
