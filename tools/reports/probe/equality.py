"""The probe's verdicts beside the count of a world, in the same trials: agents in a pack's world, whose tools are a stranger's.

The probe sees calls at its gateway and rows of the world's tables. The world counts by its own journal, as `bench.worlds` does.

    python -m probe.equality [--instances N] [--agents NAME ...] [--points POINT ...] [--workers N] [--budget S]
                             [--unboxed] [--folder FOLDER] [--record FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import tomli_w
from reliability.kept import read, write
from with_postgres import free_port

from bench.record.events import of_kind
from bench.record.probe_events import CellJudged
from bench.record.reading import read_trials
from bench.run.packs.loading import instances_of, load_pack
from bench.worlds.run.environment import Environment
from bench.worlds.run.environment.world import World
from probe import parts
from probe.world import PACKS, WorldCount, keeper, kept_worlds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TASK = "Do the work."


@dataclass(frozen=True)
class WorldAgent:
    """An agent as a command. `memory` is the file in which it keeps what it knows; `words` are flags of small_loop.py."""

    program: str
    file: str
    memory: str = ""
    words: Sequence[str] = ()

    def command(self, installed: Path) -> list[str]:
        if self.program == SMALL:
            program, file, begins = sys.executable, str(HERE / "agents" / self.file), []
        else:
            programs = {"python": installed / parts.PYTHON / "python", "tsx": installed / parts.NODE / "tsx"}
            program, file, begins = str(programs[self.program]), str(installed / "agents" / self.file), [TASK]
        return [program, file, "mcp.json", *begins, *([self.memory] if self.memory else []), *self.words]


SMALL, CONVERSATION = "small", "conversation.jsonl"
AGENTS: Mapping[str, WorldAgent] = {
    "small_loop, retries": WorldAgent(SMALL, "small_loop.py", CONVERSATION, ("--retry",)),
    "small_loop, remembers": WorldAgent(SMALL, "small_loop.py", CONVERSATION, ("--keep",)),
    "small_loop, remembers and has keys": WorldAgent(SMALL, "small_loop.py", CONVERSATION, ("--keep", "--keys", "--retry")),
    "openai_loop": WorldAgent("python", "openai_loop.py"),
    "ai_sdk": WorldAgent("tsx", "ai_sdk.ts"),
    "langgraph, checkpointer": WorldAgent("python", "langgraph_agent.py", "checkpoints.db"),
    "openai_agents, session": WorldAgent("python", "openai_agents_sdk.py", "session.db"),
}
"""Three begin anew after a death: `openai_loop`, `ai_sdk` and the small loop that retries. Four keep what they know; of these
the last small loop sends keys."""
WORLD_POINTS: Mapping[str, str] = {
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
    """A cell as the probe judged it, and as the world counts it; `probed` is None where the probe gave no verdict."""

    agent: str
    pack: str
    plan: str
    point: str | None
    probed: Kinds | None
    counted: WorldCount

    @property
    def differs(self) -> bool:
        return self.probed != self.counted.harms

    def has(self, kind: str) -> bool:
        return bool(self.counted.harms[kind])


@dataclass(frozen=True)
class Equality:
    """The trials of an agent in a pack at a point that the probe gave a verdict on.

    boxed           whether the agent and the world ran in the box
    point           the point, or "" for runs that nothing struck
    damaged         trials with an effect doubled or lost; `with_doubled` and `with_lost` tell them apart
    doubled, lost   effects, in all of them
    differ          trials in which the probe and the world count another effect
    owed_otherwise  trials in which the world as it became owes other effects than the clean run had
    """

    agent: str
    pack: str
    boxed: bool
    point: str
    trials: int
    damaged: int
    with_doubled: int
    with_lost: int
    doubled: int
    lost: int
    differ: int
    owed_otherwise: int

    @property
    def of(self) -> tuple[str, str, bool, str]:
        """What these trials are of."""
        return self.agent, self.pack, self.boxed, self.point


def lay_out(agent: WorldAgent, pack: str, instance: str, folder: Path, installed: Path, model: str, port: int) -> Path:
    """Make a subject's folder anew. Return its probe.toml. At the port its worlds are kept."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with closing(World(_environment(pack, instance), folder / "world.db")):
        pass
    tools = [str(HERE / "world.py"), "tools", pack, instance, str(folder / "world.db"), str(port)]
    server = {"command": sys.executable, "args": tools}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"world": server}}, indent=2), encoding="utf-8")
    memory = [{"memory": agent.memory}] if agent.memory else []
    described = {
        "name": folder.name,
        "agent": agent.command(installed),
        "mcp": "mcp.json",
        "environment": {"OPENAI_API_KEY": "none", "MODEL_API": "chat_completions"},
        "patience": 2.0,
        "settle": 0.02,
        "limit": 60.0,
        "takes_copies": True,
        "store": [{"sqlite": "world.db", "ignore": ["world_*", "*.at", "deed.seen"]}, *memory],
        "model": {"url": model},
        "remote": [f"127.0.0.1:{port}"],
    }
    path = folder / "probe.toml"
    path.write_text(tomli_w.dumps(described), encoding="utf-8")
    return path


