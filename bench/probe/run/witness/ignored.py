"""The parts of a store that are not read, as its owner says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate


class Ignored:
    """Patterns of tables, columns and files that are copied and reset, but never read.

    Args:
        patterns: `TABLE`, `TABLE.COLUMN`, a file's path, or a file's name followed by a position in its JSON. `*` is any
            text, also with slashes.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = [re.compile(translate(pattern)) for pattern in patterns]

    def __call__(self, name: str) -> bool:
        """Return whether a name is ignored."""
        return any(pattern.match(name) for pattern in self._patterns)


NOTHING = Ignored()
