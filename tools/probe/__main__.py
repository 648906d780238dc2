"""Probe servers and agents of others, as a user would, and show what came of each pair: `nox -s probe`.

python -m probe [--only AGENT-SERVER ...] [--budget SECONDS] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from probe import parts
from probe.subjects import FOREIGN, Foreign, Parts, remake

HERE = Path(__file__).resolve().parent


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


@dataclass(frozen=True)
class Ended:
    """How the probe of a pair ended: its exit code, seconds, and the lines with which its output ended."""

    pair: str
    code: int
    seconds: float
    lines: Sequence[str]


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


def probe(path: Path, budget: float) -> Ended:
    """Run `bench probe` on a subject, as a user would."""
    began, pair = time.monotonic(), path.parent.name
    words = ["bench", "probe", path.name, "--yes", "--budget", f"{budget:g}s"]
    done = subprocess.run(words, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    (path.parent / "output.txt").write_text(done.stdout, encoding="utf-8")
    return Ended(pair, done.returncode, time.monotonic() - began, done.stdout.splitlines()[-10:])


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m probe", description=__doc__)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--budget", type=float, default=25.0)
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    asked = parser.parse_args(words)
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts.install(folder)
    ended = []
    with parts.postgres(folder) as address:
        installed = Parts(folder / parts.PYTHON, folder / parts.NODE, folder / "agents", address)
        for foreign in FOREIGN:
            for agent in AGENTS:
                pair = f"{agent.name}-{foreign.name}"
                if asked.only and pair not in asked.only:
                    continue
                if lacks := installed.lack(agent.program, foreign):
                    print(f"{pair}: left out: {lacks}", flush=True)
                    continue
                done = probe(lay_out(agent, foreign, folder / "subjects" / pair, installed), asked.budget)
                ended.append(done)
                print(f"{pair}: exit {done.code} after {done.seconds:.0f} s", *done.lines, sep="\n    ", flush=True)
    return int(any(each.code == 2 for each in ended))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
