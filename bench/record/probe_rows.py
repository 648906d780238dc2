"""The rows of a store that differ from its state at the last reset. A witness holds no other rows in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from bench.common.bounds import Lookup, Many
from bench.common.values import dataclass

SEQUENCES = "(sequences)"
"""The name of the table that holds the counters from which a store makes its keys. Counters are content, and a reset sets them
back. They also move when a row was made and removed again, which is no damage."""
BY_CONTENT = re.compile(r"[0-9a-f]{20,32} (\d+)")
"""The key of a row in a table without a key."""
IN_LIST = re.compile(r"(.*)\([0-9a-f]{20} \d+\)", re.DOTALL)
"""The key of an item of a list in a file of JSON, which is named by its content."""
Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = Mapping[str, Cell]
"""Column -> value. A value that JSON lacks is text; a long value is its size and digest; a hidden column is a digest."""


@dataclass(frozen=True)
class RowDifference:
    """A row that differs from the state at the last reset.

    store    the store's name; `table` the table in it, or "" for a folder
    key      the name of the row within its table: the values of its primary key as JSON, a file's path, or, in a table without
             a key, the digest of the difference and the number of equal differences before it
    before, after   the row at the reset and now; None if it was absent
    """

    store: str
    table: str
    key: str
    before: Lookup[str, Cell] | None
    after: Lookup[str, Cell] | None


@dataclass(frozen=True)
class StoreReading:
    """One reading of all stores: the rows that differ from the state at the last reset, in the order of their keys.

    digest   the digest of all stores' content: readings with the same digest are equal
    more     the number of further differences, beyond the bound on what is held in memory
    """

    digest: str
    differences: Many[RowDifference]
    more: int = 0
