"""Probe an agent of each framework, and set our own SQL beside each verdict: `nox -s functions`.

python -m functions [FRAMEWORK ...] [clients] [--folder FOLDER] [--environments FOLDER]

Each framework gets an environment of its own. Its agent (`agents/`) is written as the framework's documentation does it, and
knows nothing of the probe. A model follows a script: it asks for a call again that failed. Where PostgreSQL's server is
installed, each agent is probed over it too, and so are `clients` of it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import venv
from contextlib import chdir, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import tomli_w
from reliability.kept import read, write
from with_postgres import postgres

from bench.common.errors import one_line
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import ProbeCell, cells_of
from bench.probe.run.clean import FIRST_CLEAN_RUNS, clean_of, objection
from bench.probe.run.gateway.loader.agent_door.frameworks import TOOL_PLACES
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.verdict import is_half_way, judge
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from functions.drivers import rows_of_clients
from functions.rows import ClientRows, FunctionCell

HERE = Path(__file__).resolve().parent
RECORD = HERE.parents[2] / "reports" / "probe"
SCRIPT = HERE.parent / "probe" / "script.py"
CALLS = [
    {"tool": "look", "arguments": {"order": "o-17"}},
    {"tool": "refund", "arguments": {"order": "o-17", "cents": 4500}},
    {"tool": "mail", "arguments": {"recipient": "ada@example.com", "text": "Your money is on its way."}},
]
CELLS = ("refund#1.lost", "refund#1.unacknowledged", "refund#1.acknowledged", "refund#1.killed_before", "refund#1.error")
NAMED = ("shop:look", "shop:refund", "shop:mail")
OTHERS = ("refund#1.resumed_twice", "mail#1.lost", "look#1.error")
COUNT = """
import sqlite3, sys
if "://" in sys.argv[1]:
    import psycopg
    shop = psycopg.connect(sys.argv[1])
else:
    shop = sqlite3.connect(sys.argv[1])
print(*shop.execute("SELECT (SELECT count(*) FROM refunds), (SELECT sum(cents) FROM refunds), (SELECT count(*) FROM mails)"))
"""
SHOP = """
CREATE TABLE orders (id TEXT PRIMARY KEY, cents INTEGER);
CREATE TABLE refunds (id {serial} PRIMARY KEY, order_id TEXT, cents INTEGER);
CREATE TABLE mails (id {serial} PRIMARY KEY, recipient TEXT, text TEXT);
INSERT INTO orders VALUES ('o-17', 4500);
"""
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
QUIET = {
    "OPENAI_API_KEY": "none",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
"""No agent sends anything to its maker."""


@dataclass(frozen=True)
class Framework:
    """A framework, and the packages beside it that its agent needs, all in the versions that were tried. `cells` are struck, by
    the ends of their names; and others where a service pays. `keeps`: the kind of store for what its agent keeps itself, if it
    does. `functions` are named in the file, where no place in the framework is the door."""

    name: str
    beside: tuple[str, ...] = ()
    dialect: str = "chat"
    modules: tuple[str, ...] = field(default=(), kw_only=True)
    cells: tuple[str, ...] = field(default=(*CELLS, *OTHERS), kw_only=True)
    at_a_service: tuple[str, ...] = field(default=("refund#1.in_flight",), kw_only=True)
    keeps: str = field(default="", kw_only=True)
    functions: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def tried(self) -> str:
        """The distribution with its version, as the loader's table has it."""
        return next(place.tried for place in TOOL_PLACES if place.module.startswith(self.modules or (self.name,)))


def _report(name: str, module: str, cell: str, beside: tuple[str, ...] = (), **more: Any) -> Framework:
    """Return an agent that does what others report, of which one cell is struck."""
    return Framework(name, beside, modules=(module,), cells=(cell,), at_a_service=(), **more)


