"""Every effect of a fault and the points at which it can strike, as a Markdown table."""

from __future__ import annotations

import typing

from bench.runtime.effects import EFFECTS, Point


def page() -> str:
    points = typing.get_args(Point)
    head = [f"| effect | {' | '.join(points)} |", f"| --- |{' --- |' * len(points)}"]
    rows = [
        f"| `{name}` | {' | '.join('x' if point in effect.points else '' for point in points)} |"
        for name, effect in EFFECTS.items()
    ]
    return "\n".join((*head, *rows))
