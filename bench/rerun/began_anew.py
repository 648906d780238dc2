"""Find agents that keep nothing: each new process begins the work anew, and the effects have no key. Most agents are of this
kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bench.record.events import of_kind
from bench.record.record import TrialRecord
from bench.record.world_events import ToolCalled

REMEDY = (
    "keep the conversation in AGENT_FOLDER after each step, go on from it, and send an Idempotency-Key with each call that "
    "writes; docs/own_agent_in_a_world.md has such an agent"
)


@dataclass(frozen=True)
class BeganAnew:
    """A count of how often an agent began its work anew.

    times      processes that began with the same effect as the first, although a process before them had gone on to another
    lives      processes after the first that made an effect: restarts
    has_keys   whether any of its effects had a key
    """

    times: int = 0
    lives: int = 0
    has_keys: bool = False

    @staticmethod
    def of(record: TrialRecord) -> BeganAnew:
        """Count how often the agent of one trial began anew."""
        calls = [call for call in of_kind(record.events, ToolCalled) if call.access != "read" and call.effect]
        by_life: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for call in calls:
            by_life[call.life].append((call.tool, call.effect))
        lives = [by_life[life] for life in sorted(by_life)]
        first = lives[0][0] if lives else None
        times, has_gone_on = 0, False
        for number, effects in enumerate(lives):
            times += bool(number) and has_gone_on and effects[0] == first
            has_gone_on = has_gone_on or any(effect != first for effect in effects)
        return BeganAnew(times, max(0, len(lives) - 1), any(call.key for call in calls))


def began_anew_lines(records: Sequence[TrialRecord]) -> list[str]:
    """Return lines that say how often the agents of these trials began anew, and what to change. Empty if none did."""
    counts = [each for each in map(BeganAnew.of, records) if each.times]
    if not counts:
        return []
    times, lives = sum(each.times for each in counts), sum(each.lives for each in counts)
    keys = "sends keys, but keeps no state" if any(each.has_keys for each in counts) else "keeps no state and sends no key"
    which = "" if len(records) == 1 else f" in {len(counts)} of {len(records)} trials"
    return [
        f"The agent began its work anew at {times} of {lives} restarts{which}: it {keys}.",
        f"What to do about it: {REMEDY}.",
    ]
