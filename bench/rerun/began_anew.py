"""A count of the restarts of an agent that keeps no state: each new process begins the work again. Most agents are of this
kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bench.record.events import of_kind
from bench.record.record import TrialRecord
from bench.record.world_events import ToolCalled

ADVICE_ON_RESTARTS = (
    "keep the conversation in AGENT_FOLDER after each step, go on from it, and send an Idempotency-Key with each call that "
    "writes; docs/own_agent_in_a_world.md has such an agent"
)


@dataclass(frozen=True)
class RestartCount:
    """A count of how often an agent began its work again from the start.

    from_start   the number of processes that began with the first effect of the first process, although an earlier process
                 had reached another effect
    restarts     the number of processes after the first that made an effect
    has_keys     whether any of the effects had a key
    """

    from_start: int = 0
    restarts: int = 0
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
        from_start, has_gone_on = 0, False
        for effects in processes:
            from_start += has_gone_on and effects[0] == first_effect  # an earlier process had reached another effect
            has_gone_on = has_gone_on or any(effect != first_effect for effect in effects)
        return RestartCount(from_start, max(0, len(processes) - 1), any(call.key for call in calls))


def restart_lines(records: Sequence[TrialRecord]) -> list[str]:
    """Return lines about how often the agents of these trials began again from the start, and what to change. Without a
    restart the list is empty."""
    counts = [count for count in map(RestartCount.of, records) if count.from_start]
    if not counts:
        return []
    from_start, restarts = sum(count.from_start for count in counts), sum(count.restarts for count in counts)
    keys = "sends keys, but keeps no state" if any(count.has_keys for count in counts) else "keeps no state and sends no key"
    which = "" if len(records) == 1 else f" in {len(counts)} of {len(records)} trials"
    return [
        f"The agent began its work anew at {from_start} of {restarts} restarts{which}: it {keys}.",
        f"What to do about it: {ADVICE_ON_RESTARTS}.",
    ]
