"""Records of trials in a world, made by hand, for the tests of the scorecard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from records import called, trial

from bench.record.damage import DAMAGES
from bench.record.events import Answered, Event, Faulted
from bench.record.record import Outcome, TrialRecord
from bench.record.world_events import ToolCalled, WorldEnded

CRASH, ACK = ("process", "unacknowledged"), ("tool", "lost_ack")


def lived(
    plan: str = "none",
    instance: str = "one",
    repetition: int = 1,
    outcome: Outcome = "solved",
    by: tuple[tuple[str, str], ...] = (),
    damage: Mapping[str, int] | None = None,
    lives: int | None = None,
    tokens: int = 100,
    tool_calls: int = 4,
    system: str = "agent",
    planned: tuple[tuple[str, str], ...] = (),
    agrees: bool = True,
    **values: Any,
) -> TrialRecord:
    """One trial: `by` are the (point, effect) of the faults that struck it, `planned` of those that were not applicable."""
    died = sum(point == "process" for point, _ in by)
    counted: dict[str, int | None] = {kind: (damage or {}).get(kind, 0) for kind in DAMAGES}
    recount: dict[str, int | None] = {**counted, "lost": (counted["lost"] or 0) + (not agrees)}
    # Without a text that the run's files would have to hold: `bench verify` finds these runs sound.
    events: list[Event] = [replace(called(1, "a", tokens=(tokens - 20, 20)), messages=(), reply=None)]
    for number, ((point, effect), stage) in enumerate(
        [*((struck, "delivered") for struck in by), *((struck, "not_applicable") for struck in planned)], 1
    ):
        events += [Faulted(number, point, effect, "send", 1, reached) for reached in ("planned", stage)]  # type: ignore[arg-type]
    events += [_tool_called() for _ in range(tool_calls)]
    events.append(WorldEnded("d", "d", 1, 0, died + 1 if lives is None else lives, counted, recount))
    if outcome in ("solved", "wrong"):
        events.append(Answered(()))
    name = "-".join((system, plan, instance, str(repetition), str(values.get("scenario", "")), str(values.get("model", ""))))
    given: dict[str, Any] = {"id": name, "instance": instance, "scenario": "shop", **values}
    return trial(system, plan, repetition, outcome, events, **given)


def _tool_called() -> ToolCalled:
    policy: dict[str, Any] = dict.fromkeys(("reason", "decision", "rule", "policy"), "")
    place: dict[str, Any] = {"life": 1, "day": 1, "minute": 0, "started": 0.0, "before": "d", "after": "d"}
    defaults: dict[str, Any] = {"arguments": "d", "result": None, "outcome": "done", **policy}
    return ToolCalled(tool="send", access="final", effect="e", try_=1, key=None, entry=1, **defaults, **place)


def crashed(instance: str, doubled: int, outcome: Outcome = "solved", **values: Any) -> TrialRecord:
    return lived("crash", instance, outcome=outcome, by=(CRASH,), damage={"doubled": doubled}, **values)


def shop(
    doubled: int = 2, outcome: Outcome = "wrong", instances: int = 8, system: str = "agent", **values: Any
) -> list[TrialRecord]:
    """Tasks with their controls; each of them crashes once, and doubles so many effects."""
    names = [f"task_{number}" for number in range(instances)]
    return [
        *(lived(instance=name, system=system, **values) for name in names),
        *(crashed(name, doubled, outcome, system=system, **values) for name in names),
    ]
