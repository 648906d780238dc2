"""How edits are matched and applied: one rule, for the checks and for the grader.

An edit replaces whole lines. `find` is one line or several that follow one another; it matches where each of them equals
the file's, indentation and trailing blanks aside, and it must match in exactly one place. `replace` is put there, moved
as a block so that its first line has the indentation of the first line that it replaces; an empty `replace` deletes.
Blank lines before and after either text do not count. All edits are matched in the original files, so their order
does not matter, and two of them must not touch the same line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .schemas import Edit


@dataclass(frozen=True)
class Unfit:
    """Why edits cannot be applied, in one line."""

    reason: str


@dataclass(frozen=True)
class _Change:
    """The lines [start, stop) of a file, and what stands there instead."""

    start: int
    stop: int
    lines: list[str]


def places(text: str, find: str) -> list[int]:
    """The numbers, from 0, of the lines of `text` at which `find` matches."""
    wanted = [line.strip() for line in _trimmed(find)]
    lines = [line.strip() for line in text.split("\n")]
    if not wanted:
        return []
    return [at for at in range(len(lines) - len(wanted) + 1) if lines[at : at + len(wanted)] == wanted]


def apply_edits(sources: Mapping[str, str], edits: Sequence[Edit]) -> dict[str, str] | Unfit:
    """All sources with the edits made in them, or the reason against the first edit that does not fit. Never raises."""
    changes: dict[str, list[_Change]] = {name: [] for name in sources}
    for number, edit in enumerate(edits):
        change = _change(sources, edit)
        if isinstance(change, Unfit):
            return Unfit(f"edits[{number}]: {change.reason}")
        if any(change.start < other.stop and other.start < change.stop for other in changes[edit.file]):
            return Unfit(f"edits[{number}]: touches a line that another edit replaces")
        changes[edit.file].append(change)
    return {name: _changed(text, changes[name]) for name, text in sources.items()}


def _change(sources: Mapping[str, str], edit: Edit) -> _Change | Unfit:
    if edit.file not in sources:
        return Unfit(f"there is no file {edit.file}")
    found = places(sources[edit.file], edit.find)
    if len(found) != 1:
        times = f"occurs {len(found)} times" if found else "does not occur"
        return Unfit(f"`find` {times} in {edit.file}; it must be whole lines that stand there exactly once")
    start, stop = found[0], found[0] + len(_trimmed(edit.find))
    old = sources[edit.file].split("\n")[start:stop]
    new = _moved(_trimmed(edit.replace), _indentation(old[0]))
    if new == [line.rstrip() for line in old]:
        return Unfit("`replace` is the same as `find`, so that nothing changes")
    return _Change(start, stop, new)


def _changed(text: str, changes: list[_Change]) -> str:
    lines = text.split("\n")
    for change in sorted(changes, key=lambda change: change.start, reverse=True):
        lines[change.start : change.stop] = change.lines
    return "\n".join(lines)


def _trimmed(text: str) -> list[str]:
    """The lines without blank ones before and after, and without trailing blanks."""
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _moved(lines: list[str], indentation: str) -> list[str]:
    """The block with its first line at `indentation`; a line further out than the first one is put there too."""
    if not lines:
        return []
    own = len(_indentation(lines[0]))
    return [indentation + _without(line, own) if line else "" for line in lines]


def _without(line: str, columns: int) -> str:
    return line[min(columns, len(_indentation(line))) :]
