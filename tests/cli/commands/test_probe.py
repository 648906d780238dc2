"""`bench probe`, as a person types it: on an agent, a server and a database that lie in a folder."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Ended, bench, start

from bench.record.reading import read_trials
from bench.record.verify import verify

SUPPORT = Path(__file__).parents[2] / "support"
KNOWN = ("OWNER_WORD", "SERVER_WORD", "OPENAI_API_KEY", "HEADER", "COOKIE", "URL", "DSN", "WORD")
WORDS = {**{name: f"canary-{name.lower()}-{'x' * place}" for place, name in enumerate(KNOWN)}, "PIN": "4711"}
SHOP = """
    CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
    CREATE TABLE payments (id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER, key TEXT);
    CREATE TABLE parcels (order_id TEXT PRIMARY KEY, account TEXT);
    INSERT INTO accounts VALUES ('ada', 100);
"""


def subject(folder: Path, name: str, program: str, database: str, *words: str, more: str = "") -> Path:
    """Lay an agent's config, its database and its `probe.toml` into a folder."""
    with closing(sqlite3.connect(folder / "orders.db")) as made, made:
        made.executescript(database)
    server = {
        "command": sys.executable,
        "args": [str(SUPPORT / program), "orders.db", "serve"],
        "env": {"SERVER_WORD": WORDS["SERVER_WORD"]},
    }
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {name: server}}))
    agent = json.dumps([sys.executable, *words])
    (folder / "probe.toml").write_text(
        f'agent = {agent}\nmcp = ".mcp.json"\nname = "{name}"\nsettle = 0.02\npatience = 2.0\n'
        f'{more}[[store]]\nsqlite = "orders.db"\n'
    )
    return folder


def till(folder: Path, mode: str = "again") -> Path:
    return subject(folder, "till", "till_server.py", SHOP, str(SUPPORT / "till_agent.py"), ".mcp.json", mode)


def notes(folder: Path) -> Path:
    """A subject that knows what is secret, and says it wherever it can."""
    database = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, pin TEXT);"
    words = (str(SUPPORT / "notes_agent.py"), ".mcp.json", f"--token={WORDS['WORD']}")
    more = f'hide = ["pin"]\nenvironment = {{ DSN = "postgresql://me:{WORDS["DSN"]}@host/db" }}\n'
    subject(folder, "notes", "notes_agent.py", database, *words, more=more)
    config = json.loads((folder / ".mcp.json").read_text())
    headers = {"Authorization": f"Bearer {WORDS['HEADER']}", "Cookie": f"session={WORDS['COOKIE']}"}
    config["mcpServers"]["far"] = {"url": f"http://127.0.0.1:9/mcp?key={WORDS['URL']}", "headers": headers}
    (folder / ".mcp.json").write_text(json.dumps(config))
    return folder


def left(folder: Path) -> list[str]:
    """What a probe left of its work."""
    return [path.name for path in folder.glob("recovery-bench-probe-*")]


