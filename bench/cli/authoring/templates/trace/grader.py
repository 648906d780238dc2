"""The grader: an answer is right if the replies are the recorded replies, and a world if each recorded effect happened once."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Grade, Output
from bench.worlds.run.environment import FinalWorld


def grade(ended: Mapping[str, Output] | FinalWorld, recorded: list[str]) -> Grade:
    """Return the grade of the replies, or of the world at the end.

    Args:
        ended: The outputs by subtask, or the world.
        recorded: The recorded replies in the order of the steps; for a world, the names of the recorded effects.
    """
    if isinstance(ended, FinalWorld):
        right = [ended.db.value("SELECT count(*) FROM effects WHERE tool = ?", tool) == 1 for tool in recorded]
        what = "effects stand once"
    else:
        replies = [getattr(output, "reply", None) for output in ended.values()]
        right = [reply == other for reply, other in zip(replies, recorded, strict=True)]
        what = "replies are those that were recorded"
    return Grade(all(right), sum(right) / len(right), {}, f"{sum(right)} of {len(right)} {what}")
