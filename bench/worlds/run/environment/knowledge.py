"""Versions: how often each thing of a world changed, and the version that the agent saw last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.record.journal import JournalEntry

FIRST = 1
"""The first version of everything: the task itself tells the agent of it."""


class Knowledge:
    """The versions, worked out from the journal, so that they survive a process.

    The agent has seen the changes that it made itself, whether or not it was told that they happened.
    """

    def __init__(self, entries: Iterable[JournalEntry] = ()):
        self.versions: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        for entry in entries:
            self.note(entry)

    def version(self, thing: str) -> int:
        return self.versions.get(thing, FIRST)

    def seen(self, thing: str) -> int:
        return self._seen.get(thing, FIRST)

    def based_on(self, things: Iterable[str]) -> dict[str, tuple[int, int]]:
        return {thing: (self.seen(thing), self.version(thing)) for thing in things}

    def after(self, things: Iterable[str]) -> dict[str, int]:
        """Return the versions that these things will have once they change."""
        return {thing: self.version(thing) + 1 for thing in things}

    def note(self, entry: JournalEntry) -> None:
        """Take the versions from an entry: a read shows them, a change makes new versions."""
        for thing, version in entry.versions.items():
            if entry.what == "call":
                self._seen[thing] = version
            if entry.kind != "read":
                self.versions[thing] = version

    def told(self, versions: Mapping[str, int]) -> None:
        """Take the versions that a notice shows."""
        for thing, version in versions.items():
            self._seen[thing] = max(version, self.seen(thing))
