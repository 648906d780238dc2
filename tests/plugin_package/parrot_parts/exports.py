"""A form of export: what each trial came to, in words."""

from __future__ import annotations

from collections.abc import Iterator

from bench.read.analysis.frames import Run
from bench.read.report.export_part import ExportPart


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    lines = (f"{trial} {outcome}, {outcome}!\n" for trial, outcome in run.trials[["trial", "outcome"]].itertuples(index=False))
    yield "parrot.txt", "".join(lines).encode()


PART = ExportPart("parrot", files)
