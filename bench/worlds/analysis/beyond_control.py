"""What went on in trials in worlds beyond their controls: the same system, instance and repetition without a fault."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bench.analysis.arms import UNUSABLE
from bench.analysis.frames import Run
from bench.experiment.config import FAULT_FREE
from bench.worlds.environment.damage import DAMAGES

PAIR = ["scenario", "instance", "model", "architecture", "repetition"]
SPENT = ("tokens", "calls", "tool_calls", "seconds")
"""`seconds` are those on the trial's clock, of calls and waiting: framework time is this machine's."""
DAMAGE = [f"damage_{kind}" for kind in DAMAGES]


def beyond_control(run: Run, measured: Sequence[str] = (*SPENT, *DAMAGE)) -> pd.DataFrame:
    """The trials under a fault plan that have a control, neither of them ended in an error.

    Beside their own columns those `measured` of the control as `*_control`, and `beyond_*`: what the trial spent, or how often
    a kind of damage happened, less what its control did. That can be below 0: a control may err by chance where the trial did
    not.
    """
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["lives"].notna()]
    usable = with_seconds(usable) if "seconds" in measured else usable
    columns = ["outcome", *measured]
    controls = usable[usable["plan"] == FAULT_FREE][[*PAIR, *columns]]
    both = usable[usable["plan"] != FAULT_FREE].merge(controls, on=PAIR, suffixes=("", "_control"))
    return both.assign(
        **{f"beyond_{column.removeprefix('damage_')}": both[column] - both[f"{column}_control"] for column in measured}
    )


def with_seconds(trials: pd.DataFrame) -> pd.DataFrame:
    return trials.assign(seconds=trials["api_seconds"] + trials["waiting_seconds"])
