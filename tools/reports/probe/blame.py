"""Plant a weakness in agents of four frameworks, probe them as a user would, and compare whom the probe blames.

Each agent is made sound: its calls carry a key, what it did stands in a journal, errors are told, and the tool does a key once.
Then a single edit takes a part of that away, or a harmless one changes nothing. What must be blamed is said before the run.

python -m probe.blame [--only AGENT-WEAKNESS ...] [--workers N] [--folder FOLDER] [--record FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tomli_w
from reliability.kept import write

from bench.common.errors import ResultsError
from bench.probe.read.run import read_probe
from probe import parts
from probe.__main__ import AGENTS, HERE, ROOT, Agent
from probe.subjects import Parts

Edit = tuple[str, str]
PAY = "INSERT OR IGNORE INTO payments (number, account, cents) VALUES ('KEY', 1, 12000)"
NOTE = "INSERT INTO notes (what) VALUES ('paid')"
HOOKED: dict[str, Sequence[Edit]] = {
    "openai_loop": (
        ("import openai\n", "import openai\nfrom hook import called\n"),
        (
            "await tools[call.function.name][1].call_tool(call.function.name, arguments)",
            "await called(call.function.name, arguments, tools[call.function.name][1].call_tool)",
        ),
    ),
    "langgraph": (
        ("from http_tool", "from hook import called\nfrom http_tool"),
        ("client.session(name)))", "client.session(name)), tool_interceptors=[intercept])"),
        (
            "\n\nasync def main",
            "\n\nasync def intercept(request, handler):\n"
            "    return await called(request.name, request.args, lambda name, args: handler(request.override(args=args)))\n"
            "\n\nasync def main",
        ),
    ),
    "openai_agents": (
        ("from http_tool", "from hook import called\nfrom http_tool"),
        ("                MCPServerStdio(", "                Careful("),
        ("name=name)", "name=name, client_session_timeout_seconds=60)"),
        (
            "\n\nasync def main",
            "\n\nclass Careful(MCPServerStdio):\n"
            "    async def call_tool(self, tool_name, arguments, *more, **rest):\n"
            "        return await called(tool_name, arguments, super().call_tool)\n"
            "\n\nasync def main",
        ),
    ),
    "ai_sdk": (
        ('from "ai";\n', 'from "ai";\nimport { called } from "./hook.ts";\n'),
        (
            "  const provider",
            "  const plain = { ...tools };\n"
            "  for (const name of Object.keys(plain))\n"
            "    tools[name] = { ...plain[name], execute: (words: any, more: any) =>\n"
            "      called(name, words, (_, given) => (plain[name] as any).execute(given, more)) } as any;\n"
            "  const provider",
        ),
    ),
}


@dataclass(frozen=True)
class Weakness:
    """What is edited, where it shows, and what must be blamed.

    hook, typescript, agent   edits of the journal's file, in Python and in TypeScript, and of the agent's last lines
    forgets                   whether the framework's own memory is left out
    keyless                   whether the tool does a key as often as it comes
    """

    name: str
    point: str
    blames: Sequence[Sequence[str]]
    hook: Sequence[Edit] = ()
    typescript: Sequence[Edit] = ()
    says_done: bool = False
    forgets: bool = False
    keyless: bool = False


FORGETS: Edit = ("    write(done)\n", "")
FORGETS_TS: Edit = ("  writeFileSync(JOURNAL, JSON.stringify(done));\n", "")
RENAMED: Edit = ('return "invoice-17"', 'return "bill-17"')
WEAKNESSES = (
    Weakness(
        "key",
        "write_query#1.unacknowledged",
        (("key",), ("memory",)),
        hook=(('return "invoice-17"', "return str(RANDOM())"),),
        typescript=(('return "invoice-17"', "return RANDOM()"),),
    ),
    Weakness(
        "memory",
        "write_query#2.acknowledged_next",
        (("key",), ("memory",)),
        hook=(FORGETS,),
        typescript=(FORGETS_TS,),
        forgets=True,
    ),
    Weakness(
        "client",
        "write_query#1.error",
        (("client",),),
        hook=(("        return answer\n    done", '        return text("ok")\n    done'),),
        typescript=(("    return answer;\n  done", '    return text("ok");\n  done'),),
    ),
    Weakness("reply", "#1.malformed", (("reply",),), says_done=True),
    Weakness("tool", "write_query#1.twice", (("tool",),), keyless=True),
    Weakness("harmless", "write_query#1.unacknowledged", (), hook=(RENAMED,), typescript=(RENAMED,)),
    Weakness(
        "harmless_beside_tool",
        "write_query#1.twice",
        (("tool",),),
        hook=(RENAMED, FORGETS),
        typescript=(RENAMED, FORGETS_TS),
        keyless=True,
    ),
)


@dataclass(frozen=True)
class Scored:
    """Whom the probe of an edited agent blamed.

    must      what has to be blamed: parts of a set joined by "+", sets by " or "; "" for nobody
    blamed    what the probe blamed, in this form; "no verdict" if it has none
    """

    agent: str
    weakness: str
    must: str
    blamed: str
    seconds: float

    @property
    def is_exact(self) -> bool:
        return self.blamed == self.must

    @property
    def is_harmless(self) -> bool:
        return self.weakness.startswith("harmless")

    @property
    def accuses(self) -> bool:
        """Whether somebody is blamed who has not to be."""
        return self.blamed != "no verdict" and not set(self.blamed.split(" or ")) - {""} <= set(self.must.split(" or "))


def lay_out(agent: Agent, weakness: Weakness, folder: Path, installed: Parts) -> Path:
    """Make a subject's folder anew, with the agent's code edited. Return its probe.toml."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _make_bank(folder / "bank.db", weakness.keyless)
    code = folder / "code"
    code.mkdir()
    is_python = agent.program == "python"
    edits = [*HOOKED[agent.name], *(_says_done(is_python) if weakness.says_done else ())]
    (code / agent.file).write_text(_edited((installed.agents / agent.file).read_text("utf-8"), edits), encoding="utf-8")
    shutil.copy(installed.agents / "http_tool.py", code)
    hook = "hook.py" if is_python else "hook.ts"
    text = (HERE / "blamed" / hook).read_text(encoding="utf-8")
    (code / hook).write_text(_edited(text, weakness.hook if is_python else weakness.typescript), encoding="utf-8")
    if not is_python:
        (code / "node_modules").symlink_to(installed.agents / "node_modules")
        (code / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    calls = [{"tool": "write_query", "arguments": {"query": query}} for query in (PAY, NOTE)]
    (folder / "script.toml").write_text(tomli_w.dumps({"calls": calls}), encoding="utf-8")
    server = {"command": installed.program("mcp-server-sqlite"), "args": ["--db-path", str(folder / "bank.db")]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"bank": server}}), encoding="utf-8")
    memory = str(folder / agent.memory) if agent.memory and not weakness.forgets else ""
    words = [installed.program(agent.program), str(code / agent.file), "mcp.json", "Pay the invoice."]
    words += [memory or ":memory:"] if agent.memory else []
    stores = [{"sqlite": str(folder / "bank.db")}, {"memory": str(folder / "journal.json")}]
    described = {
        "name": f"{agent.name}-{weakness.name}",
        "agent": words,
        "environment": {"OPENAI_API_KEY": "none", "JOURNAL": str(folder / "journal.json")},
        "mcp": "mcp.json",
        "said_done": "Done",
        "takes_copies": True,
        "limit": 60.0,
        "patience": 3.0,
        "store": [*stores, *([{"memory": memory}] if memory else [])],
        "model": {
            "script": [sys.executable, str(HERE / "script.py"), "{port}", str(folder / "script.toml")],
            "dialect": agent.dialect,
        },
    }
    path = folder / "probe.toml"
    path.write_text(tomli_w.dumps(described), encoding="utf-8")
    return path