OF_LANGGRAPH = ("langchain==1.5.2", "langgraph==1.2.24", "langchain-openai")
OF_AUTOGEN = ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5")
FRAMEWORKS = (
    Framework("langgraph", OF_LANGGRAPH, modules=("langchain_core",)),
    Framework("openai_agents", (), "responses", modules=("agents",)),
    Framework("pydantic_ai", ("openai",)),
    Framework("autogen", OF_AUTOGEN, modules=("autogen_core",)),
    Framework("crewai"),
    Framework("smolagents"),
    Framework("llama_index", ("llama-index-llms-openai",)),
    Framework("google_adk", ("litellm",), modules=("google.adk",)),
    Framework("strands", ("openai",)),
    Framework("agno", ("openai",)),
    Framework("haystack"),
    Framework("agent_framework", ("agent-framework-openai",)),
    _report("crewai_7449", "crewai", "refund#1.lost"),
    _report("agent_framework_3938", "agent_framework", "mail#1.killed_before", ("agent-framework-openai",), keeps="STATE"),
    _report("openai_agents_4244", "agents", "refund#1.acknowledged", dialect="responses", keeps="STATE"),
    _report("agno_10366", "agno", "#3.model_error", ("openai",)),
    _report("autogen_6207", "autogen_core", "mail#1.error", OF_AUTOGEN, functions=NAMED),
    _report("langgraph_7417", "langchain_core", "refund#1.lost.silence", OF_LANGGRAPH),
)
"""The last six are what others report."""


