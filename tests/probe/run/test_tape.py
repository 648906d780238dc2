"""A cell that is recorded once is played again without its server, its store and its model."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import payer
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_probe import cell

from bench.common.errors import ConfigError
from bench.probe.run.gateway.http_wire import chunk
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.tape import (
    CellTape,
    _recorded_answer,
    _share_rows,
    _without_secrets,
    play_tape,
    read_tape,
    record_tapes,
    write_tape,
)
from bench.record.events import of_kind
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import RowDifference

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
HERE = Path(__file__).parents[2] / "support"


def subject(folder: Path, mode: str) -> Path:
    """Make the till, its agent and its probe.toml in a folder. Its agent goes by words of a file, which can be mended."""
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.executescript("""
            CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER);
            CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER, key TEXT);
            CREATE TABLE IF NOT EXISTS parcels (order_id TEXT PRIMARY KEY, account TEXT);
            INSERT OR IGNORE INTO accounts VALUES ('ada', 100), ('bob', 7);
        """)
    server = f'"command": "{sys.executable}", "args": ["{HERE / "till_server.py"}", "{folder / "shop.db"}"]'
    (folder / ".mcp.json").write_text(f'{{"mcpServers": {{"till": {{{server}}}}}}}', encoding="utf-8")
    (folder / "probe.toml").write_text(
        f'agent = ["{sys.executable}", "{HERE / "till_agent.py"}", "{folder / ".mcp.json"}", "{mode}"]\n'
        f'mcp = "{folder / ".mcp.json"}"\nfolder = "{folder}"\nname = "till"\nsettle = 0.02\npatience = 2.0\nlimit = 60.0\n'
        "takes_copies = true\n"
        f'[[store]]\nsqlite = "{folder / "shop.db"}"\n',
        encoding="utf-8",
    )
    return folder / "probe.toml"


def verdict_from(tape: Path, file: Path) -> tuple[str, str]:
    judged = asyncio.run(play_tape(ProbeSettings(file, is_taped=True), read_tape(tape))).judgement
    assert judged
    return judged.verdict, judged.why


def recorded(folder: Path, mode: str, plan: str) -> Path:
    settings = ProbeSettings(subject(folder, mode))
    tape, run = asyncio.run(record_tapes(settings, Secrets(()), plan))[0]
    assert run.judgement and run.judgement.verdict == "doubled"
    write_tape(folder / "cell.json", tape)
    return folder / "cell.json"


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> CellTape:
    """The tape of a lost charge."""
    return read_tape(recorded(tmp_path_factory.mktemp("recorded"), "again", "till.charge#1.lost"))


def test_a_tape_shows_the_damage_again_and_a_mended_agent_without_store_and_server(tmp_path: Path) -> None:
    tape = recorded(tmp_path, "again", "till.charge#1.lost")
    (tmp_path / "shop.db").unlink()
    assert verdict_from(tape, tmp_path / "probe.toml") == ("doubled", "")
    words = (tmp_path / "probe.toml").read_text()
    (tmp_path / "probe.toml").write_text(words.replace('"again"', '""'))
    assert verdict_from(tape, tmp_path / "probe.toml")[0] == "doubled"  # it gives up, and pays again when it is started again
    (tmp_path / "probe.toml").write_text(words.replace('"again"', '"trusts"'))
    assert verdict_from(tape, tmp_path / "probe.toml")[0] == "same"
    (tmp_path / "probe.toml").write_text(words.replace('"again"', '"again keyed"'))
    verdict, why = verdict_from(tape, tmp_path / "probe.toml")
    assert verdict == "no_verdict"
    assert why.startswith("it left the tape: call 1, charge, was not made so")


def payers_file(folder: Path, mode: str) -> Path:
    """Write the probe.toml of an agent that pays over HTTP, and return it."""
    if not (folder / "shop.db").exists():
        with closing(sqlite3.connect(folder / "shop.db")) as database:
            database.executescript(payer.TABLES)
    serve = json.dumps([sys.executable, payer.__file__, "serve", "{port}", str(folder / "shop.db")])
    (folder / "probe.toml").write_text(
        f"agent = {json.dumps([sys.executable, payer.__file__, mode])}\n"
        f'name = "payer"\nfolder = "{folder}"\nsettle = 0.02\npatience = 6.0\nlimit = 60.0\ntakes_copies = true\n'
        f'[[service]]\nname = "pay"\nvariable = "PAY_URL"\nurl = "http://127.0.0.1:{{port}}"\ncommand = {serve}\n'
        f'[[store]]\nsqlite = "{folder / "shop.db"}"\n'
        f'[[store]]\nmemory = "{folder / "journal"}"\nname = "journal"\nvariable = "JOURNAL"\n'
    )
    return folder / "probe.toml"


@pytest.mark.parametrize(
    ("mode", "plan", "verdict", "mended"),
    [
        ("hasty", "pay.POST /pay#1.in_flight", "doubled", ""),
        ("looks", "pay.POST /pay#1.resumed_twice", "doubled", "looks lease"),
        ("debits", "pay.POST /balance#1.meanwhile", "overwritten", ""),
    ],
)
def test_a_tape_holds_when_a_call_is_delivered_and_who_resumes(
    tmp_path: Path, mode: str, plan: str, verdict: str, mended: str
) -> None:
    settings = ProbeSettings(payers_file(tmp_path, mode))
    tape, run = asyncio.run(record_tapes(settings, Secrets(()), plan))[0]
    write_tape(tmp_path / "cell.json", tape)
    assert run.judgement and run.judgement.verdict == verdict
    assert verdict_from(tmp_path / "cell.json", payers_file(tmp_path, mode)) == (verdict, "")
    if mended:
        assert verdict_from(tmp_path / "cell.json", payers_file(tmp_path, mended))[0] == "same"


@given(st.integers(1, 4), st.integers(0, 3), st.integers(-9, 9), st.integers(0, 3))
def test_equal_calls_that_were_under_way_together_share_what_they_changed_or_the_last_has_all(
    calls: int, added: int, cents: int, more: int
) -> None:
    rows = [RowDifference("shop", "payments", str(key), None, {"cents": 5}) for key in range(calls * added + more)]
    rows.append(RowDifference("shop", "accounts", "ada", {"cents": 100}, {"cents": 100 + calls * cents}))
    parts = _share_rows(rows, calls)
    if more % calls:
        assert parts == [rows]
        return
    numbers = [row for part in parts for row in part if row.table == "accounts"]
    assert [dict(row.after or {})["cents"] for row in numbers] == [100 + nth * cents for nth in range(1, calls + 1)]
    assert [row.before for row in numbers[1:]] == [row.after for row in numbers[:-1]]
    assert {sum(row.table == "payments" for row in part) for part in parts} == {added + more // calls}
    assert {row.key for part in parts for row in part} == {row.key for row in rows}


def test_a_cell_is_found_on_its_tape_though_a_word_of_its_calls_was_blotted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "charge-1")
    settings = ProbeSettings(subject(tmp_path, "again keyed"))
    secrets = Secrets.of(settings.subject, {"WORD": "charge-1"})
    tape, _ = asyncio.run(record_tapes(settings, secrets, "till.charge#1.lost"))[0]
    write_tape(tmp_path / "cell.json", tape)
    assert "***" in (tmp_path / "cell.json").read_text()
    assert verdict_from(tmp_path / "cell.json", tmp_path / "probe.toml") == ("absorbed", "")


SECRET = "canary-pässwörd-1"
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: a=canary-p%C3%A4ssw%C3%B6rd-1\r\n"
BODY = json.dumps({"it": SECRET, "other": "stays"}).encode()


def service_answer(kind: str) -> bytes:
    packed = gzip.compress(BODY)
    return {
        "plain": f"{HEAD}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY,
        "gzip": f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode() + packed,
        "chunks": f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk(BODY[:20]) + chunk(BODY[20:]) + b"0\r\n\r\n",
    }[kind]


@pytest.mark.parametrize("kind", ["plain", "gzip", "chunks"])
def test_an_answer_of_a_service_is_on_the_tape_without_secrets_and_with_its_new_length(kind: str) -> None:
    call = replace(of_kind(cell("pay#1.lost", 0).events, GatewayCall)[0], door_kind="http", tool="GET /x")
    answer = _recorded_answer(call, service_answer(kind), Secrets([SECRET])).encode("latin-1")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert json.loads(body) == {"it": "***", "other": "stays"} and b"Set-Cookie: a=***" in head
    lengths = [line.split(b": ")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    assert lengths == [b"%d" % len(body)] and b"gzip" not in head and b"chunked" not in head


def test_an_answer_without_a_secret_keeps_its_bytes_and_what_cannot_be_unpacked_is_refused() -> None:
    call = replace(of_kind(cell("pay#1.lost", 0).events, GatewayCall)[0], door_kind="http", tool="GET /x")
    for kind in ("plain", "chunks"):
        raw = service_answer(kind)
        assert _recorded_answer(call, raw, Secrets(["another-secret"])).encode("latin-1") == raw
    odd = service_answer("gzip").replace(b"gzip", b"zstd")
    with pytest.raises(ConfigError, match="the answer of GET /x is packed so that nobody can look for secrets in it"):
        _recorded_answer(call, odd, Secrets([SECRET]))


def test_a_tape_in_which_a_secret_would_stand_or_rows_would_be_one_is_refused(tape: CellTape) -> None:
    with pytest.raises(ConfigError, match="a secret would stand in the tape"):
        _without_secrets(replace(tape, handshakes={"till": {"x": {"pin": 12345678}}}), Secrets(["12345678"]))
    rows = tuple(RowDifference("shop", "keys", key, None, {"n": 1}) for key in ("canary-key-1", "canary-key-2"))
    calls = (replace(tape.calls[0], rows=rows), *tape.calls[1:])
    with pytest.raises(ConfigError, match="rows are told apart by a secret"):
        _without_secrets(replace(tape, calls=calls), Secrets(["canary-key-1", "canary-key-2"]))


def test_what_no_tape_holds_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ConfigError, match="is no tape; record it by: bench probe --test CELL"):
        read_tape(tmp_path / "bad.json")
    with pytest.raises(ConfigError, match=r"--test till.charge#9.lost: there is no such cell"):
        asyncio.run(record_tapes(ProbeSettings(subject(tmp_path, "")), Secrets(()), "till.charge#9.lost"))


@pytest.mark.parametrize("places", [[10**6], [0] * 10**5])
def test_a_tape_whose_pieces_are_missing_or_make_too_long_a_text_is_refused(tape: CellTape, places: list[int]) -> None:
    assert len(set(tape.pieces)) == len(tape.pieces)
    assert all(call.arguments in agent_run.texts for agent_run in tape.clean_runs() for call in agent_run.calls)
    damaged = replace(tape, pieces=("x" * 10**4, *tape.pieces), arguments={**tape.arguments, "other": tuple(places)})
    with pytest.raises(ConfigError, match=r"the tape of till.charge#1.lost is damaged; record it anew by"):
        damaged.clean_runs()
