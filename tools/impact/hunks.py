"""Real edits: the hunks between a release and the next, each applied alone to the earlier release."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from impact.mutants import Mutant


def hunks(root: Path, later: Path, folder: str, seed: int) -> list[Mutant]:
    """The hunks of all files of a folder that are in both releases, tests left out, in a drawn order.

    A hunk that changes no code, or that makes a file of code that does not parse, is left out.
    """
    files = [
        file.relative_to(root) for file in sorted((root / folder).rglob("*.py")) if (later / file.relative_to(root)).exists()
    ]
    every = [hunk for file in files if "test" not in file.as_posix() for hunk in _hunks_of(file, root, later)]
    return random.Random(seed).sample(every, len(every))


def _hunks_of(file: Path, root: Path, later: Path) -> Iterator[Mutant]:
    before, after = ((folder / file).read_text(encoding="utf-8").splitlines(keepends=True) for folder in (root, later))
    code = ast.dump(ast.parse("".join(before)))
    for kind, begin, end, new_begin, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        content = "".join((*before[:begin], *after[new_begin:new_end], *before[end:]))
        if kind != "equal" and _parses(content) and ast.dump(ast.parse(content)) != code:
            yield Mutant(str(file), begin + 1, f"{kind} {end - begin} lines by {new_end - new_begin} of {later.name}", content)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
