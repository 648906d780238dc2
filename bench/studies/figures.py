"""The figures that a report shows last: break-even, and the figures of a run's study."""

from bench.read.claims.break_even_table import break_even_figures
from bench.read.report.figure_part import FigurePart
from bench.read.report.studies import study_pictures

FIGURES = (
    FigurePart("break_even", break_even_figures),
    FigurePart("study", lambda of: study_pictures(of.run)),
)
