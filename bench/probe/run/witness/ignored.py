"""What of a store no witness reads, as its owner says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate


class Ignored:
    """Patterns of what is copied and reset, but never read: tables, columns, files.

    Args:
        patterns: `TABLE`, `TABLE.COLUMN`, a file's path, or a file's name with a place in its JSON behind it. `*` stands for
            any text, also with slashes.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = [re.compile(translate(pattern)) for pattern in patterns]

    def __call__(self, name: str) -> bool:
        """Return whether this is ignored."""
        return any(pattern.match(name) for pattern in self._patterns)


NOTHING = Ignored()
