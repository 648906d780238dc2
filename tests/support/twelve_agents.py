"""Twelve agents that reach their files, processes and servers in ways that no word of a command tells, each with what it
writes outside of its stores. Each is a folder with `agent.py` and `probe.toml`, and a home beside it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

HERE = Path(__file__).parent
TABLES = "CREATE TABLE paid (id INTEGER PRIMARY KEY, cents INTEGER)"
PAYS = """
import os, sqlite3, subprocess, sys, tempfile, time
from pathlib import Path

def pay(cents):
    {body}

pay(120)
print("Paid.")
"""
DATABASE = """with sqlite3.connect({path!r}) as bank:
        bank.execute("INSERT INTO paid (cents) VALUES (?)", (cents,))
    bank.close()"""
SQLITE = 'functions = ["agent:pay"]\n[[store]]\nsqlite = "bank.db"\n'
POINTS = ("pay#1.lost", "pay#1.unacknowledged")
DAEMON = """if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.2)
            Path("daemon.txt").write_text("by a daemon")
            time.sleep(600)
        os._exit(0)
    time.sleep(0.4)"""
LOCKS = """bank = sqlite3.connect("bank.db", isolation_level=None)
    bank.execute("BEGIN EXCLUSIVE")
    bank.execute("INSERT INTO paid (cents) VALUES (?)", (cents,))
    time.sleep(0.3)
    bank.execute("COMMIT")
    time.sleep(0.3)
    bank.close()"""
RENAMES = """state = Path("state.json")
    half = state.with_suffix(".half")
    half.write_text(state.read_text().replace("]", f"{', ' if '{' in state.read_text() else ''}{{\\"cents\\": {cents}}}]"))
    os.replace(half, state)"""


@dataclass(frozen=True)
class BoxedAgent:
    """An agent.

    lay_out  makes its folder, beside a folder `home`, and returns its program and the rest of its probe.toml
    outside  what it writes outside of its stores, as the probe names it
    cells    what is struck
    needs    what has to be there besides
    """

    name: str
    lay_out: Callable[[Path, str], tuple[str, str]]
    outside: tuple[str, ...] = ()
    cells: tuple[str, ...] = POINTS
    needs: str = ""


def made(agent: BoxedAgent, base: Path, postgres: str = "") -> Path:
    """Make an agent's folder, and return it."""
    folder, home = base / "agent", base / "home"
    folder.mkdir()
    home.mkdir()
    with closing(sqlite3.connect(folder / "bank.db")) as bank:
        bank.executescript(TABLES)
    program, rest = agent.lay_out(folder, postgres)
    (folder / "agent.py").write_text(program)
    start = json.dumps([sys.executable, "agent.py"])
    (folder / "probe.toml").write_text(f"agent = {start}\nsettle = 0.05\npatience = 2.0\nlimit = 30.0\n{rest}")
    return folder


def digests(base: Path) -> Mapping[str, str]:
    """Return the digest of each file of an agent and its home, but for what a probe is meant to write."""
    return dict(_digests(base))


def _digests(base: Path) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(base):
        folders[:] = sorted(name for name in folders if name not in ("results", "reports", "state", "work"))
        for name in sorted((*folders, *files)):
            path = Path(parent, name)
            if path.is_symlink():
                yield str(path), f"-> {path.readlink()}"
            elif path.is_file():
                yield str(path), f"{path.stat().st_mode:o} {sha256(path.read_bytes()).hexdigest()}"
            else:
                yield str(path), "folder"


def _with(body: str, rest: str = SQLITE) -> Callable[[Path, str], tuple[str, str]]:
    def lay_out(folder: Path, _: str) -> tuple[str, str]:
        database = DATABASE.format(path=str(folder / "bank.db"))
        return PAYS.format(body=body.replace("DATABASE", database)), rest

    return lay_out


def _fixed_config(folder: Path, _: str) -> tuple[str, str]:
    server = {"command": sys.executable, "args": [str(HERE / "till_server.py"), "shop.db"]}
    return _till(folder, server)


def _till(folder: Path, server: Mapping[str, object]) -> tuple[str, str]:
    """Return an agent that opens its MCP config by a fixed name."""
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript("""
            CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
            CREATE TABLE payments (id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER, key TEXT);
            CREATE TABLE parcels (order_id TEXT PRIMARY KEY, account TEXT);
            INSERT INTO accounts VALUES ('ada', 100);
        """)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"till": server}}))
    program = (
        f"import runpy, sys\nsys.argv = ['till_agent.py', '.mcp.json', '']\nrunpy.run_path({str(HERE / 'till_agent.py')!r})\n"
    )
    return program, 'mcp = ".mcp.json"\n[[store]]\nsqlite = "shop.db"\n'