def test_an_agent_that_pays_twice_is_found_and_its_run_is_like_any_other(tmp_path: Path) -> None:
    folder, before = till(tmp_path), None
    before = (folder / "orders.db").read_bytes(), (folder / ".mcp.json").read_bytes()
    code, out, _ = bench(folder, "probe", "--yes", "--only", "charge#1.lost", TMPDIR=str(tmp_path))
    assert code == 1, out
    lines = out.splitlines()
    (at,) = [
        number
        for number, line in enumerate(lines)
        if line.startswith("till does damage in 1 of 1 cell: when the answer of till.charge#1 (account ada, amount 30) is lost")
    ]
    assert len(lines) - at <= 10 and "1 cell, about" in out and "till.charge#1.lost: ✕ doubled" in out
    assert ((folder / "orders.db").read_bytes(), (folder / ".mcp.json").read_bytes()) == before and left(tmp_path) == []
    run = folder / "results" / "till-probe"
    assert verify(run).defects == () and verify(run).ending == "complete"
    assert "The worst: till.charge#1.lost" in (folder / "reports" / "till-probe" / "probe.html").read_text()
    code, out, _ = bench(folder, "trace", "till-probe", "--trial", "till.charge#1.lost")
    assert code == 0 and "orders.accounts" in out and "struck here: lost" in out
    for words, line in (
        (("runs",), "till-probe"),
        (("export", "till-probe"), "trials.csv"),
        (("verify", "till-probe"), "sound"),
        (("report", "till-probe"), "till does damage"),
        (("compare", "till-probe", "till-probe"), "no worse"),
    ):
        code, out, err = bench(folder, *words)
        assert line in out, (words, out, err)
    code, out, _ = bench(folder, "probe", "--yes", "--only", "charge#1.lost", TMPDIR=str(tmp_path))
    assert code == 1 and "is complete, and nothing was run" in out
    files = ("--json", "ci/probe.json", "--junit", "ci/probe.xml", "--markdown", "ci/probe.md")
    code, _, _ = bench(folder, "probe", "--yes", "--only", "charge#1.lost", *files, TMPDIR=str(tmp_path))
    told = json.loads((folder / "ci" / "probe.json").read_text())
    assert (code, told["exit_code"], [cell["cell"] for cell in told["cells"]]) == (1, 1, ["till.charge#1.lost"])
    assert 'type="damage"' in (folder / "ci" / "probe.xml").read_text() and "✕" in (folder / "ci" / "probe.md").read_text()
    with (folder / "probe.toml").open("a") as file:
        file.write("# mended\nignore = ['nothing']\n")
    err = refused(bench(folder, "probe", "--yes", "--only", "charge#1.lost", TMPDIR=str(tmp_path)))
    assert "its file, or a file that it names, has changed; give --set-aside to begin anew, or --name" in err


def test_what_cannot_be_asked_is_an_error_in_the_junit_file(tmp_path: Path) -> None:
    err = refused(bench(tmp_path, "probe", "--yes", "--junit", "ci/probe.xml"))
    [case] = ElementTree.parse(tmp_path / "ci" / "probe.xml").getroot()[0]
    assert (
        "probe.toml: is not there" in err and "probe.toml: is not there" in case[0].attrib["message"] and case[0].tag == "error"
    )


def test_a_stopped_probe_goes_on_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = till(tmp_path)
    words = ("probe", "--yes", "--only", "charge#1.error", "--only", "charge#2.error")
    with start(folder, *words, TMPDIR=str(tmp_path)) as command:
        command.wait_until_said("cells, about")
        command.send_signal(signal.SIGINT)
        code, out, err = command.ended()
    assert code == 130 and "the same command goes on from there" in err, (out, err)
    assert "Exit code 130. Open " in out
    assert left(tmp_path) == [] and verify(folder / "results" / "till-probe").defects == ()
    known = len(list(read_trials(folder / "results" / "till-probe")))
    code, out, err = bench(folder, *words, TMPDIR=str(tmp_path))
    assert code == 0 and "till did no damage in any of the 2 cells that were asked for" in out, (out, err)
    records = list(read_trials(folder / "results" / "till-probe"))
    assert (
        known
        and [record.plan for record in records].count("clean") in (3, 5)
        and verify(folder / "results" / "till-probe").defects == ()
    )


def test_a_probe_that_is_stopped_before_it_has_begun_says_so_and_has_no_page(tmp_path: Path) -> None:
    folder = till(tmp_path)
    with start(folder, "probe", "--yes", TMPDIR=str(tmp_path)) as command:
        command.wait_until_said("the cells are counted")
        command.send_signal(signal.SIGINT)
        code, out, err = command.ended()
    assert code == 130 and "stopped" in err and "holds no run" not in out + err, (out, err)
    assert left(tmp_path) == []


