"""A watched run shows what a `probe.toml` has to name, and changes nothing of its owner's."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from till import HERE, till

from bench.probe.run.agent_run import AgentRun
from bench.probe.run.box.box import NoBox
from bench.probe.run.box.frameworks import FileForm
from bench.probe.run.found import watched_tables
from bench.probe.run.gateway.loader.agent_door.acting import stamp
from bench.probe.run.init import AgentDraft, draft_of, write_probe_file
from bench.probe.run.probe_file import ProbeFile
from bench.probe.run.secrets import Secrets
from bench.probe.run.watch import WatchedFile, WatchedRun, watch
from bench.record.probe_events import GatewayCall

SESSIONS = """
    CREATE TABLE agent_sessions (session_id TEXT); CREATE TABLE agent_messages (message_data TEXT);
    CREATE TABLE bills (cents INTEGER)
"""


class Answers(BaseHTTPRequestHandler):
    """A model and a service, both of which answer an empty object."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class Written:
    """A file that `--init` wrote: its text and values; the run, the address of its servers, and a database elsewhere."""

    text: str
    values: dict[str, Any]
    run: WatchedRun
    url: str
    elsewhere: str

    def why(self, begins: str) -> str:
        """The comment of the line that begins so."""
        (line,) = [line for line in self.text.splitlines() if line.startswith(begins)]
        return line.rpartition("  # ")[2]


def watched(draft: AgentDraft, environment: dict[str, str]) -> WatchedRun:
    subject, databases = draft.watched_subject(unasked=True)
    try:
        return asyncio.run(watch(subject, databases, draft.further_data, Secrets(()), environment))
    except NoBox as error:
        pytest.skip(f"there is no box here: {error}")


def database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(script)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "probe.toml"}


