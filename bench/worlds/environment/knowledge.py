"""Versions: how often each thing of a world changed, and which version of it the agent saw last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.worlds.environment.journal import JournalEntry

FIRST = 1
"""The version with which everything begins: what the task itself tells the agent."""


class Knowledge:
    """Worked out from the journal, so that nothing of it is lost with a process.

    The agent's own changes are no news to it, whether or not it was told that they happened.
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
        """The versions of these things once they have changed."""
        return {thing: self.version(thing) + 1 for thing in things}

    def note(self, entry: JournalEntry) -> None:
        """What an entry tells of versions: a read shows them, a change makes new ones."""
        for thing, version in entry.versions.items():
            if entry.what == "call":
                self._seen[thing] = version
            if entry.kind != "read":
                self.versions[thing] = version

    def told(self, versions: Mapping[str, int]) -> None:
        """A notice tells what its event changed."""
        for thing, version in versions.items():
            self._seen[thing] = max(version, self.seen(thing))
