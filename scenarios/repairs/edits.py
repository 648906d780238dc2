"""How edits and whole files are put into a repository: one rule, for the generator, the checks and the grader.

An edit replaces one whole line, or several that follow one another, in one file. `find` must stand there exactly once, blanks
at both ends of its lines aside. `replace` is moved as a block to where the first line stood. All edits are matched in the files
as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import dedent, indent

from .schemas import Edit, FileFix, Fix, WholeFile


class Unfit(ValueError):
    """An edit cannot be applied; its text says why, in one line."""


def patched(files: Mapping[str, str], fix: Fix | FileFix) -> dict[str, str]:
    """Return the files after a fix in one of its two forms. Raises Unfit where it does not fit."""
    return with_files(files, fix.files) if isinstance(fix, FileFix) else apply_edits(files, fix.edits)


def apply_edits(files: Mapping[str, str], edits: Iterable[Edit]) -> dict[str, str]:
    """The files with all edits made in them. Raises Unfit for the first edit that does not fit."""
    lines = {file: text.split("\n") for file, text in files.items()}
    taken: set[tuple[str, int]] = set()
    changes: list[tuple[str, int, int, list[str]]] = []
    for number, edit in enumerate(edits):
        if edit.file not in files:
            raise Unfit(f"edits[{number}]: there is no file {edit.file}; the files are {', '.join(sorted(files))}")
        start, stop = _span(lines[edit.file], edit, f"edits[{number}]")
        touched = {(edit.file, at) for at in range(start, stop)}
        if touched & taken:
            raise Unfit(f"edits[{number}]: touches a line that another edit replaces")
        new = _moved(edit.replace, lines[edit.file][start])
        if new == lines[edit.file][start:stop]:
            raise Unfit(f"edits[{number}]: `replace` is the same as `find`, so that nothing changes")
        taken |= touched
        changes.append((edit.file, start, stop, new))
    for file, start, stop, new in sorted(changes, reverse=True):
        lines[file][start:stop] = new
    return {file: "\n".join(text) for file, text in lines.items()}


def with_files(files: Mapping[str, str], written: Iterable[WholeFile]) -> dict[str, str]:
    """Return the files with those in their place that were written anew. Raises Unfit for no such file, and for no change."""
    result = dict(files)
    for number, new in enumerate(written):
        if new.file not in files:
            raise Unfit(f"files[{number}]: there is no file {new.file} to change; there are {', '.join(sorted(files))}")
        result[new.file] = new.text.strip() + "\n"
    if result == dict(files):
        raise Unfit("files: each is as it was, so that nothing changes")
    return result


def whole_files(files: Mapping[str, str], edits: Sequence[Mapping[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return, as JSON, the fix in whole files that these edits make."""
    changed = apply_edits(files, [Edit(**edit) for edit in edits])
    return {"files": [{"file": file, "text": changed[file]} for file in sorted({edit["file"] for edit in edits})]}


def stands_in(text: str, find: str) -> bool:
    """Whether it is whole lines of the text."""
    return bool(_places(text.split("\n"), find))


def _places(lines: list[str], find: str) -> list[int]:
    wanted = [line.strip() for line in find.strip().split("\n")]
    stripped = [line.strip() for line in lines]
    return [at for at in range(len(lines)) if wanted != [""] and stripped[at : at + len(wanted)] == wanted]


def _span(lines: list[str], edit: Edit, which: str) -> tuple[int, int]:
    places = _places(lines, edit.find)
    if len(places) != 1:
        times = f"stands {len(places)} times" if places else "does not stand"
        raise Unfit(f"{which}: `find` {times} in {edit.file}; copy whole lines that stand there exactly once")
    return places[0], places[0] + len(edit.find.strip().split("\n"))


def _moved(text: str, first: str) -> list[str]:
    """The block with its indentation exchanged for that of the line `first`; no line where it is blank."""
    if not text.strip():
        return []
    margin = first[: len(first) - len(first.lstrip())]
    return indent(dedent(text.strip("\n")).rstrip(), margin).split("\n")
