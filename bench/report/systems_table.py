"""The table in which the frameworks that people use stand beside our architectures, and what each of them cannot express."""

from __future__ import annotations

from bench.analysis.arms import Arm, Arms, base_of, pairs_of
from bench.analysis.frames import Run
from bench.analysis.ledger import ACCOUNTS
from bench.analysis.statistics import Mean, amount_of, by_unit
from bench.architectures.registry import ARCHITECTURES
from bench.render.labels import arm_cells, each_arm
from bench.render.table import Cell, Estimate, Rate, Table

SPENT = ("tokens", "retry_tokens", *ACCOUNTS, "calls")
SECONDS = ("api_seconds", "waiting_seconds")


def systems(run: Run, arms: Arms) -> list[Table]:
    """None where only architectures of our own were run."""
    bases = dict.fromkeys(base_of(run, name) for name in run.names("architecture"))
    parts = [ARCHITECTURES[base] for base in bases if base in ARCHITECTURES]
    if not any(part.makes_own_calls for part in parts):
        return []
    rows = [_row(run, arm) for arm in each_arm(arms)]
    return [
        Table(
            name="systems",
            title="All systems",
            columns=(
                *("Scenario", "Model", "Fault plan", "System", "Solved", "Wrong", "Gave up", "Errors"),
                *("Tokens", "Retry tokens", *ACCOUNTS, "LLM calls", "LLM API s", "Waiting s", "Framework ms a call"),
            ),
            rows=tuple(rows),
            notes=(
                "means over trials without errors: mean ± sd [95% interval]; solved: k/N with Wilson's 95% interval",
                "the accounts of the ledger add up to the tokens, trial by trial",
                "framework time is that of the machine that made this run: of our own architectures the steps of the trial, "
                "of the others all real time in which no call is in flight, their HTTP clients' and threads' too",
                *(f"{part.name}: {limit}" for part in parts for limit in part.limits),
            ),
        )
    ]


def _row(run: Run, arm: Arm) -> tuple[Cell, ...]:
    counts = [arm.count(outcome) for outcome in ("wrong", "gave_up", "error")]
    spent = [Estimate(arm.mean(column), 1 if column == "calls" else 0) for column in SPENT]
    seconds = [Estimate(arm.mean(column), 2) for column in SECONDS]
    return (*arm_cells(run, arm), Rate(arm.solved()), *counts, *spent, *seconds, Estimate(_framework_a_call(arm), 1))


def _framework_a_call(arm: Arm) -> Mean:
    """Milliseconds, trial by trial; a trial without a call has none."""
    called = arm.usable[arm.usable["calls"] > 0]
    values = (1000 * called["framework_seconds"] / called["calls"]).tolist()
    return amount_of(by_unit(dict(zip(pairs_of(called), values, strict=True))).values())
