"""The versions of a world's things: the present version of each, which every change raises, and the version that the agent saw
last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.record.journal import JournalEntry

FIRST_VERSION = 1
"""The first version of each thing. The agent has seen it: the task itself describes it."""


class Knowledge:
    """The versions of a world's things, computed from the journal, so that they survive a process.

    The agent has seen the changes that it made itself, whether or not it was told that they happened.
    """

    def __init__(self, entries: Iterable[JournalEntry] = ()):
        self.versions: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        for entry in entries:
            self.note(entry)

    def version(self, thing: str) -> int:
        return self.versions.get(thing, FIRST_VERSION)

    def seen_version(self, thing: str) -> int:
        return self._seen.get(thing, FIRST_VERSION)

    def based_on(self, things: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return, for each thing, the version that the agent saw last and the present version."""
        return {thing: (self.seen_version(thing), self.version(thing)) for thing in things}

    def next_versions(self, things: Iterable[str]) -> dict[str, int]:
        """Return the versions that these things will have after a change."""
        return {thing: self.version(thing) + 1 for thing in things}

    def note(self, entry: JournalEntry) -> None:
        """Update the versions from an entry: a read shows versions, a change makes new versions."""
        for thing, version in entry.versions.items():
            if entry.what == "call":
                self._seen[thing] = version
            if entry.kind != "read":
                self.versions[thing] = version

    def note_seen(self, versions: Mapping[str, int]) -> None:
        """Update the seen versions from a notice."""
        for thing, version in versions.items():
            self._seen[thing] = max(version, self.seen_version(thing))
