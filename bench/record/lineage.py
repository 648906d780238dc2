"""The lineage of outputs: for each version the calls that made it, and the versions from which it was made, directly or
indirectly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.record.events import Answered, Committed, Event, of_kind

OutputVersion = tuple[str, int]
"""A version in the state: (subtask, version)."""


class Lineage:
    """The lineage of a trial's outputs, read from its events."""

    def __init__(self, events: Sequence[Event]):
        self._commits: dict[OutputVersion, Committed] = {
            (commit.subtask, commit.version): commit for commit in of_kind(events, Committed)
        }
        answers = of_kind(events, Answered)
        self._answer = answers[-1].versions if answers else ()

    @property
    def of_answer(self) -> frozenset[int]:
        """The calls that contributed to the final answer; empty if there is none."""
        commits = [self._commits[output] for output in self.ancestry(self._answer) if output in self._commits]
        return frozenset([call for commit in commits for call in commit.calls])

    def ancestry(self, outputs: Iterable[OutputVersion]) -> frozenset[OutputVersion]:
        """Return these outputs and all outputs from which they were made."""
        reached: set[OutputVersion] = set()
        unvisited = list(outputs)
        while unvisited:
            output = unvisited.pop()
            if output not in reached:
                reached.add(output)
                unvisited += self._sources(output)
        return frozenset(reached)

    def calls_made_from(self, calls: Iterable[int]) -> frozenset[int]:
        """Return these calls, and the calls of every output that was made from an output of these calls."""
        touched = set(calls)
        outputs: set[OutputVersion] = set()
        for output, commit in self._commits.items():  # a version is written after what it was made from
            if touched & set(commit.calls) or outputs & set(self._sources(output)):
                outputs.add(output)
        return frozenset(touched.union(*(self._commits[output].calls for output in outputs)))

    def _sources(self, output: OutputVersion) -> Sequence[OutputVersion]:
        """Return a version's sources, without documents, whose version is 0."""
        commit = self._commits.get(output)
        return [(name, version) for name, version, _ in commit.made_from if version] if commit else []
