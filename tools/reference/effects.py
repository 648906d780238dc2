"""Every effect of a fault and the points at which it can strike, as a Markdown table."""

from __future__ import annotations

import typing

from bench.runtime.effects import EFFECTS, Point
from bench.runtime.world_effects import WORLD_EFFECTS, points_of


def page() -> str:
    points = typing.get_args(Point)
    head = [f"| effect | {' | '.join(points)} |", f"| --- |{' --- |' * len(points)}"]
    rows = [f"| `{name}` | {' | '.join('x' if point in points_of(name) else '' for point in points)} |" for name in EFFECTS]
    rows += [
        f"| `{name}` | {' | '.join('x' if point == one.point else '' for point in points)} |"
        for name, one in WORLD_EFFECTS.items()
        if name not in EFFECTS
    ]
    return "\n".join((*head, *rows))
