"""What `bench report` takes of a run of 10,000 trials, beside plain pandas reading the same file and grouping it.

Each is a process of its own, its start and imports within; they take turns, so that whatever else the machine does falls on
all of them. The stages are the report as far as it goes: each holds those above it.

    python tests/perf/report.py [ROUNDS]
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from commands import environment

CHECKOUT = Path(__file__).parents[2]
TRIALS, ARMS, ROUNDS = 10_000, 12, 5
RUN = "large"
FAILURE_RATE = 0.15
"""Of the simulated model, so that trials differ as real ones do: some retry, some give up."""

ARM = ["scenario", "model", "plan", "architecture"]


def plain_pandas(path: Path) -> None:
    """Trials and calls by arm: how many, mean and sd of tokens and of seconds."""
    import pandas as pd  # noqa: PLC0415

    records = pd.read_json(path / "trials.jsonl", lines=True)
    trials = records[records["kind"] == "trial"]
    print(trials.groupby(ARM)[["tokens", "api_seconds"]].agg(["count", "mean", "std"]))
    events = trials[[*ARM, "events"]].explode("events", ignore_index=True)
    called = events[events["events"].map(lambda event: event["kind"]) == "call"].reset_index(drop=True)
    calls = called[ARM].join(pd.json_normalize(called["events"].tolist()))
    print(calls.groupby(ARM)[["tokens_in", "tokens_out", "seconds"]].agg(["count", "mean", "std"]))


def frames(path: Path) -> None:
    import bench  # noqa: PLC0415

    bench.load_run(path)


def with_tables(path: Path) -> None:
    import bench  # noqa: PLC0415
    from bench.analysis.arms import arms_of  # noqa: PLC0415
    from bench.analysis.claims.published import load_published  # noqa: PLC0415
    from bench.report.tables import all_tables  # noqa: PLC0415

    run = bench.load_run(path)
    all_tables(run, arms_of(run), load_published(), ())


def with_figures(path: Path) -> None:
    import bench  # noqa: PLC0415
    from bench.analysis.arms import arms_of  # noqa: PLC0415
    from bench.analysis.claims.published import load_published  # noqa: PLC0415
    from bench.report.figures import all_figures  # noqa: PLC0415
    from bench.report.tables import all_tables  # noqa: PLC0415

    run, published = bench.load_run(path), load_published()
    arms = arms_of(run)
    all_tables(run, arms, published, ())
    all_figures(run, arms, published)


STAGES: dict[str, Callable[[Path], None]] = {
    "pandas": plain_pandas,
    "frames": frames,
    "tables": with_tables,
    "figures": with_figures,
}
"""What a process of this file does, by its first argument."""


@dataclass(frozen=True)
class Cost:
    """`cpu`: seconds, the user's and the system's; `peak`: MiB of resident memory."""

    cpu: float
    wall: float
    peak: float


def cost_of(*command: str, folder: Path) -> Cost:
    """Of a Python process from its start to its end."""
    began = perf_counter()
    process = subprocess.Popen([sys.executable, *command], cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def make_run(folder: Path) -> None:
    """The paper's experiment with a simulated model and many repetitions."""
    shutil.copytree(CHECKOUT / "scenarios", folder / "scenarios")
    text = (CHECKOUT / "configs" / "paper.toml").read_text()
    text = re.sub(r"^repetitions = .*$", f"repetitions = {-(-TRIALS // ARMS)}", text, flags=re.MULTILINE)
    text = text.replace('kind = "simulated"\n', f'kind = "simulated"\nfailure_rate = {FAILURE_RATE}\n')
    (folder / "large.toml").write_text(text)
    cost_of("-m", "bench", "run", "large.toml", "--name", RUN, folder=folder)


def main(rounds: int) -> None:
    here = str(Path(__file__).resolve())
    results = f"results/{RUN}"
    kinds = {
        "plain pandas: read and group": (here, "pandas", results),
        "frames": (here, "frames", results),
        "  and tables": (here, "tables", results),
        "  and figures": (here, "figures", results),
        "bench report: and the page, written": ("-m", "bench", "report", RUN),
    }
    found: dict[str, list[Cost]] = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder)
        for _ in range(rounds):
            for kind, command in kinds.items():
                found[kind].append(cost_of(*command, folder=folder))
        show(found, folder / results)


def show(found: dict[str, list[Cost]], run: Path) -> None:
    import bench  # noqa: PLC0415

    read = bench.load_run(run)
    size = (run / "trials.jsonl").stat().st_size / 2**20
    rounds = len(next(iter(found.values())))
    print(
        f"{len(read.trials):,} trials, {len(read.calls):,} calls, {size:.0f} MiB of records; medians of {rounds} processes each"
    )
    print(f"{'':36} {'CPU s':>8} {'wall s':>8} {'peak MiB':>9} {'CPU, times pandas':>18}")
    middle = {kind: median_of(costs) for kind, costs in found.items()}
    plain = next(iter(middle.values()))
    for kind, cost in middle.items():
        print(f"{kind:36} {cost.cpu:8.2f} {cost.wall:8.2f} {cost.peak:9.0f} {cost.cpu / plain.cpu:18.2f}")


def median_of(costs: list[Cost]) -> Cost:
    """Each part by itself."""
    return Cost(*(statistics.median(getattr(cost, part) for cost in costs) for part in ("cpu", "wall", "peak")))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [stage, run]:
            STAGES[stage](Path(run))
        case rest:
            main(int(rest[0]) if rest else ROUNDS)
