"""A case: a repository with bugs, its tests, the right patches, and patches that break something."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.common.seeding import draw_for
from bench.scenario import Scenario

from .suite import CallTest, FileTexts, Suite

SWAPS = (" + ", " - "), (" - ", " + "), (" > ", " >= "), (" >= ", " > "), (" < ", " <= "), (" <= ", " < "), ("max(", "min(")
"""What a wrong patch does to a line: slips that leave it running."""


@dataclass(frozen=True)
class LineChange:
    """A line of a file, and its replacement. `find` is in the file once."""

    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class RepairCase:
    """A repository to be repaired.

    name       the instance's name, a key of draws
    broken     the files with their bugs
    fixes      the right changes, a bug each
    slips      wrong changes: each breaks a right line of the broken files
    suite      the tests
    """

    name: str
    broken: FileTexts
    fixes: tuple[LineChange, ...]
    slips: tuple[LineChange, ...]
    suite: Suite

    def files(self, changes: frozenset[LineChange]) -> FileTexts:
        """Return the repository with these changes made in its broken files."""
        files = dict(self.broken)
        for change in sorted(changes, key=lambda change: (change.file, change.find)):
            files[change.file] = files[change.file].replace(change.find, change.replace)
        return files

    @cached_property
    def right(self) -> FileTexts:
        """The repository as it must be."""
        return self.files(frozenset(self.fixes))


def case_of(scenario: Scenario, seed: int) -> RepairCase:
    """Return the case of an instance of the pack `repairs`. The tests that grade it are the agent's test suite here."""
    broken: Mapping[str, str] = scenario.truth["files"]
    fixes = tuple(LineChange(edit["file"], edit["find"], edit["replace"]) for edit in scenario.reference["fix"]["edits"])
    suite = Suite([CallTest(*test) for test in scenario.truth["tests"]])
    return RepairCase(scenario.instance, broken, fixes, _slips(broken, fixes, (seed, scenario.instance)), suite)


def _slips(files: FileTexts, fixes: Sequence[LineChange], seed: tuple[object, ...]) -> tuple[LineChange, ...]:
    taken = {(fix.file, fix.find) for fix in fixes}
    slips = []
    for file, text in sorted(files.items()):
        for line in map(str.strip, text.split("\n")):
            if text.count(line) != 1 or (file, line) in taken or not line or line.startswith(('"', "def ", "#", "while ")):
                continue
            slips += [LineChange(file, line, line.replace(*swap, 1)) for swap in SWAPS if swap[0] in line]
    draw_for(*seed, "slips").shuffle(slips)
    once = {(slip.file, slip.find): slip for slip in slips}
    return tuple(slip for slip in once.values() if _can_be_read(slip, files))


def _can_be_read(slip: LineChange, files: FileTexts) -> bool:
    try:
        ast.parse(files[slip.file].replace(slip.find, slip.replace))
    except SyntaxError:
        return False
    return True


def patch_text(changes: Sequence[LineChange], files: FileTexts, whole_files: bool) -> str:
    """Return what an agent writes for a patch: its edits, or each changed file as a whole."""
    if whole_files:
        return json.dumps({file: files[file] for file in sorted({change.file for change in changes})})
    return json.dumps([vars(change) for change in changes])
