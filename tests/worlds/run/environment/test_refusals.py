"""An environment that cannot be used is refused in one line that says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from little_worlds import ENVIRONMENT

from bench.common.errors import PackError
from bench.worlds.run.environment import EventKind, Moment, Policy, PolicyVerdict, Scheduled, Tool
from bench.worlds.run.environment.refusals import refuse_environment

READ, REFUND, RESERVE, RELEASE, NOTIFY = ENVIRONMENT.tools


def tools(*exchanged: Any) -> dict[str, Any]:
    return {"tools": exchanged}


def but(tool: Tool, **changes: Any) -> Tool:
    return replace(tool, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (tools(READ, but(REFUND, name="read_order")), "two of its tools are named 'read_order'"),
        (tools(but(RESERVE, undo="")), "is compensable and names no undo"),
        (tools(but(RESERVE, undo="relase"), RELEASE), "did you mean 'release'"),
        (tools(but(RESERVE, undo="read_order"), READ), "declared read and can take nothing back"),
        (tools(but(REFUND, undo="release"), RELEASE), "is final and has an undo"),
        (tools(but(REFUND, effect=None)), "names no effect"),
        (tools(but(REFUND, kind="finall")), "did you mean 'final'"),
        (tools(but(REFUND, arguments=dict)), "its arguments must be a class derived from pydantic.BaseModel"),
        (tools(but(REFUND, run="refund")), "run 'refund' is not a function"),
        (tools(RESERVE, but(RESERVE, name="hold"), RELEASE), "its undo 'release' is that of"),
        (tools("refund"), "must be a bench.worlds.run.environment.Tool"),
        ({"schema": "CREATE TABEL orders"}, "its world cannot be made"),
        ({"rows": {"orders": [{"id": 1, "colour": "red"}]}}, "its world cannot be made"),
        ({"rows": {"world_journal": [{}]}}, "is reserved"),
        ({"events": (Scheduled("a", "opend", Moment(1)),)}, "did you mean 'opened'"),
        ({"events": (Scheduled("a", "opened", Moment(1)), Scheduled("a", "opened", Moment(2)))}, "two of its events"),
        ({"events": (Scheduled("a", "opened", Moment(-1)),)}, "outside of the world's time"),
        ({"kinds": (EventKind("opened"), EventKind("opened"))}, "two of its kinds of event"),
        ({"people": {"manager": "Ann"}}, "must be a bench.worlds.run.environment.Person"),
        ({"policy": Policy("", lambda *_: PolicyVerdict())}, "with a version"),
        ({"reference": None}, "reference must be a function"),
    ],
)
def test_each_fault_is_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(PackError, match=words) as refused:
        refuse_environment(replace(ENVIRONMENT, **changes), "scenario 'refunds'")
    assert "\n" not in str(refused.value)


def test_a_sound_one_is_not_refused() -> None:
    refuse_environment(ENVIRONMENT, "scenario 'refunds'")
