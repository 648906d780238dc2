"""Every effect of a fault and the points at which it can strike, as a Markdown table."""

from __future__ import annotations

from bench.run.trial.effects import EFFECTS, POINTS, points_of


def page() -> str:
    head = [f"| effect | {' | '.join(POINTS)} |", f"| --- |{' --- |' * len(POINTS)}"]
    names = dict.fromkeys(effect.name for effect in EFFECTS if not effect.package)
    rows = [f"| `{name}` | {' | '.join('x' if point in points_of(name) else '' for point in POINTS)} |" for name in names]
    return "\n".join((*head, *rows))
