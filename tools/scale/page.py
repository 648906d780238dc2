"""The page of what was measured, and of what bends next where there is more."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scale.runs import RUN

from bench.read.render.cells import Number
from bench.read.render.table import Table, markdown

PREFACE = """# Scale

`nox -s scale` runs the config of the tests (two architectures, a fault plan and none, a simulated model) in one process and
on Ray's workers on the same machine, and watches every process. All calls are SIMULATED: the numbers say what the suite
takes, and nothing about a model. Each row is a single run, so it has no interval. Where the load average is above the number of
cores, other processes ran beside it: then seconds of the processor tell more than seconds.
"""
HUGE = 10**9
"""Calls, at the scale that is told of on paper."""
LIVE_SECONDS = 2.0
"""What a live call is taken to last, where live calls are told of on paper."""


def page(folder: Path, machine: str) -> str:
    """Return the page of the tables that lie in this folder; `machine` tells of the last measurement."""
    parts = [PREFACE, f"The machine of the last measurement: {machine}.", ""]
    if (path := folder / "processes.csv").exists():
        rows = pd.read_csv(path)
        parts += [markdown(table) for table in (throughput(rows), memory(rows), bends(rows))]
    if (path := folder / "faults.csv").exists():
        parts += [markdown(faults(pd.read_csv(path)))]
    return "\n".join(parts)


def engine(workers: int) -> str:
    """Return how a run with so many workers is called."""
    return {0: "one process", 1: "Ray, 1 worker"}.get(workers, f"Ray, {workers} workers")


def throughput(rows: pd.DataFrame) -> Table:
    """Return calls a second, and what a call takes of the processor, by engine and size."""
    keys = ["workers", "calls", "trials", "seconds"]
    runs = rows.groupby(keys)[["processor"]].sum().reset_index()
    cells = [
        (
            engine(run["workers"]),
            Number(run["calls"]),
            Number(run["trials"]),
            Number(run["seconds"], 1),
            Number(run["calls"] / run["seconds"]),
            Number(1000 * run["processor"] / run["calls"], 2),
            *_further(runs[(runs.workers == run["workers"]) & (runs.calls <= run["calls"])]),
        )
        for run in runs.to_dict("records")
    ]
    titles = ("Engine", "Calls", "Trials", "Seconds", "Calls a second", "Processor, ms a call")
    further = ("Calls a second beyond the smallest run", "Processor, ms a call beyond it")
    note = "Beyond the smallest run: what the further calls took. The start of Python, of the packs and of Ray is not in it."
    return Table("throughput", "Throughput, from nothing to the last record", (*titles, *further), tuple(cells), (note,))


def _further(runs: pd.DataFrame) -> tuple[Number, Number]:
    """What the calls of the last of these runs took beyond those of the first."""
    if len(runs) == 1:
        return Number(None), Number(None)
    return Number(1 / _slope(runs, "seconds")), Number(1000 * _slope(runs, "processor"), 2)


def memory(rows: pd.DataFrame) -> Table:
    """Return each role's peak at each size, and the largest size's as a multiple of the smallest's."""
    sizes = sorted(rows[rows.workers == 0]["calls"].unique())
    cells = [
        (engine(workers), role, *map(Number, peaks), Number(peaks[-1] and peaks[0] and peaks[-1] / peaks[0], 2))
        for workers, role in dict.fromkeys(zip(rows["workers"], rows["role"], strict=True))
        for peaks in [[_peak(rows[(rows.workers == workers) & (rows.role == role) & (rows.calls == size)]) for size in sizes]]
    ]
    columns = (f"MiB at about {size:,} calls" for size in sizes)
    note = "The peak of the largest process of each role. A worker shares pages with Ray's object store."
    titles = ("Engine", "Process", *columns, "Largest / smallest run")
    return Table("memory", "Memory of every process", titles, tuple(cells), (note,))


def _peak(rows: pd.DataFrame) -> float | None:
    """The peak in the sole row; None where no process of the role was seen."""
    return None if rows.empty else float(rows["peak"].iloc[0])


def bends(rows: pd.DataFrame) -> Table:
    """Return what was measured at the largest size, and what follows from it for a billion calls."""
    runs = rows[rows.role == RUN]
    alone, wide = (runs[runs.workers == workers].sort_values("calls") for workers in (0, max(rows.workers)))
    few, many = alone.iloc[0], alone.iloc[-1]
    call, again = (_slope(alone, what) for what in ("processor", "again"))
    writer = _slope(wide, "processor")
    bytes_a_trial = max(0.0, (many.peak - few.peak) * 2**20 / (many.trials - few.trials))  # two peaks differ by some KiB
    trials, size = HUGE * many.trials / many.calls, many["size"] / many.calls
    cells = (
        ("one process works on a call", f"{1000 * call:.2f} ms", f"{HUGE * call / 86_400:,.1f} days on one processor"),
        (
            "the run's process takes in a worker's call",
            f"{1000 * writer:.2f} ms",
            f"it keeps up with {call / writer:.1f} workers, and takes {HUGE * writer / 86_400:,.1f} days",
        ),
        (
            "memory for each trial that is planned",
            f"{bytes_a_trial:,.0f} B",
            f"{bytes_a_trial * trials / 2**30:,.0f} GiB in the run's process, and as much in each worker",
        ),
        ("the run's folder", f"{size:,.0f} B a call", f"{HUGE * size / 2**40:,.2f} TiB"),
        (
            "the same command finds nothing missing",
            f"{many.again:.1f} s at {many.calls:,} calls",
            f"{HUGE * again / 3600:,.1f} hours",
        ),
        (
            "a live call passes through the run's process",
            f"at least {1000 * writer:.2f} ms",
            f"{LIVE_SECONDS / writer:,.0f} live calls of {LIVE_SECONDS:g} s in flight at most",
        ),
    )
    note = "Shards help: each plans, writes and resumes its part alone, and bench more merge joins them."
    titles = ("What", "Measured", f"At {HUGE:,} calls, by proportion")
    return Table("bends", "What bends next", titles, cells, (note,))


def _slope(runs: pd.DataFrame, what: str) -> float:
    """What each call beyond those of the smallest run took."""
    few, many = runs.iloc[0], runs.iloc[-1]
    return float((many[what] - few[what]) / (many.calls - few.calls))


def faults(rows: pd.DataFrame) -> Table:
    """Return what came of each test of the engine."""
    cells = tuple((str(row["what"]), str(row["outcome"])) for row in rows.to_dict("records"))
    return Table("faults", "Faults of the engine", ("What must hold", "Outcome"), cells)
