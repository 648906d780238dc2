"""The table of widely used frameworks beside our architectures, with what each framework cannot express."""

from __future__ import annotations

from bench.read.analysis.arms import Arm, Arms, pairs_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Mean, amount_of, by_unit
from bench.read.render.cells import Estimate, Rate
from bench.read.render.labels import arm_columns, each_arm
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.ledger import ACCOUNTS


def systems(run: Run, arms: Arms) -> list[Table]:
    """Return the table of all systems; no table if only our own architectures were run."""
    bases = dict.fromkeys(run.config.base(name) for name in run.names("architecture"))
    all_descriptions = run.manifest.descriptions.architectures
    descriptions = {base: all_descriptions[base] for base in bases if base in all_descriptions}
    if not any(description.makes_own_calls for description in descriptions.values()):
        return []
    *condition_columns, _ = arm_columns(run)
    columns = (
        *condition_columns,
        TableColumn("System", lambda arm: arm.architecture),
        TableColumn("Solved", lambda arm: Rate(arm.solved())),
        TableColumn("Wrong", lambda arm: arm.count("wrong")),
        TableColumn("Gave up", lambda arm: arm.count("gave_up")),
        TableColumn("Errors", lambda arm: arm.count("error")),
        _mean("Tokens", "tokens"),
        _mean("Retry tokens", "retry_tokens"),
        *(_mean(account.replace("_", " "), account) for account in ACCOUNTS),
        _mean("LLM calls", "calls", 1),
        _mean("LLM API s", "api_seconds", 2),
        _mean("Waiting s", "waiting_seconds", 2),
        TableColumn("Framework ms a call", lambda arm: Estimate(_framework_ms_per_call(arm), 1)),
    )
    notes = (
        "means over trials without errors: mean ± sd [95% interval]; solved: k/N with Wilson's 95% interval",
        "the accounts of the ledger add up to the tokens, trial by trial",
        "framework time was measured on this run's machine: for our architectures the steps of the trial, for the others all "
        "real time with no call in flight, including their HTTP clients and threads",
        *(f"{name}: {limit}" for name, description in descriptions.items() for limit in description.limits),
    )
    return [table_of("systems", "All systems", columns, each_arm(arms), notes)]


def _mean(title: str, column: str, digits: int = 0) -> TableColumn[Arm]:
    """Return a column with the arms' means of a column of the trials."""
    return TableColumn(title, lambda arm: Estimate(arm.mean(column), digits))


def _framework_ms_per_call(arm: Arm) -> Mean:
    """Return the mean milliseconds of framework time per call. Trials without a call are left out."""
    called = arm.usable[arm.usable["calls"] > 0]
    values = (1000 * called["framework_seconds"] / called["calls"]).tolist()
    return amount_of(by_unit(dict(zip(pairs_of(called), values, strict=True))).values())


PARTS = (TablePart("systems", lambda of: systems(of.run, of.arms), "outcomes"),)
