"""Probe an agent of each framework, and set our own SQL beside each verdict: `nox -s functions`.

python -m functions [FRAMEWORK ...] [--folder FOLDER] [--environments FOLDER]

Each framework gets an environment of its own. Its agent (`agents/`) is written as the framework's documentation does it, and
knows nothing of the probe. A model follows a script: it asks for a call again that failed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import subprocess
import sys
import venv
from contextlib import chdir, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import tomli_w
from reliability.kept import read, write

from bench.common.errors import one_line
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import ProbeCell, cells_of
from bench.probe.run.clean import FEWEST, clean_of, objection
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.loader.agent_door.frameworks import PLACES
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.verdict import is_half_way, judge
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.place import Place
from bench.probe.run.witness.stores import Stores
from functions.rows import FunctionCell

HERE = Path(__file__).resolve().parent
RECORD = HERE.parents[1] / "reports" / "probe"
SCRIPT = HERE.parent / "probe" / "script.py"
CALLS = [
    {"tool": "look", "arguments": {"order": "o-17"}},
    {"tool": "refund", "arguments": {"order": "o-17", "cents": 4500}},
    {"tool": "mail", "arguments": {"recipient": "ada@example.com", "text": "Your money is on its way."}},
]
CELLS = ("refund#1.lost", "refund#1.unacknowledged", "refund#1.acknowledged", "refund#1.killed_before", "refund#1.error")
OTHERS = ("refund#1.resumed_twice", "mail#1.lost", "look#1.error")
COUNT = """
import sqlite3, sys
shop = sqlite3.connect(sys.argv[1])
print(*shop.execute("SELECT (SELECT count(*) FROM refunds), (SELECT sum(cents) FROM refunds), (SELECT count(*) FROM mails)"))
"""
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
    the ends of their names; and others where a service pays. `remembers`: its agent keeps a state of its own."""

    name: str
    beside: tuple[str, ...] = ()
    dialect: str = "chat"
    modules: tuple[str, ...] = field(default=(), kw_only=True)
    cells: tuple[str, ...] = field(default=(*CELLS, *OTHERS), kw_only=True)
    at_a_service: tuple[str, ...] = field(default=("refund#1.in_flight",), kw_only=True)
    remembers: bool = field(default=False, kw_only=True)

    @property
    def tried(self) -> str:
        """The distribution with its version, as the loader's table has it."""
        return next(place.tried for place in PLACES if place.module.startswith(self.modules or (self.name,)))


FRAMEWORKS = (
    Framework("langgraph", ("langchain==1.5.2", "langgraph==1.2.24", "langchain-openai"), modules=("langchain_core",)),
    Framework("openai_agents", (), "responses", modules=("agents",)),
    Framework("pydantic_ai", ("openai",)),
    Framework("autogen", ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"), modules=("autogen_core",)),
    Framework("crewai"),
    Framework("smolagents"),
    Framework("llama_index", ("llama-index-llms-openai",)),
    Framework("google_adk", ("litellm",), modules=("google.adk",)),
    Framework("strands", ("openai",)),
    Framework("agno", ("openai",)),
    Framework("haystack"),
    Framework("agent_framework", ("agent-framework-openai",)),
    Framework("agno_10366", ("openai",), modules=("agno",), cells=("#3.model_error",), at_a_service=()),
    Framework(
        "openai_agents_4244",
        (),
        "responses",
        modules=("agents",),
        cells=("refund#1.acknowledged",),
        at_a_service=(),
        remembers=True,
    ),
    Framework("crewai_7449", modules=("crewai",), cells=("refund#1.lost",), at_a_service=()),
)
"""The last three are what others report."""


def lay_out(framework: Framework, folder: Path, python: Path, *, served: bool) -> Path:
    """Make a subject's folder anew, with a service that pays if refunds are `served`. Return its probe.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.executescript("""
            CREATE TABLE orders (id TEXT PRIMARY KEY, cents INTEGER);
            CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id TEXT, cents INTEGER);
            CREATE TABLE mails (id INTEGER PRIMARY KEY, recipient TEXT, text TEXT);
            INSERT INTO orders VALUES ('o-17', 4500);
        """)
    (folder / "script.toml").write_text(tomli_w.dumps({"calls": CALLS}), encoding="utf-8")
    (folder / "count.py").write_text(COUNT, encoding="utf-8")
    agent = [str(python), str(HERE / "agents" / f"with_{framework.name}.py")]
    stores = [{"sqlite": "shop.db", "variable": "SHOP"}]
    described = {
        "name": framework.name,
        "agent": agent,
        "resume": [*agent, "again"],
        "environment": QUIET,
        "said_done": "Done",
        "reads": ["function.look"],
        "limit": 120.0,
        "patience": 5.0,
        "store": stores,
        "model": {
            "variables": ["OPENAI_BASE_URL", "OPENAI_API_BASE"],
            "script": [sys.executable, str(SCRIPT), "{port}", str(folder / "script.toml")],
            "dialect": framework.dialect,
        },
        "check": [{"command": [sys.executable, str(folder / "count.py"), str(folder / "shop.db")]}],
    }
    if framework.remembers:
        (folder / "state.json").unlink(missing_ok=True)
        stores += [{"memory": "state.json", "variable": "STATE"}]
    if served:
        command = [sys.executable, str(HERE / "service.py"), "{port}", str(folder / "shop.db")]
        service = {"name": "refunds", "variable": "REFUNDS", "url": "http://127.0.0.1:{port}", "command": command}
        described |= {"functions": [], "service": [service]}
    (folder / "probe.toml").write_text(tomli_w.dumps(described), encoding="utf-8")
    return folder / "probe.toml"


def environment(framework: Framework, folder: Path) -> Path:
    """Return the Python of a framework's environment, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        wanted = [framework.tried.replace(" ", "=="), *framework.beside]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


