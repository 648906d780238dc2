"""A preview of a tool call: the rows that it would change, and the risks.

A person who is asked to approve an effect sees this text. It is the same for the same world and call, and never longer than
`MOST_ROWS` rows and a line for each risk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from bench.record.damage import RowChange
from bench.record.moment import Moment
from bench.worlds.run.environment.calling import PackCaller, PackRun
from bench.worlds.run.environment.database import Connection
from bench.worlds.run.environment.parts import PolicyVerdict, Tool

MOST_ROWS = 6
"""Most rows in a preview. The number of further rows is shown."""
LONGEST = 160
"""Most characters in one line."""
T = TypeVar("T")


@dataclass(frozen=True)
class Preview:
    """The preview of a call that is not made yet.

    tool, effect   the tool, and the business key of the intended effect
    risks          what speaks against the call, a line each
    changes        the rows that it would change now
    """

    tool: str
    effect: str
    risks: Sequence[str]
    changes: Sequence[RowChange]

    @property
    def text(self) -> str:
        """Return the call, its risks and the first rows that it would change, a line each."""
        rows = [change.text for change in self.changes[:MOST_ROWS]] or ["it changes no row"]
        if (more := len(self.changes) - MOST_ROWS) > 0:
            rows.append(f"and {more} more {'row' if more == 1 else 'rows'}")
        lines = [f"{self.tool}: {self.effect}", *(f"risk: {risk}" for risk in self.risks), *rows]
        return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)


def try_and_roll_back(
    connection: Connection, caller: PackCaller, tool: Tool, arguments: BaseModel, now: Moment, inspect_world: Callable[[], T]
) -> tuple[T, PackRun, T]:
    """Run a tool, and roll back all its writes.

    Args:
        inspect_world: Looks at the world, before and after.

    Returns:
        What `inspect_world` saw before, how the tool ended, and what `inspect_world` saw after.
    """
    connection.execute("SAVEPOINT preview")
    try:
        before = inspect_world()
        return before, caller.run(tool, arguments, now), inspect_world()
    finally:
        if connection.in_transaction:  # an interrupted statement can have rolled back already
            connection.execute("ROLLBACK TO preview")
            connection.execute("RELEASE preview")


def risks_of(
    tool: Tool, run: PackRun, verdict: PolicyVerdict, *, times_done: int, changed_things: Sequence[str], is_late: bool
) -> list[str]:
    """Return the risks of a call, a line each.

    Args:
        run: How the call would end.
        verdict: The policy's verdict on it.
        times_done: How often its effect stands already.
        changed_things: The things it is about that have changed since the agent saw them.
        is_late: Whether its last moment is past.
    """
    undone = f"it can be taken back by {tool.undo}" if tool.undo else "it cannot be taken back"
    word = {"allow": "", "warn": "the policy warns", "person": "the policy wants a person", "deny": "the policy denies it"}
    reasons = f"{verdict.rule} ({verdict.why})" if verdict.rule and verdict.why else verdict.rule or verdict.why
    risks = {
        undone: True,
        f"{word[verdict.decision]}{f': {reasons}' if reasons else ''}": verdict.decision != "allow",
        f"the tool does not do it: {run.reason}": run.outcome != "done",
        f"its effect stands already, {'once' if times_done == 1 else f'{times_done} times'}": times_done > 0,
        f"changed since it was read: {', '.join(changed_things)}": bool(changed_things),
        "its last moment is past": is_late,
    }
    return [risk for risk, holds in risks.items() if holds]
