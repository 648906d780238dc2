"""The probe's verdicts beside the count of a world, in the same trials: agents in a pack's world, whose tools are a stranger's.

The probe sees calls at its gateway and rows of the world's tables. The world counts by its own journal, as `bench.worlds` does.

    python -m probe.equality [--instances N] [--agents NAME ...] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from bench.record.events import of_kind
from bench.record.probe.events import CellJudged
from bench.record.probe.points import StrikePoint
from bench.record.reading import read_trials
from bench.run.packs.loading import instances_of, load_pack
from bench.worlds.run.environment import Environment
from bench.worlds.run.environment.world import World
from probe.world import PACKS, kept_worlds

HERE = Path(__file__).resolve().parent
AGENTS: Mapping[str, Sequence[str]] = {
    "bare": (),
    "bare_retry": ("--retry",),
    "kept": ("--keep",),
    "kept_keys": ("--keep", "--keys"),
    "keys_retry": ("--keys", "--retry"),
    "kept_keys_retry": ("--keep", "--keys", "--retry"),
}
"""Flags of agents/small_loop.py: three agents whose repeated calls nothing recognises, and three that send keys."""
WORLD_POINTS: Mapping[StrikePoint, str] = {
    "killed_before": "process: before",
    "unacknowledged": "process: unacknowledged",
    "acknowledged": "process: unrecorded",
    "acknowledged_next": "process: recorded",
    "lost": "tool: lost_ack",
    "error": "tool: unavailable",
}
"""Points that the probe and the faults of a world both have."""
Kinds = Mapping[str, Counter[str]]
"""Kind of damage -> tool -> how often."""


@dataclass(frozen=True)
class Trial:
    """One cell as the probe judged it, and as the world counts it; None where the probe gave no verdict."""

    agent: str
    pack: str
    plan: str
    point: StrikePoint | None
    probed: Kinds | None
    counted: Kinds

    @property
    def differs(self) -> bool:
        return self.probed is not None and self.probed != self.counted

    @property
    def total(self) -> int:
        return sum(sum(kind.values()) for kind in self.counted.values())


def lay_out(agent: str, pack: str, instance: str, folder: Path) -> Path:
    """Make a subject's folder anew. Return its probe.toml."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "kept").mkdir(parents=True)
    with closing(World(_environment(pack, instance), folder / "world.db")):
        pass
    tools = [str(HERE / "world.py"), "tools", pack, instance, str(folder / "world.db"), str(folder / "kept")]
    server = {"command": sys.executable, "args": tools}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"world": server}}, indent=2), encoding="utf-8")
    model = [sys.executable, str(HERE / "world.py"), "model", "{port}", pack, instance]
    program, memory = str(HERE / "agents" / "small_loop.py"), "conversation.jsonl"
    described = {
        "name": f"{agent}-{pack}",
        "agent": [sys.executable, program, "mcp.json", memory, *AGENTS[agent]],
        "mcp": "mcp.json",
        "environment": {"OPENAI_API_KEY": "none"},
        "patience": 2.0,
        "settle": 0.02,
        "store": [{"sqlite": "world.db", "ignore": ["world_*", "*.at", "deed.seen"]}, {"memory": memory}],
        "model": {"script": model},
    }
    path = folder / "probe.toml"
    path.write_text(tomli_w.dumps(described), encoding="utf-8")
    return path


def _environment(pack: str, instance: str) -> Environment:
    environment = load_pack(pack, PACKS, instance).environment
    assert isinstance(environment, Environment), "these packs have a world"
    return environment


def compared(agent: str, pack: str, instance: str, folder: Path, run: Path) -> Iterator[Trial]:
    """Yield the trials of a run beside the worlds that were kept.

    Raises ValueError if they are not as many.
    """
    environment = _environment(pack, instance)
    writing = {tool.name for tool in environment.tools if tool.writes}
    worlds = list(kept_worlds(environment, folder / "kept"))
    trials = [trial for trial in read_trials(run) if trial.outcome != "error"]
    if len(worlds) != len(trials):
        raise ValueError(f"{folder.name}: {len(trials)} trials, and {len(worlds)} worlds")
    for trial, counted in zip(trials, worlds, strict=True):
        judged = of_kind(trial.events, CellJudged)[-1]
        yield Trial(agent, pack, trial.plan, judged.point, _by_probe(judged, writing), counted)


def _by_probe(judged: CellJudged, writing: set[str]) -> Kinds | None:
    """Return how often the probe found the effects of tools that write doubled, or missing."""
    if judged.verdict in ("no_verdict", "not_applicable"):
        return None
    kinds: dict[str, Counter[str]] = {"doubled": Counter(), "lost": Counter()}
    for finding in judged.findings:
        tool = finding.effect.rpartition("#")[0].rpartition(".")[2]
        if finding.kind in kinds and tool in writing:
            kinds[finding.kind][tool] += finding.times - 1 if finding.kind == "doubled" else 1
    return kinds


def table(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield the lines of a table: by point, trials, effects doubled and lost, and differences."""
    yield "| point of the probe | fault of a world | trials | doubled | lost | differences |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for point, fault in WORLD_POINTS.items():
        here = [trial for trial in trials if trial.point == point and trial.probed is not None]
        doubled, lost = (sum(sum(trial.counted[kind].values()) for trial in here) for kind in ("doubled", "lost"))
        yield f"| {point} | {fault} | {len(here)} | {doubled} | {lost} | {sum(trial.differs for trial in here)} |"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m probe.equality", description=__doc__)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--agents", nargs="*", default=tuple(AGENTS))
    parser.add_argument("--packs", nargs="*", default=("contract_renewal", "support_desk"))
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    asked = parser.parse_args(words)
    folder = asked.folder.resolve()
    trials = list[Trial]()
    for pack in asked.packs:
        for instance in instances_of(pack, PACKS)[: asked.instances]:
            for agent in asked.agents:
                place = folder / "worlds" / f"{agent}-{pack}-{instance or 0}"
                path = lay_out(agent, pack, instance, place)
                ran = ["bench", "probe", path.name, "--yes", "--name", place.name]
                for tool in (tool.name for tool in _environment(pack, instance).tools if tool.writes):
                    ran += [word for point in WORLD_POINTS for word in ("--only", f"world.{tool}#1.{point}")]
                done = subprocess.run(ran, cwd=place, check=False, capture_output=True, text=True)
                (place / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
                new = list(compared(agent, pack, instance, place, place / "results" / place.name))
                trials += new
                print(f"{place.name}: exit {done.returncode}, {len(new)} trials, {sum(each.differs for each in new)} differ")
                for each in new:
                    if each.differs:
                        print(f"    {each.plan}: probe {each.probed}, world {each.counted}", flush=True)
    print(*table(trials), sep="\n")
    judged = [trial for trial in trials if trial.probed is not None]
    print(f"{len(judged)} trials, {sum(trial.total > 0 for trial in judged)} of them damaged")
    return int(any(trial.differs for trial in trials))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