def lay_out(framework: Framework, folder: Path, python: Path, server: str, *, served: bool) -> Path:
    """Make a subject's folder anew, with a service that pays if refunds are `served`, and with a shop on a `server` of
    PostgreSQL if there is one. Return its probe.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    shop = make_shop(folder, server)
    (folder / "script.toml").write_text(tomli_w.dumps({"calls": CALLS}), encoding="utf-8")
    (folder / "count.py").write_text(COUNT, encoding="utf-8")
    agent = [str(python), str(HERE / "agents" / f"with_{framework.name}.py")]
    stores = [{"postgres" if server else "sqlite": shop, "variable": "SHOP"}]
    described: dict[str, Any] = {
        "name": framework.name,
        "agent": agent,
        "resume": [*agent, "again"],
        "environment": {**QUIET, "PYTHONPATH": str(HERE / "agents")},
        "said_done": "Done",
        "reads": ["function.look"],
        "limit": 300.0,
        "patience": 5.0,
        "store": stores,
        "model": {
            "variables": ["OPENAI_BASE_URL", "OPENAI_API_BASE"],
            "script": [sys.executable, str(SCRIPT), "{port}", str(folder / "script.toml")],
            "dialect": framework.dialect,
        },
        "check": [{"command": [sys.executable, str(folder / "count.py"), shop]}],
    }
    if framework.keeps:
        kept = folder / "state"
        shutil.rmtree(kept, ignore_errors=True)
        kept.unlink(missing_ok=True)
        stores += [{"memory": "state", "variable": framework.keeps}]
    if framework.functions:
        described["functions"] = list(framework.functions)
    if served:
        command = [sys.executable, str(HERE / "service.py"), "{port}", shop]
        service = {"name": "refunds", "variable": "REFUNDS", "url": "http://127.0.0.1:{port}", "command": command}
        described |= {"functions": [], "service": [service]}
    (folder / "probe.toml").write_text(tomli_w.dumps(described), encoding="utf-8")
    return folder / "probe.toml"


def make_shop(folder: Path, server: str) -> str:
    """Make a shop's database anew. Return its path, or its address on a server of PostgreSQL."""
    if server:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as session:
            session.execute("DROP DATABASE IF EXISTS shop")
            session.execute("CREATE DATABASE shop")
        with psycopg.connect(f"{server}/shop") as session:
            session.execute(SHOP.format(serial="serial").encode())
        return f"{server}/shop"
    (folder / "shop.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.executescript(SHOP.format(serial="INTEGER"))
    return str(folder / "shop.db")


def environment(framework: Framework, folder: Path) -> Path:
    """Return the Python of a framework's environment, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        wanted = [framework.tried.replace(" ", "=="), *framework.beside, "psycopg[binary]"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


async def rows_of(
    framework: Framework, folder: Path, python: Path, ends: tuple[str, ...], server: str = "", *, served: bool = False
) -> list[FunctionCell]:
    """Return a row for each cell of an agent whose name ends so. Raises ConfigError if it cannot be probed."""
    settings, store = ProbeSettings(lay_out(framework, folder, python, server, served=served)), POSTGRES if server else SQLITE
    subject, hidden = settings.subject, Secrets.of(settings.subject, os.environ)
    stores = Stores.of(settings.stores, folder, subject.settle, subject.hide, b"")
    async with Worker(subject, stores, PrivateFolder(folder, "worker"), hidden) as worker:
        agent_runs = [
            await worker.run(Masks(), one_by_one=number == FIRST_CLEAN_RUNS - 1) for number in range(FIRST_CLEAN_RUNS)
        ]
        for number, agent_run in enumerate(agent_runs, 1):
            if why := objection(agent_run, number, has_check=False):
                raise SystemExit(f"{framework.name}: {why}")
        clean, rows = clean_of(agent_runs), list[FunctionCell]()

        async def struck(cell: ProbeCell) -> AgentRun:
            half_way = partial(is_half_way, clean)
            return name_calls(await worker.run(clean.masks, cell.fault, half_way=half_way, name=cell.plan), clean.calls)

        for cell in cells_of(clean, subject, all_forms=any(end.count(".") > 1 for end in ends)):
            if cell.plan.endswith(ends):
                agent_run = await struck(cell)
                judged = judge(clean, agent_run, cell.call, cell.point, cell.form)
                refunds, cents, mails = counted(framework, cell, agent_run)
                plan = cell.plan.removeprefix("function.")
                counts = int(refunds), cents, int(mails)
                row = FunctionCell(framework.name, framework.tried, store, plan, judged.verdict, *counts, agent_run.said_done)
                rows.append(row)
                print(f"{framework.name}, {store}, {plan}: {row.verdict}; SQL: {refunds}, {cents}, {mails}", flush=True)
    if not rows:
        raise SystemExit(f"{framework.name}: it has no cell that ends with {' or '.join(ends)}")
    return rows


def counted(framework: Framework, cell: ProbeCell, agent_run: AgentRun) -> list[str]:
    """Return the refunds, their cents and the mails that our own SQL counted at the end of a run."""
    answer = agent_run.texts[agent_run.checks[0]]
    words = answer.splitlines()[-1].strip("()").split(", ")
    if len(words) != 3:
        raise SystemExit(f"{framework.name} {cell.plan}: the count of rows failed: {one_line(answer, 300)}")
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK")
    parser.add_argument("--folder", type=Path, default=Path("build/functions"))
    parser.add_argument("--environments", type=Path, help="where their environments are, or are made")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    environments = (asked.environments or folder / "environments").resolve()
    wrong = list[str]()
    with postgres(folder) as server:
        for framework in FRAMEWORKS:
            if not asked.frameworks or framework.name in asked.frameworks:
                wrong += probed(framework, folder, environments, server)
    if server and (not asked.frameworks or "clients" in asked.frameworks):
        with postgres(folder, tls=True) as server:
            clients = rows_of_clients(environments / "clients", server)
        wrong += [f"{row.client} with sslmode={row.mode} prints other rows" for row in clients if not row.equal]
        write(RECORD, ClientRows, sorted(clients, key=lambda row: (row.client.lower(), row.mode)))
    print("\n".join(wrong) or "each verdict is what the rows say, and each client's rows are equal")
    return 1 if wrong else 0


def probed(framework: Framework, folder: Path, environments: Path, server: str) -> list[str]:
    """Probe an agent and keep its rows. Return what differs from our own SQL, a line each."""
    python, subject = environment(framework, environments / framework.name.partition("_")[0]), folder / framework.name
    subject.mkdir(parents=True, exist_ok=True)
    with chdir(subject):
        made = asyncio.run(rows_of(framework, subject, python, framework.cells))
        if framework.at_a_service:
            made += asyncio.run(rows_of(framework, subject, python, framework.at_a_service, served=True))
            if server:
                made += asyncio.run(rows_of(framework, subject, python, framework.cells, server))
    others = [row for row in read(RECORD, FunctionCell) if row.framework != framework.name]
    write(RECORD, FunctionCell, sorted([*others, *made], key=lambda row: (row.framework, row.store != SQLITE)))
    return [f"{row.framework}, {row.store}, {row.cell}: {row.verdict}, and the rows say another" for row in made if row.differs]


if __name__ == "__main__":
    sys.exit(main())
