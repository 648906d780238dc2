"""Probe servers and agents of others, as a user would, and show what came of each pair: `nox -s probe`.

python -m probe [--only AGENT-SERVER ...] [--minutes N] [--budget SECONDS] [--workers N] [--folder FOLDER] [--record FOLDER]
                [--unboxed]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import tomli_w
from reliability.kept import write
from with_postgres import postgres

from bench.probe.read.run import read_probe
from probe import parts
from probe.subjects import FOREIGN, Foreign, Parts, remake

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@dataclass(frozen=True)
class Agent:
    """An agent of another framework. `memory` is the file in which it keeps what it knows, if it keeps anything."""

    name: str
    program: str
    file: str
    memory: str = ""
    dialect: str = "chat"


AGENTS = (
    Agent("openai_loop", "python", "openai_loop.py"),
    Agent("langgraph", "python", "langgraph_agent.py", "checkpoints.db"),
    Agent("openai_agents", "python", "openai_agents_sdk.py", "session.db", "responses"),
    Agent("ai_sdk", "tsx", "ai_sdk.ts"),
)


CLEAN = 30.0
"""Seconds of a pair beside its budget: clean runs, the last cell's second run, and the last control."""


@dataclass(frozen=True)
class Pair:
    """What the probe of an agent with a server came to.

    cells      the cells that were run; `damaged` did damage, `proven` did it in each of their runs
    worst      the most severe cell, and its verdict
    planned    the cells that were planned
    """

    agent: str
    server: str
    cells: int
    planned: int
    damaged: int
    proven: int
    gave_up: int
    worst: str


class Bound:
    """Divides the seconds of a session among its pairs, of which `workers` are probed at a time."""

    def __init__(self, seconds: float, pairs: int, workers: int, most: float):
        self._until, self._left, self._workers, self._most = time.monotonic() + seconds, pairs, workers, most
        self._lock = Lock()

    def budget(self) -> float:
        """Return the seconds of the next pair, beside its clean runs; 0 if there is no time for it."""
        with self._lock:
            seconds = self._until - time.monotonic()
            share = seconds * self._workers / self._left
            self._left -= 1
        return min(self._most, max(1.0, share - CLEAN)) if seconds > CLEAN else 0.0


def in_turn() -> Iterator[tuple[Agent, Foreign]]:
    """Yield all pairs, so that the first of them have every agent and every server: a session can end before the last."""
    for shift in range(len(FOREIGN)):
        yield from ((agent, FOREIGN[(number + shift) % len(FOREIGN)]) for number, agent in enumerate(AGENTS))


def lay_out(agent: Agent, foreign: Foreign, folder: Path, installed: Parts) -> Path:
    """Make a subject's folder anew: its data, its script, its MCP config. Return its probe.toml."""
    remake(foreign, folder, installed)
    store = dict(foreign.store(folder, installed))
    place = store.get("folder") or store.get("file") or store.get("sqlite", "")
    calls = [{"tool": tool, "arguments": dict(arguments)} for tool, arguments in foreign.calls]
    (folder / "script.toml").write_text(tomli_w.dumps({"calls": calls}), encoding="utf-8")
    command, *words = foreign.server(folder, installed)
    server = {"command": command, "args": words, "env": dict(foreign.environment(folder))}
    servers = {} if foreign.service else {foreign.name: server}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    memory = [str(folder / agent.memory)] if agent.memory else []
    program, file = installed.program(agent.program), str(installed.agents / agent.file)
    described = {
        "name": f"{agent.name}-{foreign.name}",
        "agent": [program, file, "mcp.json", foreign.task.replace("{path}", str(place)), *memory],
        "environment": {"OPENAI_API_KEY": "none"},
        "said_done": "Done",
        "takes_copies": True,
        "limit": 60.0,
        "patience": 3.0,
        "store": [store, *({"memory": path} for path in memory)],
        "model": {
            "script": [sys.executable, str(HERE / "script.py"), "{port}", str(folder / "script.toml")],
            "dialect": agent.dialect,
        },
    }
    if not foreign.service:
        described["mcp"] = "mcp.json"
    else:
        url = "http://127.0.0.1:{port}"
        words = [command, *words]
        described["service"] = [{"name": foreign.name, "variable": "SHOP_URL", "url": url, "command": words}]
    path = folder / "probe.toml"
    path.write_text(tomli_w.dumps(described), encoding="utf-8")
    return path