def _environment(pack: str, instance: str) -> Environment:
    environment = load_pack(pack, PACKS, instance).environment
    assert isinstance(environment, Environment), "these packs have a world"
    return environment


def compared(agent: str, pack: str, instance: str, kept: Path, run: Path) -> Iterator[Trial]:
    """Yield the trials of a run beside the worlds that were kept of it in a folder.

    Raises ValueError if they are not as many.
    """
    environment = _environment(pack, instance)
    writing = {tool.name for tool in environment.tools if tool.writes}
    worlds = list(kept_worlds(environment, kept))
    trials = [trial for trial in read_trials(run) if trial.outcome != "error"]
    if len(worlds) != len(trials):
        raise ValueError(f"{run.name}: {len(trials)} trials, and {len(worlds)} worlds")
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


def counted(trials: Iterable[Trial], *, boxed: bool) -> Iterator[Equality]:
    """Yield the rows of the record."""
    groups = defaultdict[tuple[str, str, str], list[Trial]](list)
    for trial in trials:
        if trial.probed is not None and (trial.point is None or trial.point in WORLD_POINTS):
            groups[trial.agent, trial.pack, trial.point or ""].append(trial)
    for (agent, pack, point), here in groups.items():
        doubled, lost = (sum(sum(trial.counted.harms[kind].values()) for trial in here) for kind in ("doubled", "lost"))
        yield Equality(
            agent,
            pack,
            boxed,
            point,
            len(here),
            sum(trial.has("doubled") or trial.has("lost") for trial in here),
            sum(trial.has("doubled") for trial in here),
            sum(trial.has("lost") for trial in here),
            doubled,
            lost,
            sum(trial.differs for trial in here),
            sum(trial.counted.owed != trial.counted.harms for trial in here),
        )


@contextmanager
def model(pack: str, instance: str) -> Iterator[str]:
    """Serve a model that follows the pack's procedure, for all trials of a subject. Yields its address."""
    port = free_port()
    words = [sys.executable, str(HERE / "world.py"), "model", str(port), pack, instance]
    with subprocess.Popen(words) as serving:
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            serving.terminate()


def probed(
    name: str, pack: str, instance: str, folder: Path, installed: Path, points: Sequence[str], options: Sequence[str]
) -> list[Trial]:
    """Probe an agent in a world, as a user would, unless a former call has. The first call of each tool is struck."""
    output, kept = folder / "output.txt", folder.with_name(f"{folder.name}-kept")
    if not output.exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        with model(pack, instance) as address, keeper(_environment(pack, instance), kept) as port:
            path = lay_out(AGENTS[name], pack, instance, folder, installed, address, port)
            ran = ["bench", "probe", path.name, "--yes", "--name", folder.name, *options]
            ran += [word for point in points for word in ("--only", f"#1.{point}")]
            done = subprocess.run(ran, cwd=folder, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        output.write_text(done.stdout, encoding="utf-8")
    trials = list(compared(name, pack, instance, kept, folder / "results" / folder.name))
    print(f"{folder.name}: {len(trials)} trials, {sum(trial.differs for trial in trials)} differ")
    for trial in trials:
        if trial.probed is not None and trial.differs:
            print(f"    {trial.plan}: probe {trial.probed}, world {trial.counted.harms}", flush=True)
    return trials


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m probe.equality", description=__doc__)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--agents", nargs="*", default=tuple(AGENTS))
    parser.add_argument("--packs", nargs="*", default=("contract_renewal", "support_desk"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--points", nargs="*", default=tuple(WORLD_POINTS))
    parser.add_argument("--budget", type=float, default=600.0, help="seconds of an agent in a world, beside its clean runs")
    parser.add_argument("--unboxed", action="store_true", help="without the agent's box")
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    parser.add_argument("--record", type=Path, default=ROOT / "reports" / "probe")
    asked = parser.parse_args(words)
    folder, options = asked.folder.resolve(), ["--budget", f"{asked.budget:g}s", *(["--unboxed"] if asked.unboxed else [])]
    parts.install(folder)
    subjects = [
        (name, pack, instance)
        for name in asked.agents
        for pack in asked.packs
        for instance in instances_of(pack, PACKS)[: asked.instances]
    ]
    with ThreadPoolExecutor(asked.workers) as pool:
        worlds = folder / "-".join(("worlds_unboxed" if asked.unboxed else "worlds", *asked.points))
        probing = [pool.submit(probed, *of, worlds / _file_name(*of), folder, asked.points, options) for of in subjects]
        rows = list(counted((trial for each in probing for trial in each.result()), boxed=not asked.unboxed))
    made = {row.of for row in rows}
    write(asked.record, Equality, [*(row for row in read(asked.record, Equality) if row.of not in made), *rows])
    print(
        f"{sum(row.trials for row in rows)} trials, {sum(row.damaged for row in rows)} of them damaged, "
        f"{sum(row.differ for row in rows)} differ"
    )
    return int(any(row.differ for row in rows))


def _file_name(agent: str, pack: str, instance: str) -> str:
    return f"{agent.replace(', ', '-').replace(' ', '_')}-{pack}-{instance or 0}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
