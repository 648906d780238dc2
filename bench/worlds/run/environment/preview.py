"""A preview of a tool call: the rows that it would change, and the risks.

A person who is asked to approve an effect sees this text. It is the same for the same world and call, and never longer than
`MAX_ROWS` rows and a line for each risk.
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

MAX_ROWS = 6
"""The most rows in a preview. The number of further rows is shown."""
MAX_LINE_LENGTH = 160
"""The most characters in one line."""
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
        rows = [change.text for change in self.changes[:MAX_ROWS]] or ["it changes no row"]
        if (more := len(self.changes) - MAX_ROWS) > 0:
            rows.append(f"and {more} more {'row' if more == 1 else 'rows'}")
        lines = [f"{self.tool}: {self.effect}", *(f"risk: {risk}" for risk in self.risks), *rows]
        return "\n".join(line if len(line) <= MAX_LINE_LENGTH else f"{line[: MAX_LINE_LENGTH - 1]}…" for line in lines)


def try_and_roll_back(
    connection: Connection, caller: PackCaller, tool: Tool, arguments: BaseModel, now: Moment, inspect_world: Callable[[], T]
) -> tuple[T, PackRun, T]:
    """Run a tool, and roll back all its writes.

    Args:
        inspect_world: A function that reads something in the world. It is called before and after the tool runs.

    Returns:
        The result of `inspect_world` before, the result of the tool, and the result of `inspect_world` after.
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
        tool: The tool of the call.
        run: The result that the call would have.
        verdict: The policy's verdict on the call.
        times_done: How often the call's effect exists already.
        changed_things: The things that the call is about and that have changed since the agent saw them.
        is_late: Whether the last moment for the effect is past.
    """
    undo = f"it can be taken back by {tool.undo}" if tool.undo else "it cannot be taken back"
    words = {"allow": "", "warn": "the policy warns", "person": "the policy wants a person", "deny": "the policy denies it"}
    reasons = f"{verdict.rule} ({verdict.why})" if verdict.rule and verdict.why else verdict.rule or verdict.why
    risks = {
        undo: True,
        f"{words[verdict.decision]}{f': {reasons}' if reasons else ''}": verdict.decision != "allow",
        f"the tool does not do it: {run.reason}": run.outcome != "done",
        f"its effect stands already, {'once' if times_done == 1 else f'{times_done} times'}": times_done > 0,
        f"changed since it was read: {', '.join(changed_things)}": bool(changed_things),
        "its last moment is past": is_late,
    }
    return [risk for risk, holds in risks.items() if holds]