def test_nothing_that_a_probe_writes_or_says_holds_a_secret(tmp_path: Path) -> None:
    folder = notes(tmp_path)
    variables = {name: WORDS[name] for name in ("OWNER_WORD", "OPENAI_API_KEY", "PIN")}
    told = ""
    for words in (
        ("probe", "--dry-run"),
        ("probe", "--yes", "--only", "add#1.lost", "--only", "add#1.error"),
        ("trace", "notes-probe", "--trial", "notes.add#1.lost"),
        ("runs",),
        ("export", "notes-probe"),
    ):
        _, out, err = bench(folder, *words, TMPDIR=str(tmp_path), **variables)
        told += out + err
    assert "notes.add#1" in told and "***" in told
    files = [path for path in (*(folder / "results").rglob("*"), *(folder / "reports").rglob("*")) if path.is_file()]
    assert len(files) > 5
    for canary in (*(WORDS[name] for name in KNOWN), '4711"', "pin 4711"):
        assert canary not in told
        assert [path for path in files if canary in path.read_text(encoding="utf-8", errors="replace")] == []


DOTENV = {"STRIPE": "sk_live_CanaryOfTheAgent1", "PASSWORD": "canary-pässwörd-2", "WORD": "canary-description-3"}
LEAKED = (
    *DOTENV.values(),
    *(WORDS[name] for name in ("OWNER_WORD", "SERVER_WORD", "WORD", "DSN", "OPENAI_API_KEY")),
    "canary-by-hand-1",
    "eyJjYW5hcnkiOiJvZiBhIHNlcnZlciJ9",
    "canary-p\\u00e4ssw\\u00f6rd-2",
    "canary-p\\\\u00e4ssw\\\\u00f6rd-2",
    "canary-pässwörd-2".encode().decode("latin-1"),
)


def test_no_secret_of_a_dotenv_file_an_argument_or_a_server_is_in_any_output_or_tape(tmp_path: Path) -> None:
    database = "CREATE TABLE payments (id INTEGER PRIMARY KEY, cents INTEGER, body TEXT);"
    more = f'environment = {{ DSN = "postgresql://me:{WORDS["DSN"]}@host/db" }}\n'
    words = (str(SUPPORT / "leaky_agent.py"), ".mcp.json", f"--api-key={WORDS['WORD']}")
    folder = subject(tmp_path, "bank", "leaky_agent.py", database, *words, more=more)
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in DOTENV.items()), encoding="utf-8")
    cell, told = "bank.pay#1.unacknowledged", ""
    variables = {"OWNER_WORD": WORDS["OWNER_WORD"], "OPENAI_API_KEY": WORDS["OPENAI_API_KEY"], "TMPDIR": str(tmp_path)}
    for given in (
        ("probe", "--dry-run"),
        ("probe", "--yes", "--only", cell),
        ("trace", "bank-probe", "--trial", cell),
        ("probe", "--yes", "--test", cell),
        ("export", "bank-probe"),
    ):
        _, out, err = bench(folder, *given, **variables)
        told += out + err
    assert f"{cell}: ✕ doubled" in told and "are written; run it by: pytest" in told, told
    files = [path for name in ("results", "reports", "tests") for path in (folder / name).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".jsonl", ".html", ".json", ".py"}
    texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in files}
    assert [(canary, name) for canary in LEAKED for name, text in {**texts, "told": told}.items() if canary in text] == []
    assert "***" in texts["test_bank_pay_1_unacknowledged.json"]


def test_the_password_of_a_real_database_is_in_no_output(tmp_path: Path, server: str) -> None:
    import psycopg  # noqa: PLC0415  the server's fixture skips where it is missing

    folder, canary = notes(tmp_path), "canary-password-of-a-database"
    database = f"canaries_{os.getpid()}"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute(f"CREATE DATABASE {database}".encode())
    try:
        with (folder / "probe.toml").open("a") as file:
            file.write('[[store]]\npostgres = "$ORDERS_DSN"\nvariable = "OWNER_WORD"\n')
        variables = {name: WORDS[name] for name in ("OPENAI_API_KEY", "PIN")} | {"TMPDIR": str(tmp_path)}
        told = ""
        for name in (f"{database}_absent", database):
            dsn = f"{server} password={canary} dbname={name}"
            code, out, err = bench(
                folder, "probe", "--yes", "--only", "add#1.lost", ORDERS_DSN=dsn, OWNER_WORD=dsn, **variables
            )
            told += out + err
        told += bench(folder, "trace", "notes-probe", "--trial", "notes.add#1.lost")[1]
    finally:
        with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
            session.execute(f"DROP DATABASE {database}".encode())
    assert code in (0, 1) and "notes.add#1.lost: " in told, told
    files = [path for path in (*(folder / "results").rglob("*"), *(folder / "reports").rglob("*")) if path.is_file()]
    assert canary not in told and not [path for path in files if canary in path.read_text(errors="replace")]


