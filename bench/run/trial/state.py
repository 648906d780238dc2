"""The state of a trial: its subtasks, and the versions of their outputs, each with its sources."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from bench.common.digests import digest_of
from bench.common.values import dataclass
from bench.run.trial.reply import ReplyPart
from bench.run.trial.verification import Unreadable
from bench.scenario import Json, Subtask, Task

NO_DOCUMENTS: Mapping[str, str] = {}


class Source(NamedTuple):
    """An input from which a version was made: a document (version 0), or a version of a subtask's output."""

    name: str
    version: int
    digest: str


@dataclass(frozen=True)
class Version:
    """One output of one subtask.

    text        what later subtasks read; `value` is its JSON, or why it has none
    calls       the calls that made it; empty if code did
    made_from   the inputs from which it was made
    undamaged   the part of the reply before a fault struck it; None if no fault struck it
    """

    subtask: str
    number: int
    text: str
    value: Json | Unreadable
    calls: tuple[int, ...]
    made_from: tuple[Source, ...]
    undamaged: ReplyPart | None = None
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.text))

    def is_made_from(self, names: Iterable[str]) -> bool:
        """Return whether the version was made from an output of one of these subtasks."""
        return bool({source.name for source in self.made_from if source.version} & set(names))


class State:
    """The state of one trial. Its subtasks are the subtasks of the task and those that the architecture adds. `given` names the
    documents that come with each call: the state of a world."""

    def __init__(self, task: Task, given: Collection[str] = ()):
        self.task = task
        self.documents = task.documents
        self.given = frozenset(given)
        self._subtasks = {subtask.name: subtask for subtask in task.subtasks}
        self._history: dict[str, list[Version]] = {}
        self._current: dict[str, Version] = {}
        self._sources = {name: Source(name, 0, digest) for name, digest in task.digests.items()}

    def __contains__(self, subtask: str) -> bool:
        return subtask in self._current

    @property
    def ready(self) -> tuple[Subtask, ...]:
        """The subtasks without an output whose inputs all exist, in the task's order; added subtasks come last."""
        available = self.documents.keys() | self._current.keys()
        open_subtasks = [subtask for subtask in self._subtasks.values() if subtask.name not in self._current]
        return tuple([subtask for subtask in open_subtasks if available.issuperset(subtask.reads)])

    def subtask(self, name: str) -> Subtask:
        return self._subtasks[name]

    def add(self, subtask: Subtask) -> None:
        """Add a subtask. Raises ValueError if its name is taken, or an input does not exist."""
        if subtask.name in self._subtasks or subtask.name in self.documents:
            raise ValueError(f"the name '{subtask.name}' is taken by a subtask or a document")
        for name in subtask.reads:
            if name not in self._subtasks and name not in self.documents:
                raise ValueError(f"subtask '{subtask.name}' reads '{name}', which does not exist")
        self._subtasks[subtask.name] = subtask

    def is_document(self, name: str) -> bool:
        """Return whether this is the name of a document, of the task or given with a call."""
        return name in self.documents or name in self.given

    def missing_inputs(self, subtask: Subtask, given: Container[str] = ()) -> list[str]:
        """Return the inputs of this subtask that neither exist in the state nor are given with the call."""
        documents, current = self.documents, self._current
        return [name for name in subtask.reads if not (name in documents or name in current or name in given)]

    def forget(self) -> None:
        """Drop all outputs, because the process that held them has died. Version numbers continue."""
        for name in list(self._current):
            del self._current[name], self._sources[name]

    def current(self, subtask: str) -> Version | None:
        return self._current.get(subtask)

    def previous(self, subtask: str) -> Version | None:
        """Return the version before the newest one, withdrawn or not; None if there is none."""
        history = self._history.get(subtask, [])
        return history[-2] if len(history) > 1 else None

    def put(
        self,
        subtask: str,
        part: ReplyPart,
        calls: Iterable[int],
        made_from: Iterable[Source],
        undamaged: ReplyPart | None = None,
    ) -> Version:
        """Write a new version of a subtask's output and return it."""
        history = self._history.setdefault(subtask, [])
        version = Version(subtask, len(history) + 1, part.text, part.value, tuple(calls), tuple(made_from), undamaged)
        history.append(version)
        self._current[subtask] = version
        self._sources[subtask] = Source(subtask, version.number, version.digest)
        return version

    def withdraw(self, subtask: str) -> list[str]:
        """Remove the subtask's output and all outputs that were made from it. Return the names of their subtasks."""
        withdrawn = [subtask] if self._current.pop(subtask, None) else []
        self._sources.pop(subtask, None)
        for later in [name for name, version in self._current.items() if version.is_made_from([subtask])]:
            withdrawn += self.withdraw(later)
        return withdrawn

    def sources(self, subtasks: Sequence[Subtask], given: Mapping[str, str] = NO_DOCUMENTS) -> tuple[Source, ...]:
        """Return the sources that these subtasks would read now from outside a joint call, each once and in reading order.
        Missing inputs are left out. `given` holds the documents that come with the call."""
        joint = {subtask.name for subtask in subtasks}
        names = dict.fromkeys([name for subtask in subtasks for name in subtask.reads if name not in joint])
        if not given:
            return tuple([self._sources[name] for name in names if name in self._sources])
        sources = self._sources | {name: Source(name, 0, digest_of(text)) for name, text in given.items()}
        return tuple([sources[name] for name in names if name in sources])

    def source(self, name: str) -> Source:
        """Return the source of this name: the document, or the present output."""
        return self._sources[name]

    def text_of(self, source: Source) -> str:
        return self._history[source.name][source.version - 1].text if source.version else self.documents[source.name]