@pytest.fixture(scope="module")
def clerk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """The file on an agent that uses all that can be seen."""
    folder, home = tmp_path_factory.mktemp("clerk"), tmp_path_factory.mktemp("home")
    till(folder, "")
    (folder / "clerk.py").write_bytes((HERE / "clerk.py").read_bytes())
    database(folder / "mixed.db", SESSIONS)
    database(folder / "read.db", "CREATE TABLE bills (cents INTEGER)")
    for name, text in (("notes/ledger.txt", "rent 800\n"), ("desk/draft.txt", "Dear Ada")):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    database(elsewhere := tmp_path_factory.mktemp("elsewhere") / "far.db", "CREATE TABLE bills (cents INTEGER)")
    before = {**content(folder), **content(elsewhere.parent)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    (folder / ".env").write_text(f'OPENAI_BASE_URL="{url}/v1"\n')
    environment = {**os.environ, "HOME": str(home), "SHOP_URL": url}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        draft = draft_of(folder, environment, home, (sys.executable, "clerk.py", ".mcp.json", str(elsewhere)))
        run = watched(draft, environment)
    server.shutdown()
    server.server_close()
    (folder / ".env").unlink()
    assert {**content(folder), **content(elsewhere.parent)} == before, "it worked on copies"
    assert [*home.iterdir()] == []
    text = write_probe_file(folder / "probe.toml", watched_tables(draft, run), run.summary)
    yield Written(text, tomllib.loads(text), run, url, str(elsewhere))


def test_the_run_came_to_its_end_and_the_file_is_one(clerk: Written) -> None:
    assert clerk.run.is_whole, clerk.run.summary
    assert ProbeFile.model_validate(clerk.values).agent == f"{sys.executable} clerk.py .mcp.json {clerk.elsewhere}"


def test_the_stores_are_what_changed_each_by_its_kind(clerk: Written) -> None:
    stores = [store for store in clerk.values["store"] if "memory" not in store]
    assert sorted(stores, key=str) == sorted(
        [
            {"sqlite": "shop.db"},
            {"sqlite": "mixed.db", "ignore": ["agent_messages", "agent_sessions"]},
            {"file": "notes/ledger.txt"},
            {"folder": "desk"},
            {"sqlite": clerk.elsewhere},
        ],
        key=str,
    )


def test_what_frameworks_keep_is_memory(clerk: Written) -> None:
    assert {store["memory"] for store in clerk.values["store"] if "memory" in store} == {"thread.db", "state.json"}
    assert "LangGraph's checkpoints" in clerk.why('memory = "thread.db"') and "AutoGen" in clerk.why('memory = "state.json"')


def test_what_no_store_can_be_is_a_comment_that_says_why(clerk: Written) -> None:
    assert "makes this database itself" in clerk.why('# [[store]] sqlite = "made.db"')
    assert "did not change" in clerk.why('# [[store]] sqlite = "read.db"')
    assert "report.txt" in clerk.text and '"~/.cache/page.html"' in clerk.text and "~/.clerk/state/known.txt" in clerk.text


def test_servers_services_and_the_model_are_told_with_their_calls(clerk: Written) -> None:
    assert clerk.values["mcp"] == ".mcp.json" and "till got 3 calls" in clerk.why("mcp = ")
    assert clerk.values["service"] == [{"name": "shop", "variable": "SHOP_URL", "url": "$SHOP_URL"}]
    assert clerk.values["model"] == {"variables": ["OPENAI_BASE_URL"], "url": f"{clerk.url}/v1", "dialect": "responses"}
    assert "1 request to /responses at 127.0.0.1" in clerk.why("variables = ")


def test_a_server_that_the_agents_code_starts_is_told_and_no_other_program(clerk: Written) -> None:
    (line,) = clerk.run.seen["served"]
    assert "a server of its own" in line and f"it started {sys.executable} itself" in clerk.why('# mcp = "FILE"')


def test_a_tool_that_the_model_is_offered_and_the_code_defines_is_a_function(clerk: Written) -> None:
    assert clerk.values["functions"] == ["clerk:refund"]


def test_what_changed_no_store_is_no_read_by_that_alone(clerk: Written) -> None:
    assert "reads" not in clerk.values  # `balance` claims it, and `ring` may act where no witness looks
    assert '"till.ring"' in clerk.text and '"shop.POST /payments"' in clerk.text
    assert "till.balance" not in clerk.text and "till.charge" not in clerk.text


def test_a_host_that_was_refused_is_told_with_what_to_write(clerk: Written) -> None:
    assert 'remote = ["far.invalid"]' in clerk.why('# "far.invalid:443"')
    assert clerk.run.agent_run.refused == ("far.invalid:443",)


INSERTS = """
import os
import psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as shop:
    shop.execute("INSERT INTO payments VALUES (1)")
"""


def test_a_database_on_a_server_is_watched_in_a_copy(tmp_path: Path, server: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    words = dict(word.split("=") for word in server.split())
    address = f"postgresql://tester@/watched?host={words['host']}&port={words.get('port', '5432')}"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as made:
        made.execute("CREATE DATABASE watched")
    with psycopg.connect(address) as shop:
        shop.execute("CREATE TABLE payments (id integer PRIMARY KEY)")
    (tmp_path / "agent.py").write_text(INSERTS)
    environment = {**os.environ, "DATABASE_URL": address}
    draft = draft_of(tmp_path, environment, tmp_path, (sys.executable, "agent.py"))
    run = watched(draft, environment)
    text = write_probe_file(tmp_path / "probe.toml", watched_tables(draft, run), run.summary)
    assert run.is_whole and not run.changed, run.summary
    assert tomllib.loads(text)["store"] == [{"postgres": "$DATABASE_URL"}] and "its rows changed" in text
    with psycopg.connect(address) as shop:
        assert shop.execute("SELECT count(*) FROM payments").fetchone() == (0,)


def agent_run(**times: tuple[float, float]) -> AgentRun:
    """A run of the agent with functions that begin and end at these seconds, and with a service named `shop`."""
    calls = []
    for number, (name, (arrived, answered)) in enumerate(times.items(), 1):
        door, tool = ("SHOP_URL", "POST /payments") if name == "shop" else ("function", name)
        kind = "http" if name == "shop" else "function"
        calls.append(
            GatewayCall(number, "", door, kind, tool, "unseen", None, "", None, 1, "", arrived, arrived, answered, answered)
        )
    return AgentRun(tuple(calls), ("",) * len(calls), ())


def test_a_function_that_only_calls_a_service_is_none_of_the_agents_own(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, {"SHOP_URL": "http://127.0.0.1:9"}, tmp_path, ("python", "agent.py"))
    run = WatchedRun(agent_run(look=(1.0, 2.0), pay=(3.0, 5.0), shop=(4.0, 4.5)), [])
    text = write_probe_file(tmp_path / "look.toml", watched_tables(draft, run))
    assert tomllib.loads(text)["functions"] == [] and "function.pay" not in text and '"function.look"' in text
    run = WatchedRun(agent_run(pay=(3.0, 5.0), shop=(4.0, 4.5)), [])
    assert "functions" not in tomllib.loads(write_probe_file(tmp_path / "pay.toml", watched_tables(draft, run)))


def seen_lines(folder: Path, **seen: list[str]) -> str:
    """Return the file of a run of which processes told this."""
    draft = draft_of(folder, {}, folder, ("python", "agent.py"))
    notes = WatchedFile(folder / "notes.txt", True, True, FileForm())
    return write_probe_file(folder / "probe.toml", watched_tables(draft, WatchedRun(AgentRun((), (), ()), [notes], seen)))


def test_of_a_server_that_the_code_starts_the_program_and_its_script_are_written_and_no_key(tmp_path: Path) -> None:
    key = "--dsn postgres://app:hunter2hunter2@h/db"
    text = seen_lines(tmp_path, served=[f"/usr/bin/python3 -u shop/serve.py {key}", f"npx -y server {key}", "un'closed"])
    assert "hunter2" not in text and "it started /usr/bin/python3 shop/serve.py itself" in text
    assert "it started npx itself" in text and "it started a program itself" in text


@pytest.mark.parametrize("told", ["x", "1", "{}", '["a"]', '["a", 1]', '["a", "b", "c"]', "[" * 100_000])
def test_what_a_process_tells_wrongly_of_a_function_is_skipped(tmp_path: Path, told: str) -> None:
    assert "no tool of a known framework was executed" in seen_lines(tmp_path, acted=[told])


ACTS = """
import asyncio, sqlite3, threading
from desk import Desk
db = sqlite3.connect("bank.db", isolation_level=None, check_same_thread=False)
def insert(cents): db.execute("INSERT INTO payment VALUES (?)", (cents,))
def pay(cents):
    look()
    insert(cents)
    look()
def look(): return db.execute("SELECT sum(cents) FROM payment").fetchone()
def log(): open("run.log", "a").write("paid")
async def refund():
    await asyncio.sleep(0)
    db.execute("DELETE FROM payment WHERE cents = 7")
def main():
    pay(7)
    asyncio.run(refund())
    thread = threading.Thread(target=fees)
    thread.start()
    thread.join()
    Desk().note("Ada")
    log()
def fees(): insert(1)
main()
"""
DESK = """
from pathlib import Path
class Desk:
    def note(self, text): Path("notes.txt").write_text(text)
"""


def test_a_named_pipe_is_not_opened_to_see_what_changes(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (tmp_path / "file").write_text("a")
    stamps = list[object]()
    looking = Thread(target=lambda: stamps.append(stamp(str(pipe))), daemon=True)
    looking.start()
    looking.join(5)
    assert stamps == [None] and stamp(str(tmp_path / "file")) is not None


def functions_line(folder: Path, code: str) -> list[str]:
    """Return the lines on functions that a watched run of this code leads to."""
    (folder / "agent.py").write_text(code)
    (folder / "desk.py").write_text(DESK)
    (folder / "notes.txt").write_text("")
    database(folder / "bank.db", "CREATE TABLE payment (cents INTEGER)")
    draft = draft_of(folder, {**os.environ}, folder / "home", (sys.executable, "agent.py"))
    text = write_probe_file(folder / "probe.toml", watched_tables(draft, watched(draft, {**os.environ})), "")
    return [line.partition("  # ")[0] for line in text.splitlines() if "functions = " in line]


def test_the_agents_own_functions_during_which_a_store_changes_are_named_and_no_others(tmp_path: Path) -> None:
    named = 'functions = ["__main__:insert", "__main__:refund", "desk:Desk.note"]'
    assert functions_line(tmp_path, ACTS) == [named]


def test_a_script_that_acts_outside_of_functions_is_told_to_put_that_into_one(tmp_path: Path) -> None:
    code = 'import sqlite3\ndb = sqlite3.connect("bank.db")\nwith db: db.execute("INSERT INTO payment VALUES (1)")\n'
    assert functions_line(tmp_path, code) == ['# functions = ["MODULE:FUNCTION"]']