def refused(ended: Ended) -> str:
    code, _, err = ended
    assert code == 2 and len(err.splitlines()) == 1, err
    return err


def test_commands_are_shown_and_run_only_after_a_word_of_the_owner(tmp_path: Path) -> None:
    folder = till(tmp_path)
    ended = bench(folder, "probe", TMPDIR=str(tmp_path))
    assert "nobody can be asked" in refused(ended) and "till_agent.py" in ended[1] and "till_server.py" in ended[1]
    assert not (folder / "results").exists() and left(tmp_path) == []


def test_an_agent_is_probed_by_its_command_alone(tmp_path: Path) -> None:
    folder = till(tmp_path)
    by_hand = tomllib.loads((folder / "probe.toml").read_text())
    (folder / "probe.toml").unlink()
    command = ("--", sys.executable, str(SUPPORT / "till_agent.py"), ".mcp.json", "again")
    code, out, _ = bench(folder, "probe", "--dry-run", *command)
    assert code == 0 and "till_agent.py .mcp.json again" in out and "nothing was started" in out
    assert "nobody could be asked" in refused(bench(folder, "probe", *command)) and not (folder / "probe.toml").exists()
    err = refused(bench(folder, "probe", "--yes", "--only", "charge#9.lost", *command, TMPDIR=str(tmp_path)))
    assert "charge#9.lost" in err and "till.charge#2" in err, "its first clean run has told the calls"
    written = tomllib.loads((folder / "probe.toml").read_text())
    assert (shlex.split(written["agent"]), written["mcp"], written["store"]) == (
        by_hand["agent"],
        by_hand["mcp"],
        by_hand["store"],
    )
    assert "for another command" in refused(bench(folder, "probe", "--yes", "--", "python", "other.py"))