def _link(folder: Path, _: str) -> tuple[str, str]:
    (folder.parent / "home" / "ledger.txt").write_text("of the owner\n")
    (folder / "ledger.txt").symlink_to(folder.parent / "home" / "ledger.txt")
    return _with('DATABASE\n    with open("ledger.txt", "a") as ledger:\n        ledger.write("paid")')(folder, "")


def _by_socket(_: Path, postgres: str) -> tuple[str, str]:
    body = f"""import psycopg
    with psycopg.connect({postgres!r}) as shop:
        shop.execute("INSERT INTO paid (cents) VALUES (%s)", (cents,))"""
    return PAYS.format(body=body), f'functions = ["agent:pay"]\n[[store]]\npostgres = {json.dumps(postgres)}\n'


def _renames(folder: Path, _: str) -> tuple[str, str]:
    (folder / "state.json").write_text("[]")
    return PAYS.format(body=RENAMES), 'functions = ["agent:pay"]\n[[store]]\nfile = "state.json"\n'


def _by_npx(folder: Path, _: str) -> tuple[str, str]:
    package = folder.parent / "till-1.0.0.tgz"
    words = json.dumps([str(HERE / "till_server.py"), "shop.db"])
    with tarfile.open(package, "w:gz") as file:
        for name, text in {
            "package.json": json.dumps({"name": "till", "version": "1.0.0", "bin": {"till": "till.js"}}),
            "till.js": "#!/usr/bin/env node\nconst { spawnSync } = require('child_process');\n"
            f"process.exit(spawnSync({json.dumps(sys.executable)}, {words}, {{ stdio: 'inherit' }}).status);\n",
        }.items():
            item = tarfile.TarInfo(f"package/{name}")
            item.size, item.mode = len(text.encode()), 0o755
            file.addfile(item, BytesIO(text.encode()))
    return _till(folder, {"command": "npx", "args": ["--yes", "--offline", "--package", str(package), "till"]})


def _by_uvx(folder: Path, _: str) -> tuple[str, str]:
    wheel = folder.parent / "till-1.0-py3-none-any.whl"
    program = (HERE / "till_server.py").read_text()
    at = program.index("for line in")
    with ZipFile(wheel, "w") as file:
        lines = "".join(f"    {line}\n" for line in program[at:].splitlines())
        file.writestr("till.py", f"{program[:at]}def main():\n{lines}")
        file.writestr("till-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: till\nVersion: 1.0\n")
        file.writestr(
            "till-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr("till-1.0.dist-info/entry_points.txt", "[console_scripts]\ntill = till:main\n")
        file.writestr("till-1.0.dist-info/RECORD", "")
    words = ["--offline", "--python", sys.executable, "--from", str(wheel), "till", "shop.db"]
    return _till(folder, {"command": "uvx", "args": words})


SECOND = """DATABASE
    with sqlite3.connect(Path.home() / "second.db") as second:
        second.execute("CREATE TABLE IF NOT EXISTS seen (cents INTEGER)")
        second.execute("INSERT INTO seen VALUES (?)", (cents,))
    second.close()"""
PROCESS = """DATABASE
    code = "import pathlib; pathlib.Path('notes.txt').write_text('by a process')"
    subprocess.run([sys.executable, "-c", code], check=True)"""
TEMPORARY = """DATABASE
    Path("/tmp/of-the-agent").write_text("x")
    Path(tempfile.gettempdir(), "more").write_text("x")"""
CHARGES = ("charge#1.lost", "charge#1.unacknowledged")
AGENTS = (
    BoxedAgent("fixed_config", _fixed_config, cells=CHARGES),
    BoxedAgent("path_in_code", _with("DATABASE")),
    BoxedAgent("link", _link, ("~/ledger.txt",)),
    BoxedAgent("second_database", _with(SECOND), ("~/second.db",)),
    BoxedAgent("process", _with(PROCESS), ("notes.txt",)),
    BoxedAgent("temporary", _with(TEMPORARY)),
    BoxedAgent("postgres_by_socket", _by_socket, needs="postgres"),
    BoxedAgent("daemon", _with(f"DATABASE\n    {DAEMON}"), ("daemon.txt",)),
    BoxedAgent("npx", _by_npx, cells=CHARGES, needs="npx"),
    BoxedAgent("uvx", _by_uvx, cells=CHARGES, needs="uvx"),
    BoxedAgent("locks", _with(LOCKS)),
    BoxedAgent("renames", _renames),
)
