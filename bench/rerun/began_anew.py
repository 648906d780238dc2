"""A count of restarts at which an agent kept no state: each new process begins the work again, and the effects have no key.
Most agents are of this kind."""

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
class RestartCount:
    """A count of how often an agent began its work again from the start.

    times      processes that began with the first effect of the first process, although an earlier process had reached
    another effect
    lives      processes after the first that made an effect: restarts
    has_keys   whether any of the effects had a key
    """

    times: int = 0
    lives: int = 0
    has_keys: bool = False

    @staticmethod
    def of(record: TrialRecord) -> RestartCount:
        """Count how often the agent of one trial began again from the start."""
        calls = [call for call in of_kind(record.events, ToolCalled) if call.access != "read" and call.effect]
        effects_by_process: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for call in calls:
            effects_by_process[call.life].append((call.tool, call.effect))
        processes = [effects_by_process[life] for life in sorted(effects_by_process)]
        first_effect = processes[0][0] if processes else None
        times, has_gone_on = 0, False
        for number, effects in enumerate(processes):
            times += bool(number) and has_gone_on and effects[0] == first_effect
            has_gone_on = has_gone_on or any(effect != first_effect for effect in effects)
        return RestartCount(times, max(0, len(processes) - 1), any(call.key for call in calls))


def restart_lines(records: Sequence[TrialRecord]) -> list[str]:
    """Return lines about how often the agents of these trials began again from the start, and what to change. Without a
    restart the list is empty."""
    counts = [count for count in map(RestartCount.of, records) if count.times]
    if not counts:
        return []
    times, lives = sum(count.times for count in counts), sum(count.lives for count in counts)
    keys = "sends keys, but keeps no state" if any(count.has_keys for count in counts) else "keeps no state and sends no key"
    which = "" if len(records) == 1 else f" in {len(counts)} of {len(records)} trials"
    return [
        f"The agent began its work anew at {times} of {lives} restarts{which}: it {keys}.",
        f"What to do about it: {REMEDY}.",
    ]