def test_no_file_is_written_of_an_agent_that_fails(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("raise SystemExit('no such account')")
    err = refused(bench(tmp_path, "probe", "--yes", "--", sys.executable, "agent.py"))
    assert "ended with exit code 1, and printed last: no such account" in err and not (tmp_path / "probe.toml").exists()
    code, out, _ = bench(tmp_path, "probe", "--init", "--yes", "--", sys.executable, "agent.py")
    assert code == 0 and out.count("BEWARE") == 1 and "no such account" in (tmp_path / "probe.toml").read_text()


def test_nothing_is_started_where_nobody_may_watch_and_the_file_says_why(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("open('started', 'w')")
    command = ("--", sys.executable, "agent.py")
    for words, variables, why in (
        (("--unboxed",), {}, "no box was asked for"),
        ((), {"DATABASE_URL": "postgres://db.example.com/shop"}, "the database that DATABASE_URL names is at db.example.com"),
    ):
        code, out, err = bench(tmp_path, "probe", "--init", "--yes", *words, *command, **variables)
        text = (tmp_path / "probe.toml").read_text()
        assert code == 0 and text.startswith(f"# No run was watched: {why}") and "agent = " in text, (out, err)
        (tmp_path / "probe.toml").unlink()
    assert not (tmp_path / "started").exists()


def test_a_dry_run_says_what_it_would_do_and_starts_nothing(tmp_path: Path) -> None:
    folder = till(tmp_path)
    code, out, _ = bench(folder, "probe", "--dry-run", TMPDIR=str(tmp_path))
    assert code == 0 and out.splitlines()[-1] == "nothing was started" and "orders.db" in out
    assert not (folder / "results").exists() and left(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("probe",), "bench probe --init"),
        (("probe", "--yes", "--budget", "soon"), "is no time"),
        (("probe", "--init"), "is there already"),
        (("probe", "elsewhere.toml"), "elsewhere.toml: is not there"),
        (("probe", "agent.py"), "bench probe -- python agent.py"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    if words != ("probe",):
        till(tmp_path)
        (tmp_path / "agent.py").touch()
    assert line in refused(bench(tmp_path, *words))


@pytest.mark.parametrize(("option", "value"), [("--budget", "soon"), ("--name", "../out")])
def test_a_mistake_in_an_option_is_refused_before_the_agent_runs(tmp_path: Path, option: str, value: str) -> None:
    assert value in refused(bench(tmp_path, "probe", "--yes", option, value, "--", "touch", "started"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mode", "line"), [("quiet", "no call came through the gateway"), ("fails", "")])
def test_an_agent_whose_clean_runs_say_nothing_cannot_be_probed(tmp_path: Path, mode: str, line: str) -> None:
    folder = till(tmp_path, mode)
    err = refused(bench(folder, "probe", "--yes", TMPDIR=str(tmp_path)))
    assert line in err and left(tmp_path) == []


def test_a_clean_run_that_does_not_count_is_shown_so_and_does_not_keep_a_mended_file_from_running(tmp_path: Path) -> None:
    folder = till(tmp_path, "fails")
    ended = bench(folder, "probe", "--yes", "--only", "charge#1.error", TMPDIR=str(tmp_path))
    assert "clean run 1 failed: the agent ended with exit code 3" in refused(ended)
    assert ended[1].count("clean: ✕ it does not count") == 1 and "clean: ✓" not in ended[1]
    probe = folder / "probe.toml"
    probe.write_text(probe.read_text().replace('"fails"', '"again"'))
    code, out, _ = bench(folder, "probe", "--yes", "--only", "charge#1.error", TMPDIR=str(tmp_path))
    assert code == 0 and out.count("clean: ✓ same") >= 3, out


def test_a_killed_probe_is_cleaned_up_after(tmp_path: Path) -> None:
    folder = till(tmp_path)
    with start(folder, "probe", "--yes", TMPDIR=str(tmp_path), XDG_STATE_HOME=str(tmp_path / "state")) as command:
        command.wait_until_said("cells, about")
        command.kill()
    assert len(left(tmp_path)) == 2
    variables = {"TMPDIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    ended = bench(folder, "probe", "--clean", **variables)
    assert "nobody can be asked: do this?" in refused(ended) and ended[1].count("remove ") == 2 and len(left(tmp_path)) == 2
    code, out, _ = bench(folder, "probe", "--clean", "--yes", **variables)
    assert code == 0 and out.count("removed ") == 2 and left(tmp_path) == []
    assert bench(folder, "probe", "--clean", **variables)[1] == "no killed probe left anything here\n"


def payments(folder: Path) -> int:
    """Count the payments of the owner's own database."""
    with closing(sqlite3.connect(folder / "orders.db")) as database:
        return int(database.execute("SELECT count(*) FROM payments").fetchone()[0])


def bypass(folder: Path) -> Path:
    """A subject whose agent pays over MCP, and notes a payment of its own in the database that it opens by its name."""
    till(folder, "again keyed")
    program = (
        "import runpy, sqlite3, sys\n"
        "database = sqlite3.connect('orders.db')\n"
        "database.execute(\"INSERT INTO payments (account, amount) VALUES ('note', 0)\")\n"
        "database.commit()\n"
        f"sys.path.insert(0, {str(SUPPORT)!r})\n"
        f"runpy.run_path({str(SUPPORT / 'till_agent.py')!r}, run_name='__main__')\n"
    )
    (folder / "clerk.py").write_text(program)
    file = folder / "probe.toml"
    file.write_text(file.read_text().replace(str(SUPPORT / "till_agent.py"), "clerk.py"))
    return folder


FIXED = """
import json, os, runpy, sqlite3, subprocess, sys
config = json.load(open(".mcp.json"))  # by a fixed name, as most agents do
with sqlite3.connect(os.path.expanduser("~/second.db")) as second:
    second.execute("CREATE TABLE IF NOT EXISTS seen (number INTEGER)")
    second.execute("INSERT INTO seen VALUES (1)")
with sqlite3.connect(os.path.expanduser("~/checkpoints.db")) as checkpoints:  # as LangGraph makes it
    checkpoints.execute("CREATE TABLE IF NOT EXISTS checkpoints (thread_id TEXT, checkpoint_ns TEXT)")
    checkpoints.execute("CREATE TABLE IF NOT EXISTS writes (thread_id TEXT, checkpoint_ns TEXT)")
subprocess.run([sys.executable, "-c", "open('/tmp/lock', 'x')"], check=True)
sys.argv = ["agent", ".mcp.json", "again keyed"]
runpy.run_path("patient.py", run_name="__main__")
"""


def test_an_agent_with_fixed_paths_and_a_second_database_is_probed_in_its_box_and_changes_nothing(tmp_path: Path) -> None:
    folder, home = tmp_path / "shop", tmp_path / "home"
    for made in (folder, home):
        made.mkdir()
    bypass(folder)
    (folder / "clerk.py").write_text((folder / "clerk.py").read_text().partition("sys.path")[0] + FIXED)
    patient = (SUPPORT / "till_agent.py").read_text().replace("WAIT, WAIT_TO_START = 0.5", "WAIT, WAIT_TO_START = 20.0")
    (folder / "patient.py").write_text(patient)
    file = folder / "probe.toml"
    file.write_text(file.read_text().replace(', ".mcp.json", "again keyed"', ""))
    variables = {"HOME": str(home), "TMPDIR": str(tmp_path / "work"), "XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "work").mkdir()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    code, out, err = bench(folder, "probe", "--yes", "--only", "charge#1.error", **variables)
    if "cannot be put into a box" in err:
        pytest.skip(err)
    assert code == 0 and "till.charge#1.error: ✓ same" in out, (out, err)
    assert "it also writes ~/second.db, which nobody compares; it keeps what it knows in ~/checkpoints.db (LangGraph's" in out
    assert "nobody resumed it twice" not in out
    assert {path: path.read_bytes() for path in folder.iterdir() if path in before} == before
    assert payments(folder) == 0 and not (home / "second.db").exists() and not Path("/tmp/lock").exists()
    assert list((tmp_path / "work").iterdir()) == []
    assert "no word of the agent's command hands it over" in refused(bench(folder, "probe", "--unboxed", "--yes", **variables))


def test_an_agent_that_opens_the_store_by_its_name_is_shown_refused_and_stopped_after_one_run(tmp_path: Path) -> None:
    folder, variables = bypass(tmp_path), {"TMPDIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    assert "beware: clerk.py names orders.db" in bench(folder, "probe", "--unboxed", "--dry-run", **variables)[1]
    err = refused(bench(folder, "probe", "--unboxed", "--yes", **variables))
    assert "clerk.py names orders.db, and nothing hands the copy over to it" in err and "takes_copies = true" in err
    assert payments(folder) == 0
    with (folder / "probe.toml").open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write("takes_copies = true\n" + text)
    err = refused(bench(folder, "probe", "--unboxed", "--yes", **variables))
    assert "store 'orders' itself changed in clean run 1" in err and "bench probe --clean" in err and payments(folder) == 1
    _, out, err = bench(folder, "report", "till-probe", **variables)
    assert "no damage" not in out + err and "itself changed" in out, (out, err)
    err = refused(bench(folder, "probe", "--unboxed", "--yes", **variables))
    assert "has changed since a probe copied it; restore it by `bench probe --clean`" in err and payments(folder) == 1
    code, out, _ = bench(folder, "probe", "--clean", "--yes", **variables)
    assert code == 0 and "restored " in out and payments(folder) == 0
