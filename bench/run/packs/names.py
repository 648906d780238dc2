"""The names that subtasks, variants and instances may have: they become parts of addresses, of file names and of JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.common.errors import PackError


def refuse_names(names: Sequence[object], kind: str, where: str, *, digit_first: bool = False) -> None:
    """Raise PackError if there are no names, or if a name is malformed or appears twice."""
    if not names:
        raise PackError(f"{where}: has no {kind}")
    first = "a letter or digit first" if digit_first else "a letter first"
    pattern = re.compile(r"[a-z0-9][a-z0-9_]*" if digit_first else r"[a-z][a-z0-9_]*")
    for name in names:
        if not isinstance(name, str) or not pattern.fullmatch(name):
            problem = f"{name!r} is no name for {'an' if kind[0] in 'aeiou' else 'a'} {kind}"
            raise PackError(f"{where}: {problem}; use lower-case letters, digits and underscores, {first}")
        if names.count(name) > 1:
            raise PackError(f"{where}: the {kind} '{name}' appears twice; rename one")