def score(agent: Agent, weakness: Weakness, folder: Path, installed: Parts) -> Scored:
    """Probe an edited agent with the command, and return whom its record blames."""
    path, began = lay_out(agent, weakness, folder, installed), time.monotonic()
    words = ["bench", "probe", path.name, "--yes", "--only", weakness.point]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    (folder / "output.txt").write_text(done.stdout, encoding="utf-8")
    blamed = _blamed(folder / "results" / f"{folder.name}-probe")
    return Scored(agent.name, weakness.name, _written(weakness.blames), blamed, time.monotonic() - began)


def _blamed(folder: Path) -> str:
    try:
        probe = read_probe(folder)
    except ResultsError:
        return "no verdict"
    if not probe.with_verdict:
        return "no verdict"
    return _written(each for cell in probe.damaged_cells if cell.blame for each in cell.blame.minimal)


def _written(sets: Iterable[Iterable[str]]) -> str:
    return " or ".join(sorted({"+".join(sorted(map(str, each))) for each in sets}))


def _make_bank(path: Path, keyless: bool) -> None:
    key = "" if keyless else "UNIQUE"
    with closing(sqlite3.connect(path)) as bank, bank:
        bank.executescript(f"""
            CREATE TABLE payments (id INTEGER PRIMARY KEY, number TEXT {key}, account INTEGER, cents INTEGER);
            CREATE TABLE notes (id INTEGER PRIMARY KEY, what TEXT);
        """)


def _edited(text: str, edits: Sequence[Edit]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def _says_done(is_python: bool) -> Sequence[Edit]:
    """Return the edits by which an agent takes any end for the end of its task."""
    if is_python:
        new = "try:\n    print(asyncio.run(main()))\nexcept Exception:\n    print('Done.')\n"
        return (("print(asyncio.run(main()))\n", new),)
    return (("} finally {\n", "} catch {\n  console.log('Done.');\n} finally {\n"),)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m probe.blame", description=__doc__)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--workers", type=int, default=2, help="agents at a time")
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    parser.add_argument("--record", type=Path, default=ROOT / "reports" / "probe")
    asked = parser.parse_args(words)
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts.install(folder)
    installed = Parts(folder / parts.PYTHON, folder / parts.NODE, folder / "agents")
    pairs = [
        (agent, weakness)
        for weakness in WEAKNESSES
        for agent in AGENTS
        if (not asked.only or f"{agent.name}-{weakness.name}" in asked.only)
        and (agent.program != "tsx" or installed.node.exists())
    ]

    def scored(pair: tuple[Agent, Weakness]) -> Scored:
        name = f"{pair[0].name}-{pair[1].name}"
        each = score(*pair, folder / "blamed" / name, installed)
        how = "exact" if each.is_exact else "NOT exact"
        print(f"{name}: {how}: {each.blamed or 'nobody'}, {each.seconds:.0f} s", flush=True)
        return each

    with ThreadPoolExecutor(asked.workers) as pool:
        write(asked.record, Scored, list(pool.map(scored, pairs)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
