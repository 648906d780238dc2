"""The pairs of others' agents and servers, probed in the box and without one: the same cells, their verdicts, and the seconds
of the processor that each probe took.

python -m probe.boxed [--only AGENT-SERVER ...] [--points POINT ...] [--workers N] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from reliability.kept import read, write
from with_postgres import postgres

from bench.probe.read.run import read_probe
from probe import parts
from probe.__main__ import ROOT, Agent, in_turn, lay_out, probe
from probe.subjects import Foreign, Parts

RECORD = ROOT / "reports" / "probe"
POINTS = ("unacknowledged", "lost")
"""After the first the agent is started again, and it lives on after the second."""
STRUCK = {
    "filesystem": "edit_file#1",
    "memory": "create_entities#1",
    "sqlite": "write_query#1",
    "git": "git_commit#1",
    "airline": "send_certificate#1",
    "shop": "POST /graphql#2",
}
"""The call of each server that is struck: it has an effect."""
BUDGET = 1.0
"""Seconds in which a cell must have begun: the three clean runs, the cell and a control are made, and nothing is made again."""


@dataclass(frozen=True)
class Boxed:
    """What two probes of one cell of a pair came to.

    boxed, unboxed                  its verdict
    runs, runs_unboxed              runs of the agent: clean ones, the cell, a control
    processor, processor_unboxed    seconds of the processor, of the probe and all that it started
    """

    agent: str
    server: str
    cell: str
    boxed: str
    unboxed: str
    runs: int
    runs_unboxed: int
    processor: float
    processor_unboxed: float

    @property
    def is_equal(self) -> bool:
        return self.boxed == self.unboxed

    @property
    def ratio(self) -> float:
        """How many times the processor of a run without the box a run in it took."""
        return (self.processor / self.runs) / (self.processor_unboxed / self.runs_unboxed)


@dataclass(frozen=True)
class Probed:
    """What the probe of one cell came to."""

    verdict: str
    runs: int
    processor: float


def probed(path: Path, cell: str, options: Sequence[str]) -> Probed:
    """Probe one cell of a pair, as a user would."""
    _, processor = probe(path, BUDGET, [*options, "--only", cell])
    [manifest] = path.parent.glob("results/*/manifest.json")
    records = read_probe(manifest.parent)
    [struck] = records.cells.values()
    return Probed(struck.verdict, len(records.records), processor)


class Session:
    """Probes pairs, and keeps a row of each as soon as it is there."""

    def __init__(self, folder: Path, installed: Parts):
        self._folder, self._installed, self._lock = folder, installed, Lock()

    def keep(self, agent: Agent, foreign: Foreign, point: str, *, boxed_first: bool) -> None:
        """Probe a cell of a pair in the box and without, and keep the row."""
        cell, both = f"{STRUCK[foreign.name]}.{point}", dict[bool, Probed]()
        for boxed in (boxed_first, not boxed_first):
            path = lay_out(agent, foreign, self._folder / f"{agent.name}-{foreign.name}", self._installed)
            both[boxed] = probed(path, cell, [] if boxed else ["--unboxed"])
        here, there = both[True], both[False]
        took = round(here.processor, 1), round(there.processor, 1)
        row = Boxed(agent.name, foreign.name, cell, here.verdict, there.verdict, here.runs, there.runs, *took)
        with self._lock:
            made = [
                each for each in read(RECORD, Boxed) if (each.agent, each.server, each.cell) != (row.agent, row.server, cell)
            ]
            write(RECORD, Boxed, [*made, row])
        print(row, flush=True)


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m probe.boxed", description=__doc__)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--points", nargs="*", default=POINTS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    asked = parser.parse_args(words)
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts.install(folder)
    with postgres(folder) as address, ThreadPoolExecutor(asked.workers) as pool:
        installed = Parts(folder / parts.PYTHON, folder / parts.NODE, folder / "agents", address)
        session, probing = Session(folder / "boxed", installed), []
        for point in asked.points:
            for number, (agent, foreign) in enumerate(in_turn()):
                if asked.only and f"{agent.name}-{foreign.name}" not in asked.only:
                    continue
                if lacks := installed.lack(agent.program, foreign):
                    print(f"{agent.name}-{foreign.name}: left out: {lacks}", flush=True)
                else:  # each way is first as often as the other
                    probing.append(pool.submit(session.keep, agent, foreign, point, boxed_first=bool(number % 2)))
        for each in probing:
            if error := each.exception():
                print(f"a pair could not be probed: {error!r}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
