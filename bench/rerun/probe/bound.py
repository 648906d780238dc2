"""Which cells are run again before the probe draws a conclusion. `bench.read.probe.run` draws the conclusion from the records
alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.read.probe.run import CELLS_AGAIN
from bench.record.probe.events import CellJudged, CellVerdict
from bench.rerun.probe.cells import ProbeCell

AGAIN = 5
"""How often a damaged cell is run if its damage does not come again: then it is a rate."""
UNJUDGED = frozenset[CellVerdict](("not_applicable", "no_verdict"))


def same_verdict(former: CellJudged, later: CellJudged) -> bool:
    """Return whether two runs of a cell have the same verdict and the same damaged effects."""
    return former.verdict == later.verdict and _kinds(former) == _kinds(later)


def _kinds(judged: CellJudged) -> set[tuple[str, str, int]]:
    return {(finding.kind, finding.effect, finding.times) for finding in judged.findings}


def drawn(cells: Sequence[ProbeCell], subject: str) -> list[ProbeCell]:
    """Return the cells that are run again for a bound: ten, or all if there are fewer. The choice is the same each time."""
    return random.Random(f"redrawn {subject}").sample(list(cells), min(CELLS_AGAIN, len(cells)))
