"""What the four agents of others do when an answer is lost, a request is in flight, or a call is delivered again, beside what a
paper found for strong models: each agent orders twice at one HTTP service.

python -m probe.delivery [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import tomli_w
from reliability.kept import write
from with_postgres import postgres

from bench.probe.read.run import read_probe
from probe import parts
from probe.__main__ import AGENTS, ROOT, Agent, lay_out
from probe.subjects import FOREIGN, Foreign, Parts

STRUCK = ("lost", "in_flight", "redelivered")
PATIENCE = 25.0
"""Seconds: the agents give up an answer after twenty."""


@dataclass(frozen=True)
class DeliveredTo:
    """What the cells of one agent at one point came to.

    cells     of calls that change something, with a verdict
    doubled   of these, those in which an effect stands more than once
    told      of the doubled, those in which the agent said that it was done
    """

    agent: str
    point: str
    cells: int
    doubled: int
    told: int


def ordering_twice(foreign: Foreign) -> Foreign:
    """Return the service with a second order behind the first: a call can be delivered again after it."""
    tool, arguments = foreign.calls[-1]
    second = {name: value.replace("lamp", "chair") if isinstance(value, str) else value for name, value in arguments.items()}
    return replace(foreign, calls=(*foreign.calls, (tool, second)))


def probe(agent: Agent, folder: Path, installed: Parts) -> Iterator[DeliveredTo]:
    """Yield what the cells of one agent come to."""
    shop = ordering_twice(next(each for each in FOREIGN if each.name == "shop"))
    path = lay_out(agent, shop, folder / f"{agent.name}-shop", installed)
    described = tomllib.loads(path.read_text(encoding="utf-8")) | {"patience": PATIENCE}
    path.write_text(tomli_w.dumps(described), encoding="utf-8")
    only = [word for point in STRUCK for word in ("--only", f"#2.{point}")]  # the first order; the call before it looks
    words = [str(Path(sys.executable).parent / "bench"), "probe", path.name, "--yes", *only]
    done = subprocess.run(words, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{agent.name}: exit {done.returncode}", *done.stdout.splitlines()[-10:], sep="\n    ", flush=True)
    for manifest in path.parent.glob("results/*/manifest.json"):
        read = read_probe(manifest.parent)
        for point in STRUCK:
            judged = [cell.judgement for cell in read.with_verdict if cell.judgement and cell.judgement.point == point]
            doubled = [each for each in judged if each.verdict == "doubled"]
            yield DeliveredTo(agent.name, point, len(judged), len(doubled), sum(each.said_done for each in doubled))


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m probe.delivery", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    folder = parser.parse_args(words).folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts.install(folder)
    with postgres(folder) as address, ThreadPoolExecutor(2) as pool:
        installed = Parts(folder / parts.PYTHON, folder / parts.NODE, folder / "agents", address)
        rows = [
            row for each in pool.map(lambda agent: list(probe(agent, folder / "subjects", installed)), AGENTS) for row in each
        ]
    write(ROOT / "reports" / "probe", DeliveredTo, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
