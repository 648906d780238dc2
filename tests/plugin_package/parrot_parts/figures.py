"""A figure: how many replies each arm heard."""

from __future__ import annotations

from collections.abc import Iterator

from bench.read.analysis.results import Results
from bench.read.render.drawing import Picture, finish, names_below, panels
from bench.read.render.figure_part import FigurePart
from bench.read.render.labels import each_arm


def heard(of: Results) -> Iterator[Picture]:
    arms = list(each_arm(of.arms))
    figure, [ax] = panels(1, 1, 6.0, 2.5)
    ax.bar(range(len(arms)), [int(arm.trials["calls"].sum()) for arm in arms])
    names_below(ax, [arm.architecture for arm in arms])
    yield finish(figure, "heard", "A parrot heard every reply", "A parrot heard every reply. Bars are replies.")


PART = FigurePart("heard", heard)
