"""The state of a trial: what each subtask has written, versioned, each version with what it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.runtime.events import digest_of
from bench.runtime.verification import Unreadable
from bench.scenario import Json


@dataclass(frozen=True)
class Source:
    """Something a version was made from: a document (version 0) or a version of a subtask's output."""

    name: str
    version: int
    digest: str


@dataclass(frozen=True)
class Version:
    """One output of one subtask. `text` is what later subtasks read; `value` its JSON, or why it has none."""

    subtask: str
    number: int
    text: str
    value: Json | Unreadable
    call: int | None
    made_from: tuple[Source, ...]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.text))


class State:
    def __init__(self, documents: Mapping[str, str]):
        self.documents = documents
        self._history: dict[str, list[Version]] = {}
        self._current: dict[str, Version] = {}

    def __contains__(self, subtask: str) -> bool:
        return subtask in self._current

    def current(self, subtask: str) -> Version | None:
        return self._current.get(subtask)

    def previous(self, subtask: str) -> Version | None:
        """The version before the newest, withdrawn or not."""
        history = self._history.get(subtask, [])
        return history[-2] if len(history) > 1 else None

    def put(self, subtask: str, text: str, value: Json | Unreadable, call: int | None, made_from: Iterable[Source]) -> Version:
        history = self._history.setdefault(subtask, [])
        version = Version(subtask, len(history) + 1, text, value, call, tuple(made_from))
        history.append(version)
        self._current[subtask] = version
        return version

    def withdraw(self, subtask: str) -> list[str]:
        """Take back the subtask's output and all that was made from it; returns the names taken back."""
        taken = [subtask] if self._current.pop(subtask, None) else []
        for later in [
            name
            for name, version in self._current.items()
            if any(source.name == subtask and source.version for source in version.made_from)
        ]:
            taken += self.withdraw(later)
        return taken

    def lineage(self) -> set[int]:
        """The calls that the current versions were made by, and those that what they read was made by, and so on."""
        open_ = list(self._current.values())
        seen: set[tuple[str, int]] = set()
        calls: set[int] = set()
        while open_:
            version = open_.pop()
            if (version.subtask, version.number) not in seen:
                seen.add((version.subtask, version.number))
                calls |= {version.call} if version.call is not None else set()
                open_ += [self._history[source.name][source.version - 1] for source in version.made_from if source.version]
        return calls

    def source(self, name: str) -> Source | None:
        """What reading `name` now would be recorded as; None where it is not there to be read."""
        if name in self.documents:
            return Source(name, 0, digest_of(self.documents[name]))
        version = self._current.get(name)
        return Source(name, version.number, version.digest) if version else None