async def rows_of(
    framework: Framework, folder: Path, python: Path, ends: tuple[str, ...], *, served: bool
) -> list[FunctionCell]:
    """Return a row for each cell of an agent whose name ends so. Raises ConfigError if it cannot be probed."""
    settings = ProbeSettings(lay_out(framework, folder, python, served=served))
    subject, hidden = settings.subject, Secrets.of(settings.subject, os.environ)
    stores = Stores.of(settings.stores, folder, subject.settle, subject.hide, b"")
    async with Worker(subject, stores, Place(folder, "worker"), hidden) as worker:
        courses = [await worker.run(Masks(), one_by_one=number == FEWEST - 1) for number in range(FEWEST)]
        for number, course in enumerate(courses, 1):
            if why := objection(course, number, checked=False):
                raise SystemExit(f"{framework.name}: {why}")
        clean, rows = clean_of(courses), list[FunctionCell]()

        async def struck(cell: ProbeCell) -> AgentCourse:
            half_way = partial(is_half_way, clean)
            return name_calls(await worker.run(clean.masks, cell.strike, half_way=half_way, name=cell.plan), clean.calls)

        for cell in cells_of(clean, subject):
            if cell.plan.endswith(ends):
                course = await struck(cell)
                judged = judge(clean, course, cell.call, cell.point, cell.form)
                refunds, cents, mails = counted(framework, cell, course)
                plan = cell.plan.removeprefix("function.")
                counts = int(refunds), cents, int(mails)
                row = FunctionCell(framework.name, framework.tried, plan, judged.verdict, *counts, course.said_done)
                rows.append(row)
                print(f"{framework.name} {plan}: {row.verdict}; SQL: {refunds}, {cents}, {mails}", flush=True)
    return rows


def counted(framework: Framework, cell: ProbeCell, course: AgentCourse) -> list[str]:
    """Return the refunds, their cents and the mails that our own SQL counted at the end of a run."""
    answer = course.texts[course.checks[0]]
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
    rows, wrong = read(RECORD, FunctionCell), list[str]()
    for framework in FRAMEWORKS:
        if asked.frameworks and framework.name not in asked.frameworks:
            continue
        place = (asked.environments or folder / "environments").resolve() / framework.name.partition("_")[0]
        python = environment(framework, place)
        subject = folder / framework.name
        subject.mkdir(parents=True, exist_ok=True)
        with chdir(subject):
            made = asyncio.run(rows_of(framework, subject, python, framework.cells, served=False))
            if framework.at_a_service:
                made += asyncio.run(rows_of(framework, subject, python, framework.at_a_service, served=True))
        wrong += [f"{row.framework} {row.cell}: {row.verdict}, and the rows say another" for row in made if row.differs]
        rows = [*(row for row in rows if row.framework != framework.name), *made]
        write(RECORD, FunctionCell, sorted(rows, key=lambda row: row.framework))
    print("\n".join(wrong) or "each verdict is what the rows say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
