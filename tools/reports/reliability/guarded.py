"""What the sandbox holds with each guard taken away: as whoever runs this, and where that is root as a normal user, too."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reliability.guards import Row, rows
from reliability.kept import Guarded
from reliability.normal_user import as_nobody, interpreter


def all_guarded() -> list[Guarded]:
    """Yield a row for each user, class of attacks and removal."""
    return [
        Guarded(guarded.user, guarded.removed, guarded.attacks, guarded.tried, guarded.held, "; ".join(guarded.through))
        for guarded in (*rows(), *_rows_as_nobody())
    ]


def _rows_as_nobody() -> Iterator[Row]:
    if not interpreter():
        return
    ran = as_nobody("-m", "reliability.guards", "--json", capture=True)
    if ran.returncode:
        raise RuntimeError(f"as a normal user the attacks were not tried to their end: {ran.stderr.strip()[-500:]}")
    for line in ran.stdout.splitlines():
        row = json.loads(line)
        yield Row(**{**row, "through": tuple(row["through"])})
