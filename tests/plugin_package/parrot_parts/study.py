"""A study: do two samples cost twice as much as one?"""

from __future__ import annotations

from collections.abc import Iterator

from bench.read.analysis.frames import Run
from bench.read.render.drawing import Picture
from bench.read.render.table import Table
from bench.read.report.studies import StudyPart


def tables(run: Run) -> Iterator[Table]:
    tokens = run.trials.groupby("architecture", sort=False)["tokens"].mean()
    rows = tuple((str(name), round(value)) for name, value in tokens.items())
    yield Table("echo", "What an echo costs", ("Architecture", "Tokens"), rows)


def pictures(_: Run) -> tuple[Picture, ...]:
    return ()


PART = StudyPart("echo", "parrot_parts.study")
