"""Figures are not rendered: for tests of a report's words, of whose time rendering would be most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Replace = Callable[[Any, str, Any], None]
"""setattr, or a function that takes back what it did."""


def leave_undrawn(replace: Replace) -> None:
    """Leave the files of figures empty; the figures are made."""
    from bench.read.render import drawing  # noqa: PLC0415  # here, as few tests need it

    replace(drawing, "_fix_layout", lambda _: None)
    replace(drawing, "_png", lambda _: b"")


def leave_unmade(replace: Replace) -> None:
    """Leave the figures empty as well: of each there is a name, a title and a caption."""
    from bench.read.render import drawing  # noqa: PLC0415  # the same

    leave_undrawn(replace)
    replace(drawing, "Figure", EmptyFigure)
    replace(drawing, "FigureCanvasAgg", lambda _: None)


class EmptyPart:
    """A part of a figure, such as its axes, on which nothing is drawn: whatever is asked of it returns such a part."""

    def __getattr__(self, name: str) -> EmptyPart:
        if name.startswith("__"):  # numpy asks so whether it is an array
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> EmptyPart:
        return self

    def __iter__(self) -> Iterator[EmptyPart]:
        return iter(())

    def __le__(self, other: object) -> bool:
        return True

    def get_legend_handles_labels(self) -> tuple[list[object], list[str]]:
        return [], []

    def get_xlim(self) -> tuple[float, float]:
        return 0.0, 1.0

    get_ylim = get_xlim


class EmptyFigure(EmptyPart):
    """A figure whose parts are empty. Only its size is known."""

    def __init__(self, figsize: tuple[float, float], **_: object) -> None:
        self.width = figsize[0]

    def get_figwidth(self) -> float:
        return self.width

    def subplots(self, rows: int = 1, columns: int = 1, squeeze: bool = True, **_: object) -> Any:
        import numpy as np  # noqa: PLC0415  # here, as every worker loads this module

        axes = np.full((rows, columns), EmptyPart(), dtype=object)
        return axes[0, 0] if squeeze and axes.size == 1 else axes
