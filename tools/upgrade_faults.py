"""What plans of faults do to the patterns in the world service_upgrade: one row a scenario, plan and form, as CSV.

python tools/upgrade_faults.py RUN ...     RUN: folders under results, of studies/comparisons/service_upgrade.toml

A share has its trials and a 95% interval, which is exact and clustered by case. Of damage the row tells in how many trials
each kind happened, and how many effects it struck in all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bench.read.analysis.frames import load_run
from bench.read.analysis.statistics import Share, exact_share_by_instance

KINDS = ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale")
REMEDIED = "_remedied"


def rows(trials: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Raises ValueError where a trial ended in an error, or its two counts of damage differ: such a run has no table."""
    if (trials["outcome"] == "error").any() or not trials["recount_agrees"].all():
        raise ValueError("a trial ended in an error, or its two counts of damage differ")
    forms = trials["architecture"].str.endswith(REMEDIED).map({True: "remedied", False: "bare"})
    for (scenario, plan, form), each in trials.groupby(["scenario", "plan", forms], sort=False):
        row: dict[str, object] = {"scenario": scenario, "plan": plan, "form": form, "trials": len(each)}
        row |= {"cases": each["instance"].nunique()} | _columns("solved", _share(each, each["outcome"] == "solved"))
        for kind in KINDS:
            counts = each[f"damage_{kind}"].fillna(0)
            row |= {kind: int(counts.sum())} | _columns(f"{kind}_trials", _share(each, counts > 0))
        yield row


def _share(trials: pd.DataFrame, hits: pd.Series[bool]) -> Share:
    return exact_share_by_instance(trials["instance"].tolist(), hits.tolist())


def _columns(name: str, share: Share) -> dict[str, object]:
    low, high = (f"{end:.4f}" if end is not None else "" for end in (share.low, share.high))
    return {name: share.k, f"{name}_low": low, f"{name}_high": high}


def main(names: list[str]) -> None:
    runs = [load_run(Path("results") / name).trials for name in names]
    pd.DataFrame([row for trials in runs for row in rows(trials)]).to_csv(sys.stdout, index=False)


if __name__ == "__main__":
    main(sys.argv[1:])
