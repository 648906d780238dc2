"""Compare trials in worlds with their controls: the trials of the same architecture, instance and repetition without a
fault."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.record.config import FAULT_FREE
from bench.record.damage import DAMAGES

PAIR_COLUMNS = ["scenario", "instance", "model", "architecture", "repetition"]
COST_COLUMNS = ("tokens", "calls", "tool_calls", "seconds")
"""The costs of a trial. `seconds` are its API time and waiting time; framework time is left out, because it depends on this
machine."""
DAMAGE_COLUMNS = [f"damage_{kind}" for kind in DAMAGES]


def beyond_control(run: Run, measured: Sequence[str] = (*COST_COLUMNS, *DAMAGE_COLUMNS)) -> pd.DataFrame:
    """Return the trials under a fault plan that have a control, without pairs in which either trial ended in an error.

    For each `measured` column, `*_control` holds the control's value, and `beyond_*` the trial's value minus the control's.
    `beyond_*` can be below 0: a control can err by chance where the trial did not.
    """
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["lives"].notna()]
    usable = with_seconds(usable) if "seconds" in measured else usable
    columns = ["outcome", *measured]
    controls = usable[usable["plan"] == FAULT_FREE][[*PAIR_COLUMNS, *columns]]
    pairs = usable[usable["plan"] != FAULT_FREE].merge(controls, on=PAIR_COLUMNS, suffixes=("", "_control"))
    return pairs.assign(
        **{f"beyond_{column.removeprefix('damage_')}": pairs[column] - pairs[f"{column}_control"] for column in measured}
    )


def with_seconds(trials: pd.DataFrame) -> pd.DataFrame:
    """Add the column `seconds`: the API time and the waiting time of a trial."""
    return trials.assign(seconds=trials["api_seconds"] + trials["waiting_seconds"])
