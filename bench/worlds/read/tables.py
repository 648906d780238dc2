"""Tables of worlds by arm: damage, tool calls, and reasons for refused calls. A run without a world has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pandas as pd

from bench.read.analysis.arms import Arm, Arms, share_of_rows
from bench.read.analysis.frames import Run
from bench.read.render.cells import Number, Rate
from bench.read.render.labels import arm_columns, each_arm
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.damage import DAMAGES

CALL_OUTCOMES = ("done", "replayed", "refused", "failed")
FORBIDDING_DECISIONS = ("deny", "person")


def world_tables(run: Run, arms: Arms) -> list[Table]:
    """Return the tables of damage and of tool calls by arm. Empty without a trial in a world."""
    with_world = _with_world(arms)
    if not with_world:
        return []
    return [table for table in (damage(run, with_world), tool_calls(run, with_world)) if table.rows]


def _with_world(arms: Arms) -> list[Arm]:
    """Return the arms that have trials in a world, without instruments."""
    return [arm for arm in each_arm(arms) if arm.usable["lives"].notna().any() and not arm.is_instrument]


def damage(run: Run, arms: list[Arm]) -> Table:
    """Return the table of damage: effects by kind of damage, and the share of trials with damage, since a single trial can do
    most of the damage."""
    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(_trials_in_world(arm))),
        TableColumn("Trials with damage", lambda arm: Rate(share_of_rows(_trials_in_world(arm), _has_damage(arm)))),
        *map(_damage_column, DAMAGES),
        TableColumn("Recounts that differ", lambda arm: int((~_trials_in_world(arm)["recount_agrees"].astype(bool)).sum())),
    )
    notes = (
        "effects, summed over the trials that did not end in an error; shares are k/N with Wilson's 95% interval",
        "a recount is made from the world's tables alone; where one differs, a count is wrong",
    )
    return table_of("world_damage", "Damage: effects that went wrong, counted in the world's journal", columns, arms, notes)


def _damage_column(kind: str) -> TableColumn[Arm]:
    return TableColumn(kind.capitalize(), lambda arm: int(_trials_in_world(arm)[f"damage_{kind}"].sum()))


def _has_damage(arm: Arm) -> pd.Series[bool]:
    """Return for each trial in a world whether it has damage of any kind."""
    counts = _trials_in_world(arm)[[f"damage_{kind}" for kind in DAMAGES]]
    return counts.gt(0).any(axis=1).fillna(False).astype(bool)


def tool_calls(run: Run, arms: list[Arm]) -> Table:
    """Return the table of tool calls: their outcomes, and crashes."""

    @cache
    def calls(arm: Arm) -> pd.DataFrame:
        return _calls_of(run, arm)

    def calls_with_outcome(outcome: str) -> TableColumn[Arm]:
        return TableColumn(outcome.capitalize(), lambda arm: int(calls(arm)["outcome"].eq(outcome).sum()))

    def forbidden(arm: Arm) -> int:
        return int((calls(arm)["outcome"].eq("done") & calls(arm)["decision"].isin(FORBIDDING_DECISIONS)).sum())

    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(_trials_in_world(arm))),
        TableColumn("Calls a trial", lambda arm: Number(len(calls(arm)) / len(_trials_in_world(arm)), 1)),
        *map(calls_with_outcome, CALL_OUTCOMES),
        TableColumn("Done against the policy", forbidden),
        TableColumn("Crashes", lambda arm: int((_trials_in_world(arm)["lives"] - 1).sum())),
    )
    notes = (
        "calls as the agent was told of them, reads among them; replayed: its idempotency key was known, and nothing "
        "happened a second time; failed: it cannot tell whether it happened",
        "done against the policy: the policy denied it, or wanted a person who had not approved",
    )
    return table_of("world_calls", "Calls of tools, and crashes", columns, arms, notes)


def refusals(run: Run, arms: Arms) -> list[Table]:
    """Return the table of reasons why calls were refused or failed, the most frequent reason first."""
    columns = (
        *(column.of(lambda row: row.arm) for column in arm_columns(run)),
        TableColumn[RefusedCalls]("Tool", lambda row: row.tool),
        TableColumn[RefusedCalls]("Outcome", lambda row: row.outcome),
        TableColumn[RefusedCalls]("Why", lambda row: row.why),
        TableColumn[RefusedCalls]("Calls", lambda row: row.calls),
    )
    rows = [row for arm in _with_world(arms) for row in _refused_calls(run, arm)]
    return [table_of("world_refusals", "Calls that were refused or failed", columns, rows)] if rows else []


class RefusedCalls(NamedTuple):
    """The number of calls of a tool, in the trials of an arm, that were refused or failed for the same reason."""

    arm: Arm
    tool: str
    outcome: str
    why: str
    calls: int


def _refused_calls(run: Run, arm: Arm) -> Iterator[RefusedCalls]:
    """Yield the refused and failed calls of an arm by tool, outcome and reason, the most frequent first."""
    calls = _calls_of(run, arm)
    refused = calls[calls["outcome"].isin(("refused", "failed"))]
    reasons = refused["code"].mask(refused["code"].eq(""), "not told")
    counts = Counter(zip(refused["tool"], refused["outcome"], reasons, strict=True))
    for (tool, outcome, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield RefusedCalls(arm, tool, outcome, reason, count)


def _trials_in_world(arm: Arm) -> pd.DataFrame:
    """Return the trials of an arm that have a world."""
    return arm.usable[arm.usable["lives"].notna()]


def _calls_of(run: Run, arm: Arm) -> pd.DataFrame:
    """Return the tool calls of an arm's trials."""
    return run.tool_calls[run.tool_calls["trial"].isin(set(_trials_in_world(arm)["trial"]))]


PARTS = (
    TablePart("world", lambda of: world_tables(of.run, of.arms), "world"),
    TablePart("world_refusals", lambda of: refusals(of.run, of.arms), "refusals", concerns=("tool_calls",)),
)
