"""What `bench report` takes of a run of 10,000 trials, beside ten lines with `json.loads` that read the same file and group it.

Each is a process of its own, its start and imports within, from compiled bytecode, as in an installed package. Processes take
turns. What is compared is their CPU time, the user's and the system's, since other work on the machine changes it least. Frames
and report are measured twice: with an empty cache folder, and again, when the run's frames are kept there. The floor is the
report of a run of one trial.

    python tools/reports/perf/report.py [ROUNDS]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

CHECKOUT = Path(__file__).parents[3]
TRIALS, ARMS, ROUNDS = 10_000, 12, 2
RUN, SMALL = "large", "small"
FAILURE_RATE = 0.15
"""Of the simulated model, so that trials differ as real ones do: some retry, some give up."""

OF_ONE_TRIAL = ("--scenario", "k8s_oomkill", "--architecture", "runtime_structured", "--plan", "paper")
"""What leaves one trial of the paper's experiment."""

ARM = ["scenario", "model", "plan", "architecture"]
OF_A_CALL = ["tokens_in", "tokens_out", "seconds"]


def plain_loop(path: Path) -> None:
    """Trials and calls by arm: how many, mean and sd of tokens and of seconds. So would anyone write it."""
    import json  # noqa: PLC0415

    import pandas as pd  # noqa: PLC0415

    trials, calls = [], []
    with (path / "trials.jsonl").open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["kind"] == "trial":
                arm = {name: record[name] for name in ARM}
                trials.append({**arm, "tokens": record["tokens"], "api_seconds": record["api_seconds"]})
                called = (event for event in record["events"] if event["kind"] == "call")
                calls += [{**arm, **{name: event[name] for name in OF_A_CALL}} for event in called]
    print(pd.DataFrame(trials).groupby(ARM)[["tokens", "api_seconds"]].agg(["count", "mean", "std"]))
    print(pd.DataFrame(calls).groupby(ARM)[OF_A_CALL].agg(["count", "mean", "std"]))


def frames(path: Path) -> None:
    import bench  # noqa: PLC0415

    bench.load_run(path)


STAGES: dict[str, Callable[[Path], None]] = {
    "loop": plain_loop,
    "frames": frames,
}
"""What a process of this file does, by its first argument."""
AGAIN = " again"
WORDS = {
    "loop": "json.loads in a loop: read and group",
    "frames": "frames",
    "frames again": "frames again, from the cache",
    "report": "bench report",
    "report again": "bench report, from the cache",
    "floor": "bench report of one trial",
}


@dataclass(frozen=True)
class Cost:
    """`cpu`: seconds, the user's and the system's; `peak`: MiB of resident memory."""

    cpu: float
    wall: float
    peak: float


def cost_of(*command: str, folder: Path, cache: Path) -> Cost:
    """Of a Python process from its start to its end, with this folder for the user's cache. Matplotlib keeps its list of fonts
    elsewhere, since every stage has it."""
    sys.path.insert(0, str(CHECKOUT / "tests" / "support"))
    from commands import environment  # noqa: PLC0415  it loads half of the package, which is no part of a stage

    variables = environment(XDG_CACHE_HOME=str(cache), MPLCONFIGDIR=str(folder / "matplotlib"), PYTHONDONTWRITEBYTECODE="")
    began = perf_counter()
    process = subprocess.Popen([sys.executable, *command], cwd=folder, env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def make_runs(folder: Path) -> None:
    """Run the paper's experiment with a simulated model and many repetitions, and one trial of it."""
    shutil.copytree(CHECKOUT / "scenarios", folder / "scenarios")
    text = (CHECKOUT / "configs" / "paper.toml").read_text()
    text = text.replace('kind = "simulated"\n', f'kind = "simulated"\nfailure_rate = {FAILURE_RATE}\n')
    for name, repetitions, options in ((RUN, -(-TRIALS // ARMS), ()), (SMALL, 1, OF_ONE_TRIAL)):
        (folder / f"{name}.toml").write_text(
            re.sub(r"^repetitions = .*$", f"repetitions = {repetitions}", text, flags=re.MULTILINE)
        )
        cost_of("-m", "bench", "run", f"{name}.toml", "--name", name, *options, folder=folder, cache=folder)


def main(rounds: int) -> dict[str, float]:
    """Print what each stage takes. Return its seconds of the processor, as many times as the loop takes."""
    here = str(Path(__file__).resolve())
    results = f"results/{RUN}"
    commands: dict[str, tuple[str, ...]] = {stage: (here, stage, results) for stage in STAGES}
    commands |= {"report": ("-m", "bench", "report", RUN), "floor": ("-m", "bench", "report", SMALL)}
    by_stage: dict[str, list[Cost]] = {stage: [] for stage in WORDS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_runs(folder)
        for number in range(rounds):
            for stage, command in commands.items():
                for word in (word for word in WORDS if word.removesuffix(AGAIN) == stage):
                    by_stage[word].append(cost_of(*command, folder=folder, cache=folder / f"{stage}-{number}"))
        size = (folder / results / "trials.jsonl").stat().st_size / 2**20
    least = {stage: least_of(costs) for stage, costs in by_stage.items()}
    print(f"{TRIALS:,} trials, {size:.0f} MiB of records; the least of {rounds} processes each")
    print(f"{'':36} {'CPU s':>8} {'wall s':>8} {'peak MiB':>9} {'CPU, times the loop':>20}")
    times = {stage: cost.cpu / least["loop"].cpu for stage, cost in least.items()}
    for stage, cost in least.items():
        print(f"{WORDS[stage]:36} {cost.cpu:8.2f} {cost.wall:8.2f} {cost.peak:9.0f} {times[stage]:20.2f}")
    return times


def least_of(costs: list[Cost]) -> Cost:
    """Return the least of each part: what else the machine does only adds to it."""
    return Cost(*(min(getattr(cost, part) for cost in costs) for part in ("cpu", "wall", "peak")))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [stage, run]:
            STAGES[stage](Path(run))
        case rest:
            main(int(rest[0]) if rest else ROUNDS)
