"""The registry of a report's figures. Each figure has its entry below the function that draws it."""

from __future__ import annotations

from bench.common.errors import ResultsError
from bench.common.raised import type_and_message
from bench.common.registry import Registry
from bench.read.analysis.results import Results
from bench.read.render.drawing import Picture, style
from bench.read.render.figure_part import FigurePart
from bench.read.report.studies import study_pictures

STUDY = FigurePart("study", lambda of: study_pictures(of.run))
FIGURES = Registry("figure", FigurePart)


def all_figures(results: Results) -> list[Picture]:
    """Return every figure of a report, the leading ones first."""
    with style():
        return [picture for part in sorted(FIGURES, key=lambda part: not part.leads) for picture in _draw(part, results)]


def _draw(part: FigurePart, results: Results) -> list[Picture]:
    """Return the figures of one entry. Raises ResultsError if the code of another package fails."""
    try:
        return list(part.draw(results))
    except Exception as error:
        if not part.package:
            raise
        raise ResultsError(f"the figure '{part.name}' of {part.package} fails: {type_and_message(error)}") from error