def probe(path: Path, budget: float, options: Sequence[str] = ()) -> tuple[int, float]:
    """Run `bench probe` on a subject, as a user would, print how it ended, and return its exit code and the seconds of the
    processor that it took with all that it started."""
    words, output = ["bench", "probe", path.name, "--yes", "--budget", f"{budget:g}s", *options], path.parent / "output.txt"
    began = time.monotonic()
    with output.open("wb") as file, subprocess.Popen(words, cwd=path.parent, stdout=file, stderr=file) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, processor = time.monotonic() - began, used.ru_utime + used.ru_stime
    runs = sum(1 for trials in path.parent.glob("results/*/trials.jsonl") for _ in trials.open("rb"))
    how = f"{path.parent.name}: exit {process.returncode} after {seconds:.0f} s, {runs} runs, {processor:.1f} s of processor"
    print(how, *output.read_text(encoding="utf-8").splitlines()[-10:], sep="\n    ", flush=True)
    return process.returncode, processor


def found_in(agent: str, server: str, folder: Path) -> Iterator[Pair]:
    """Yield what a subject's records say, if its clean runs came to their end."""
    for run in folder.glob("results/*/manifest.json"):
        read = read_probe(run.parent)
        if read.planned:
            worst = f"{read.damaged_cells[0].plan}: {read.damaged_cells[0].verdict}" if read.damaged_cells else ""
            proven = sum(cell.is_proven for cell in read.damaged_cells)
            gave_up = sum(cell.verdict == "gave_up" for cell in read.cells.values())
            counts = len(read.cells), len(read.planned.cells), len(read.damaged_cells), proven, gave_up
            yield Pair(agent, server, *counts, worst)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m probe", description=__doc__)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--minutes", type=float, default=14.0, help="within which all pairs end")
    parser.add_argument("--budget", type=float, default=25.0, help="seconds of a pair at most, beside its clean runs")
    parser.add_argument("--unboxed", action="store_true", help="without the agent's box, to compare what it costs")
    parser.add_argument("--workers", type=int, default=2, help="pairs at a time")
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    parser.add_argument("--record", type=Path, default=ROOT / "reports" / "probe")
    asked = parser.parse_args(words)
    began, folder = time.monotonic(), asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts.install(folder)
    chosen = list[tuple[Agent, Foreign]]()
    with postgres(folder) as address:
        installed = Parts(folder / parts.PYTHON, folder / parts.NODE, folder / "agents", address)
        for agent, foreign in in_turn():
            if asked.only and f"{agent.name}-{foreign.name}" not in asked.only:
                continue
            if lacks := installed.lack(agent.program, foreign):
                print(f"{agent.name}-{foreign.name}: left out: {lacks}", flush=True)
            else:
                chosen.append((agent, foreign))
        bound = Bound(60 * asked.minutes - (time.monotonic() - began), len(chosen), asked.workers, asked.budget)

        def ended(of: tuple[Agent, Foreign]) -> int | None:
            name = f"{of[0].name}-{of[1].name}"
            if not (budget := bound.budget()):
                print(f"{name}: left out: the session's {asked.minutes:g} minutes are over", flush=True)
                return None
            return probe(lay_out(*of, folder / "subjects" / name, installed), budget, ["--unboxed"] if asked.unboxed else [])[0]

        with ThreadPoolExecutor(asked.workers) as pool:
            codes = [code for code in pool.map(ended, chosen) if code is not None]
    names = [(agent.name, foreign.name) for agent, foreign in chosen]
    write(asked.record, Pair, [pair for of in names for pair in found_in(*of, folder / "subjects" / "-".join(of))])
    used, minutes = resource.getrusage(resource.RUSAGE_CHILDREN), (time.monotonic() - began) / 60
    processor = (used.ru_utime + used.ru_stime) / 60
    print(f"{len(codes)} of {len(chosen)} pairs in {minutes:.1f} minutes, {processor:.1f} minutes of processor")
    return int(2 in codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
